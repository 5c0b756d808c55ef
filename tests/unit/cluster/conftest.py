"""These tests may be coroutines."""

from tests.support.async_tests import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

"""Adapter tests are coroutines too."""

from tests.support.async_tests import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

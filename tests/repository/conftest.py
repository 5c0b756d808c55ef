"""Coroutines are tests here too."""

from tests.waiting import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]

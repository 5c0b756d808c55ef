"""What tests of real servers share: an event loop, and certificates."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.support.async_tests import pytest_pyfunc_call
from tests.support.certificates import Certificates, made


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority, and a server at 127.0.0.1."""
    return made(tmp_path_factory.mktemp("certificates"))


__all__ = ["pytest_pyfunc_call"]

"""`stream-car`, but with an engine that fails on the document `poison`."""

import pytest

from stream_car.cli import main
from tests.support.poison import fail_on_poison

if __name__ == "__main__":
    fail_on_poison(pytest.MonkeyPatch())
    main()

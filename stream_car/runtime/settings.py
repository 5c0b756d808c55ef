"""What the environment says. Nothing else reads it."""

import os
from collections.abc import Mapping
from pathlib import Path

DATA_VARIABLE = "STREAM_CAR_DATA"
DATA_DEFAULT = Path("stream-car-data")


def data_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the embedded engine keeps its files unless a caller says otherwise."""
    named = environment.get(DATA_VARIABLE)
    return Path(named) if named else DATA_DEFAULT

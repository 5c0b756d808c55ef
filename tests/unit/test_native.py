"""Which codec is used, the compiled one or the one in Python."""

import os
import subprocess
import sys
from pathlib import Path

from stream_car.version import __version__
from tests.support.repository import ROOT

EXTENSION = """
VERSION, IS_ENABLED = {version!r}, {is_enabled}

class DocumentDecoder:
    def __init__(self, *args, **limits): ...
    def decode(self, value): ...
"""
LOOK = "import stream_car.native as native; print(native.IS_USED)"


def look(folder: Path, *, version: str, is_enabled: bool) -> subprocess.CompletedProcess[str]:
    """Import the codec beside an extension of this version."""
    (folder / "stream_car_native.py").write_text(EXTENSION.format(version=version, is_enabled=is_enabled))
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run([sys.executable, "-c", LOOK], check=False, env=environment, capture_output=True, text=True)


def test_a_compiled_codec_of_the_same_version_is_used(tmp_path: Path) -> None:
    assert look(tmp_path, version=__version__, is_enabled=True).stdout == "True\n"


def test_a_compiled_codec_that_is_switched_off_is_not_used(tmp_path: Path) -> None:
    assert look(tmp_path, version=__version__, is_enabled=False).stdout == "False\n"


def test_a_compiled_codec_of_another_version_is_an_error_that_names_the_cure(tmp_path: Path) -> None:
    result = look(tmp_path, version="9.9.9", is_enabled=True)

    assert result.returncode != 0
    assert "stream-car-native 9.9.9 is installed beside stream-car" in result.stderr
    assert "Install the same version of both, or uninstall stream-car-native." in result.stderr


def test_both_codecs_have_the_version_of_the_release() -> None:
    assert f'\nversion = "{__version__}"\n' in (ROOT / "native" / "Cargo.toml").read_text()

"""What a program passes to a call, and how it learns that this cannot be used."""

from pathlib import Path

import pytest

from stream_car.api import arguments
from stream_car.errors import InvalidRequest


def test_a_missing_rule_file_is_named_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"mine\.toml cannot be read: No such file or directory\. Check the path"):
        arguments.rules(tmp_path / "mine.toml")


def test_a_rule_file_that_is_not_utf_8_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b'name = "\xff"')

    with pytest.raises(InvalidRequest, match=r"is not UTF-8: the byte at 8 is wrong\. Save it as UTF-8\."):
        arguments.rules(tmp_path / "mine.toml")

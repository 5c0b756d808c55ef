"""A file that exists and cannot be read ends a command with one sentence."""

from pathlib import Path

import pytest

from tests.support.command_line import invoke

UNREADABLE = "/proc/self/mem"  # opens, and fails at the first read
PACK = """
name = "mine"
[types]
note = "A note."
"""


@pytest.mark.skipif(not Path(UNREADABLE).exists(), reason="needs Linux")
@pytest.mark.parametrize(
    "command",
    [
        ("publish", UNREADABLE),
        ("publish", "--format", "kev", UNREADABLE),
        ("rules", "check", "mine.toml", "--sample", UNREADABLE),
        ("rejected", "replay", "--from", UNREADABLE),
    ],
    ids=" ".join,
)
def test_it_is_named_with_the_cure(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(PACK)
    invoke("publish", "-", text="")

    result = invoke(*command)

    assert result.exit_code == 2
    assert f"{UNREADABLE} cannot be read: " in result.stderr
    assert "Check that it still exists and that you may read it." in result.stderr

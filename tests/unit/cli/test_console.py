"""Lines of JSON that a terminal shows."""

import json
import sys

import pytest

from stream_car.cli.console import emit

TEXT = "A\u0085b\u009b31m \u202edlrow\u2066 \u200b\U000e0041 \x7f é 漢 😀"


class Terminal:
    """Standard output as a terminal, which keeps what it is sent."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_json_on_a_terminal_says_the_same_without_characters_that_the_terminal_obeys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)

    emit(json.dumps({"title": TEXT}, ensure_ascii=False))

    assert terminal.text.removesuffix("\n").isprintable()
    assert "é 漢 😀" in terminal.text
    assert json.loads(terminal.text) == {"title": TEXT}


def test_json_in_a_pipe_is_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    line = json.dumps({"title": TEXT}, ensure_ascii=False)
    emit(line)

    assert capsys.readouterr().out == line + "\n"

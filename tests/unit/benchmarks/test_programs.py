"""Models that are programs: asked on standard input, believed only where they answer in form."""

import sys
from pathlib import Path

import pytest

from benchmarks.paper.programs import cross_encoder, generator, load_encoders
from stream_car.errors import InvalidRequest

LENGTHS = 'import sys, json\nfor line in sys.stdin: print(len(json.loads(line)["text"]))'


def program(folder: Path, source: str) -> str:
    file = folder / "program.py"
    file.write_text(source, encoding="utf-8")
    return f"{sys.executable} {file}"


def test_a_cross_encoder_reads_pairs_and_writes_a_score_for_each(tmp_path: Path) -> None:
    assert cross_encoder(program(tmp_path, LENGTHS))("q", ["abc", "two\nlines"]) == [3.0, 9.0]


def test_a_generator_reads_a_prompt_and_writes_a_text(tmp_path: Path) -> None:
    write = generator(program(tmp_path, "import sys; print(sys.stdin.read().upper(), end='')"))

    assert write("a prompt") == "A PROMPT"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("print('no number')", "must write one number per line"),
        ("print(1)", "wrote 1 numbers for 2 lines"),
        ("import sys; sys.exit('the model is missing')", "failed with code 1: the model is missing"),
    ],
)
def test_a_program_out_of_form_is_an_error_in_words(source: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=message):
        cross_encoder(program(tmp_path, source))("q", ["a", "b"])


def test_a_program_that_is_not_there_is_an_error_in_words() -> None:
    with pytest.raises(InvalidRequest, match="cannot be started"):
        generator("no-such-program-anywhere")("prompt")


def test_a_folder_without_a_model_is_an_error_in_words(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="has no sentence encoder"):
        load_encoders([str(tmp_path)])

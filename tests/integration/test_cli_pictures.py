"""`--svg` also draws a picture, and says so if it cannot."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from stream_car.cli import main

DOCUMENTS = [
    {
        "id": "label",
        "type": "drug_label",
        "time": "2015-01-01T00:00:00Z",
        "scope": {"drug": ["x"]},
        "text": "Indicated for ulcers.",
    },
    {"id": "recall", "type": "drug_recall", "time": "2019-01-01T00:00:00Z", "scope": {"drug": ["x"]}, "text": "Lots."},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps(document) + "\n" for document in DOCUMENTS), encoding="utf-8")
    ran = run("publish", str(file), "--data", str(tmp_path / "data"))
    assert ran.exit_code == 0, ran.output
    return tmp_path / "data"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("explain", "label"), "label is superseded by recall"),
        (("history", "drug=x"), "ended by recall"),
        (("query", "ulcers"), "lie below the diagonal"),
    ],
)
def test_a_picture_is_drawn_beside_the_words(arguments: tuple[str, ...], text: str, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "picture.svg"
    ran = run(*arguments, "--data", str(data), "--svg", str(file))

    assert ran.exit_code == 0, ran.output
    assert ran.stdout
    root = ElementTree.parse(file).getroot()  # noqa: S314 (drawn here)
    assert text in (root.findtext("{http://www.w3.org/2000/svg}desc") or "")


def test_a_picture_that_cannot_be_written_is_an_error_that_names_the_cure(data: Path, tmp_path: Path) -> None:
    ran = run("explain", "label", "--data", str(data), "--svg", str(tmp_path / "nowhere" / "picture.svg"))

    assert ran.exit_code == 2
    assert "cannot be written" in ran.stderr and "--svg" in ran.stderr

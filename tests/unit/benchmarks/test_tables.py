"""Every numbered table runs to its end, on small sets of which one knows what must come out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from benchmarks.paper.lab import OURS, Lab
from benchmarks.paper.models import Models
from benchmarks.paper.tables import NUMBERS, paper_table
from benchmarks.paper.text_tables import TextTable
from benchmarks.paper.verdicts import parse_verdict
from tests.support.letters import Letters
from tests.support.paper_sets import rulings, write_every

SURE, NEVER, HALF = "1.000", "0.000", "0.500"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_every(tmp_path_factory.mktemp("sets") / "all")


@pytest.fixture(scope="module")
def tables(data: Path) -> Mapping[int, TextTable]:
    """Every table, without a model."""
    with Lab(data) as lab:
        return {number: paper_table(number, lab) for number in NUMBERS}


def rows(sheet: TextTable, *first: str) -> list[Mapping[str, str]]:
    """The rows that begin so, cell by column."""
    return [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows if row[: len(first)] == first or not first]


def cell(sheet: TextTable, column: str, *first: str) -> str:
    (row,) = rows(sheet, *first)
    return row[column].partition(" [")[0]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_table_is_whole_and_says_which_one_it_is(number: int, tables: Mapping[int, TextTable]) -> None:
    sheet = tables[number]

    assert sheet.title.startswith(f"Table {number}. ")
    assert {len(row) for row in sheet.rows} == {len(sheet.columns)}
    assert all(cell for row in sheet.rows for cell in row)


EXPECTED: Sequence[tuple[int, tuple[str, ...], str, str]] = [
    (2, (OURS,), "TCA, Thm. 4", SURE),
    (2, (OURS,), "T3", "- / 1.000"),
    (2, ("BM25",), "T0", "1.000 / 1.000"),
    (2, ("BM25",), "T1", "0.000 / 0.000"),
    (2, ("two-stage",), "paper TCA", SURE),
    (2, ("oracle",), "ProvRec", SURE),
    (3, (OURS,), "T3, Thm. 4", SURE),
    (3, ("two-stage + RSSG",), "paper T3", "0.776"),
    (4, ("GHSA", "1", "Jaccard"), "paper: anchor / controlling", "0.085 / 0.060"),
    (5, ("regex probe",), "TCA@5", SURE),
    (5, (OURS,), "mean rank", "- / 1.0"),
    (6, ("BM25",), "Disc@5", SURE),
    (6, ("BM25",), "TCA@5", HALF),
    (6, (OURS,), "TCA@5", SURE),
    (7, ("two-stage",), "TCA@5", SURE),
    (8, ("CVE, free-form", "+ product hint"), OURS, SURE),
    (8, ("Legal, free-form", "free-form"), "BM25", HALF),
    (9, ("BM25",), "legal", "0.000 / 0.000 / 0.000"),
    (9, (OURS,), "finance", "- / 1.000 / 1.000"),
    (11, ("BM25",), "TCA@5", HALF),
    (11, (OURS,), "TCA@5", SURE),
    (13, ("FDA", OURS), "TCA@5", SURE),
    (13, ("GHSA", "BM25"), "TCA@5", HALF),
]


@pytest.mark.parametrize(("number", "row", "column", "figure"), EXPECTED)
def test_a_table_has_the_figure_that_must_come_out(
    number: int, row: tuple[str, ...], column: str, figure: str, tables: Mapping[int, TextTable]
) -> None:
    assert cell(tables[number], column, *row) == figure


def test_what_controls_is_always_farther_from_the_questions_than_what_it_voids(tables: Mapping[int, TextTable]) -> None:
    table_rows = rows(tables[4])

    assert len(table_rows) == 6 * 3
    for row in table_rows:
        assert float(row["anchor"]) > float(row["controlling"])
        assert row["anchor nearer"].startswith(SURE)


@pytest.mark.parametrize(
    ("number", "needs"), [(7, "an encoder"), (10, "the directory `scotus`"), (12, "a text generator")]
)
def test_a_table_says_what_it_needs(number: int, needs: str, tables: Mapping[int, TextTable]) -> None:
    sheet = tables[number]
    words = " ".join((*sheet.notes, *(cell for row in sheet.rows for cell in row)))

    assert "not run: needs" in words and needs in words


@pytest.fixture(scope="module")
def lent(data: Path) -> Mapping[int, TextTable]:
    """The tables that take models, with models of a kind."""
    models = Models(
        encoders={"letters": Letters(), "others": Letters()},
        cross=lambda question, texts: [float("done" in text) for text in texts],
        writer=lambda prompt: "**PATCHED** in 7." if "done" in prompt.partition("[2]")[0] else "NOT PATCHED.",
    )
    with Lab(data, models=models) as lab:
        return {number: paper_table(number, lab) for number in (2, 5, 6, 7, 11, 12, 13)}


@pytest.mark.parametrize("number", [2, 5, 6, 7, 11, 12, 13])
def test_every_encoder_has_a_row_wherever_the_paper_has_a_dense_one(number: int, lent: Mapping[int, TextTable]) -> None:
    names = {name for row in lent[number].rows for name in row[:2]}

    assert {"dense (letters)", "dense (others)", "two-stage", OURS} <= names
    assert not any("not run" in note for note in lent[number].notes)


def test_a_generator_is_asked_what_it_reads_in_the_documents_and_read_by_its_first_words(
    lent: Mapping[int, TextTable],
) -> None:
    """This model reads the first document only. Of two matters one was never mended, so its advisory comes first."""
    assert cell(lent[12], "patch recall@5", OURS) == "- / 1.000"
    assert cell(lent[12], "says patched", OURS) == "- / 0.500"
    assert cell(lent[12], "says not patched (wrong)", OURS) == "- / 0.500"
    assert cell(lent[12], "says patched", "two-stage") == "0.824 / 1.000"  # it promotes whatever is later


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("PATCHED in 4.17.12", "patched"),
        ("Not patched, as far as [1] tells.", "not patched"),
        ("**NOT-PATCHED**: no version", "not patched"),
        ("Uncertain. It was patched or not.", "uncertain"),
        ("It is patched", "uncertain"),
        ("", "uncertain"),
    ],
)
def test_a_verdict_is_what_a_text_begins_with(text: str, read: str) -> None:
    assert parse_verdict(text) == read


def test_opinions_that_lie_at_hand_are_measured_in_both_tables_that_have_them(tmp_path: Path) -> None:
    data = write_every(tmp_path / "sets")
    rulings().write(data / "scotus")
    with Lab(data, models=Models(encoders={"letters": Letters()})) as lab:
        tenth, thirteenth = paper_table(10, lab), paper_table(13, lab)

    assert cell(tenth, "paper TCA@5", "two-stage, dense anchors") == "0.926"
    assert cell(tenth, "TCA@5", OURS) == cell(thirteenth, "TCA@5", "SCOTUS", OURS) == SURE
    assert cell(tenth, "TCA@5", "BM25") == HALF

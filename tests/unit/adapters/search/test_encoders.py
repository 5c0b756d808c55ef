"""Which encoder is meant by a folder or a name, and what is said where it cannot be had."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import stream_car
from benchmarks.paper.__main__ import main as benchmarks
from stream_car.adapters.search import encoders
from stream_car.adapters.search.encoders import ONNX, SENTENCES
from stream_car.cli import main
from stream_car.errors import InvalidRequest
from stream_car.settings import read_settings

LIBRARIES = {ONNX: "onnxruntime", SENTENCES: "sentence_transformers"}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither library is there, as after a plain installation."""
    for name in LIBRARIES.values():
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("onnx", "sentences"):
        monkeypatch.delitem(sys.modules, f"stream_car.adapters.encoder.{name}", raising=False)


def folder(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"{}")
    return path


@pytest.mark.parametrize(
    ("names", "extra"),
    [
        (("model.onnx", "tokenizer.json"), "dense"),
        (("onnx/model.onnx", "tokenizer.json", "modules.json", "model.safetensors"), "dense"),
        (("modules.json", "model.safetensors"), "sentence-transformers"),
        (("config.json", "pytorch_model.bin"), "sentence-transformers"),
    ],
)
@pytest.mark.usefixtures("bare")
def test_the_files_of_a_folder_say_what_it_needs(names: tuple[str, ...], extra: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=rf"pip install 'stream-car\[{extra}\]'") as caught:
        encoders.load_encoder(folder(tmp_path, *names))

    assert caught.value.code == "encoder"


@pytest.mark.usefixtures("bare")
def test_a_word_before_the_folder_decides(tmp_path: Path) -> None:
    both = folder(tmp_path, "model.onnx", "tokenizer.json", "modules.json")

    with pytest.raises(InvalidRequest, match=r"stream-car\[sentence-transformers\]"):
        encoders.load_encoder(f"{SENTENCES}:{both}")
    with pytest.raises(InvalidRequest, match=r"stream-car\[sentence-transformers\]"):
        encoders.load_encoder(f"{SENTENCES}:all-MiniLM-L6-v2")


@pytest.mark.parametrize("choice", ["nowhere", "all-MiniLM-L6-v2", ""])
def test_what_is_no_model_is_an_error_that_says_what_one_is(choice: str) -> None:
    with pytest.raises(InvalidRequest, match=r"a folder with model\.onnx and tokenizer\.json"):
        encoders.load_encoder(choice)


def test_vectors_of_other_weights_have_another_name(tmp_path: Path) -> None:
    first, same, other = (folder(tmp_path / name, "model.onnx") for name in ("a", "b", "c"))
    (other / "model.onnx").write_bytes(b"[]")
    names = [encoders.encoder_name(ONNX, place) for place in (first, same, other)]

    assert [name.split()[2] == names[0].split()[2] for name in names] == [True, True, False]
    assert [name.split()[:2] for name in names] == [["a", ONNX], ["b", ONNX], ["c", ONNX]]


def test_the_library_takes_the_folder_of_a_model_as_the_command_line_does() -> None:
    with pytest.raises(InvalidRequest, match="'nowhere' has no sentence encoder"):
        stream_car.open(encoder="nowhere")


@pytest.mark.parametrize(
    "arguments",
    [
        ("publish", "{file}", "--data", "{data}"),
        ("serve", "--data", "{data}", "--port", "0"),
    ],
)
def test_every_command_that_finds_takes_an_encoder(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "none.jsonl").touch()
    places = {"file": str(tmp_path / "none.jsonl"), "data": str(tmp_path / "data")}
    ran = CliRunner(env={"STREAM_CAR_ENCODER": "nowhere"}).invoke(
        main, [argument.format(**places) for argument in arguments]
    )

    assert ran.exit_code == 2
    assert "'nowhere' has no sentence encoder" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("eval", "--documents", "{file}", "--queries", "{file}", "--rules", "legal", "--out", "{data}.jsonl"),
        ("answers", "--data", "{data}", "--encoder", "nowhere"),
    ],
)
def test_the_benchmarks_take_an_encoder(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "none.jsonl").touch()
    places = {"file": str(tmp_path / "none.jsonl"), "data": str(tmp_path / "data")}
    environment = {"STREAM_CAR_ENCODER": "nowhere"}
    ran = CliRunner(env=environment).invoke(benchmarks, [argument.format(**places) for argument in arguments])

    assert ran.exit_code == 2
    assert "'nowhere' has no sentence encoder" in ran.stderr


def test_a_question_takes_an_encoder_but_a_service_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    local = CliRunner().invoke(main, ["query", "x", "--data", str(tmp_path / "data"), "--encoder", "nowhere"])
    remote = CliRunner().invoke(main, ["query", "x", "--url", "http://127.0.0.1:1", "--encoder", "nowhere"])

    assert (local.exit_code, remote.exit_code) == (2, 2)
    assert "'nowhere' has no sentence encoder" in local.stderr
    assert "A service has its own data, rules and encoder." in remote.stderr


def test_a_settings_file_names_an_encoder(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('encoder = "./all-MiniLM-L6-v2"\n', encoding="utf-8")

    assert read_settings(tmp_path / "s.toml").encoder == "./all-MiniLM-L6-v2"

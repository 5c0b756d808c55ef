"""Where a command works, and which options it rejects before it does anything."""

from pathlib import Path

import pytest

from tests.support.command_line import invoke, parse

URL = "http://127.0.0.1:9"


def test_a_query_never_creates_a_data_directory(tmp_path: Path) -> None:
    result = invoke("query", "tea", "--data", str(tmp_path / "data"))

    assert result.exit_code == 2
    assert f"stream-car publish FILE --data {tmp_path / 'data'}" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_service_in_the_environment_is_used_unless_a_data_directory_is_typed(tmp_path: Path) -> None:
    served = invoke("status", STREAM_CAR_URL=URL)
    local = invoke("publish", "-", "--data", str(tmp_path), text="", STREAM_CAR_URL=URL)

    assert served.exit_code == 2
    assert f"{URL} does not answer" in served.stderr
    assert local.exit_code == 0


@pytest.mark.parametrize("option", [("--data", "x"), ("--rules", "legal"), ("--encoder", "x")])
def test_a_service_has_its_own_data_rules_and_encoder(option: tuple[str, str]) -> None:
    result = invoke("query", "tea", "--url", URL, *option)

    assert result.exit_code == 2
    assert "A service has its own data, rules and encoder." in result.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--kafka", "localhost:9092"),
        ("--prefix", "other"),
        ("--namespace", "other"),
        ("--index", "folder"),
        ("--single-broker",),
    ],
)
@pytest.mark.parametrize("command", ["serve", "up"])
def test_serve_with_options_of_a_query_worker_fails_and_names_it(command: str, options: tuple[str, ...]) -> None:
    result = invoke(command, *options)

    assert result.exit_code == 2
    assert f"run: stream-car query-worker {options[0]}" in result.stderr


def test_serve_does_not_use_files_if_the_environment_names_kafka() -> None:
    result = invoke("serve", STREAM_CAR_KAFKA="localhost:9092")

    assert result.exit_code == 2
    assert "$STREAM_CAR_KAFKA is set." in result.stderr
    assert "stream-car query-worker" in result.stderr
    assert "give --data" in result.stderr


@pytest.mark.parametrize("command", [("worker", "all"), ("query-worker",)])
def test_workers_need_the_addresses_of_kafka_and_redis(command: tuple[str, ...]) -> None:
    no_kafka = invoke(*command)
    no_redis = invoke(*command, "--kafka", "localhost:9092")

    assert (no_kafka.exit_code, no_redis.exit_code) == (2, 2)
    assert "Give --kafka HOST:PORT, or set $STREAM_CAR_KAFKA." in no_kafka.stderr
    assert "STREAM_CAR_REDIS=redis://" in no_redis.stderr


def test_a_misspelt_variable_is_rejected() -> None:
    result = invoke("query-worker", STREAM_CAR_KAFFKA="localhost:9092")

    assert result.exit_code == 2
    assert "Unknown variable $STREAM_CAR_KAFFKA. Did you mean $STREAM_CAR_KAFKA?" in result.stderr


def test_a_misspelt_command_gets_the_one_that_was_meant() -> None:
    result = invoke("qerry", "tea")

    assert result.exit_code == 2
    assert "Did you mean 'query'?" in result.stderr


def test_a_retracted_document_is_not_in_force_and_what_it_superseded_is(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    common = '"type": "fact", "scope": {"subject": "tea", "relation": "is"}, "value": "'
    old = '{"id": "old", "time": "2020-01-01", ' + common + 'hot"}\n'
    new = '{"id": "new", "time": "2021-01-01", ' + common + 'cold"}\n'
    assert invoke("publish", "-", *data, text=old + new).exit_code == 0
    [before] = parse(invoke("resolve", "old", "--json", *data))
    [receipt] = parse(invoke("retract", "new", "--json", *data))
    [after] = parse(invoke("resolve", "old", "--json", *data))

    assert (before["status"], receipt["outcome"], after["status"]) == ("superseded", "retracted", "in_force")
    assert invoke("retract", "new", *data).exit_code == 0
    assert invoke("retract", "nobody", *data).exit_code == 1

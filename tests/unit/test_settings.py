"""Settings from the environment and a file, and what is rejected at the start without printing a value."""

from pathlib import Path

import pytest

from stream_car.errors import InvalidRequest
from stream_car.settings import ServerSettings, data_directory, read_settings, read_token, require_known_variables

SECRET = "5ebe2294ecd0e0f08eab7690d2a6ee69"


def test_the_environment_names_the_data_directory() -> None:
    assert data_directory({"STREAM_CAR_DATA": "elsewhere"}) == Path("elsewhere")


def test_by_default_data_lie_in_the_working_directory() -> None:
    assert data_directory({}) == data_directory({"STREAM_CAR_DATA": ""}) == Path("stream-car-data")


def written(folder: Path, text: str) -> Path:
    path = folder / "server.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_there_are_defaults() -> None:
    assert read_settings(None) == ServerSettings()


def test_a_file_overrides_defaults(tmp_path: Path) -> None:
    path = written(tmp_path, 'port = 9000\nhost_names = ["car.example"]\n')

    assert read_settings(path) == ServerSettings(port=9000, host_names=("car.example",))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f'token = "{SECRET}"', "token_file"),
        (f'password = "{SECRET}"', "password"),
        (f'port = "{SECRET}"', "port"),
        ('heartbeat_s = "15s"', "heartbeat_s"),
        ("heartbeat_s = 0", "heartbeat_s"),
        ("port = 70000", "port"),
        ("changes_kept = 5", "changes_kept"),
        ("port = ", "TOML"),
    ],
)
def test_a_wrong_setting_is_rejected_by_name_and_without_its_value(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named) as caught:
        read_settings(written(tmp_path, text))

    assert SECRET not in str(caught.value)


def test_the_token_comes_from_the_environment() -> None:
    assert read_token({"STREAM_CAR_TOKEN": SECRET}) == SECRET
    assert read_token({}) is None


@pytest.mark.parametrize("weak", ["", "short", "with spaces in between them", "ünïcode-ünïcode-ünïcode"])
def test_a_weak_token_is_rejected_and_not_printed(weak: str) -> None:
    with pytest.raises(InvalidRequest, match="STREAM_CAR_TOKEN") as caught:
        read_token({"STREAM_CAR_TOKEN": weak})

    assert not weak or weak not in str(caught.value)


def test_a_misspelt_variable_is_rejected_by_name() -> None:
    with pytest.raises(InvalidRequest, match=r"\$STREAM_CAR_TOKN\. Did you mean \$STREAM_CAR_TOKEN\?") as caught:
        require_known_variables({"STREAM_CAR_TOKN": SECRET, "HOME": "/"})

    assert SECRET not in str(caught.value)
    require_known_variables({"STREAM_CAR_TOKEN": SECRET, "STREAM_CAR_DATA": "x", "STREAM_CAR_SERVERS": "required"})

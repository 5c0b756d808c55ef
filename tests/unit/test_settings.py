"""Where data lives: what the environment says, or a folder beside the caller."""

from pathlib import Path

from stream_car.runtime.settings import data_directory


def test_the_environment_names_the_data_directory() -> None:
    assert data_directory({"STREAM_CAR_DATA": "elsewhere"}) == Path("elsewhere")


def test_without_a_word_data_lies_in_the_working_directory() -> None:
    assert data_directory({}) == data_directory({"STREAM_CAR_DATA": ""}) == Path("stream-car-data")

"""A hostile reader gets its answer in pages, and publishers go on meanwhile. `make attack` measures how fast."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.attack.readers import ATTACKS, attacking, build, corpus, measure
from tests.support.server_process import Server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("readers") / "data"
    build(folder, corpus(0.02))
    with Server(folder) as server:
        yield server.url


@pytest.mark.parametrize("name", ATTACKS)
def test_publishers_and_readers_go_on_beside_a_hostile_reader(name: str, url: str) -> None:
    with attacking(url, ATTACKS[name]()) as durations:
        delays = measure(url, 0.3)

    assert durations
    assert delays.publish
    assert delays.query


def test_a_listing_of_many_scopes_ends(url: str) -> None:
    read = ATTACKS["histories of 1,000 scopes"]()
    with httpx.Client(base_url=url) as client:
        for _ in range(20):
            if not read(client):
                return
    raise AssertionError("the listing goes on")

"""How files are split: what is too large is rejected for its size, whatever it contains."""

from collections.abc import Iterator
from io import BytesIO

import pytest

from stream_car.feeds import splitting
from stream_car.feeds.splitting import Piece, records, whole_file

RECORD = b'{"id": "a"}'


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "FILE_MAX", 100)
    monkeypatch.setattr(splitting, "PIECE_MAX", 50)


def codes(pieces: Iterator[Piece]) -> list[str]:
    return [piece.rejected.code if piece.rejected is not None else "" for piece in pieces]


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("name", ["x.json", "-"])
@pytest.mark.parametrize("inside", [(), ("results",)])
@pytest.mark.parametrize(
    "content",
    [
        b"[" + b",".join([RECORD] * 9) + b"]",
        b'{"results": [' + b",\n".join([RECORD] * 9) + b"]}",
        b"[" + b"\xff" * 100,
    ],
)
def test_a_file_over_the_limit_is_rejected_for_its_size(name: str, inside: tuple[str, ...], content: bytes) -> None:
    assert codes(records(BytesIO(content), name, inside=inside)) == ["size"]


@pytest.mark.usefixtures("small_limits")
def test_a_file_at_the_limit_is_split() -> None:
    content = (b"[" + b",".join([RECORD] * 8) + b"]").ljust(100)

    assert codes(records(BytesIO(content), "x.json")) == [""] * 8
    assert codes(whole_file(BytesIO(content))) == [""]
    assert codes(whole_file(BytesIO(content + b" "))) == ["size"]


@pytest.mark.usefixtures("small_limits")
def test_one_record_over_the_limit_is_rejected_before_it_is_parsed() -> None:
    content = b'{"id": "' + b"a" * 60

    assert codes(records(BytesIO(content), "x.json")) == ["size"]
    assert codes(records(BytesIO(content), "x.json", inside=("results",))) == ["syntax"]

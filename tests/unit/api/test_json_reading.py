"""What the service writes a client reads back, whatever it is."""

import msgspec
import pytest

from stream_car.api.json import plain, read
from stream_car.api.messages import Waiting
from stream_car.core.changes import Cause, FrontierChange, Member, Run
from stream_car.queries.answers import Answer, Certificate, Controlling, Evidence, Group, Rejected, Step, Told

EVIDENCE = Evidence(id="a", type="claim", time=1_700_000_000_123_456, order=-3, title="Ä\u2028\n", active=False)
GROUP = Group(
    anchor=EVIDENCE,
    score=0.25,
    controlling=(Controlling(document=EVIDENCE, path=(Step(id="b", rule="link", scope="document=a"),)),),
)
CHANGE = FrontierChange(
    scope="topic=x",
    seq=1,
    cause=Cause(id="b", revision=2, kind="corrected"),
    offset=7,
    left=(Member(id="a", revision=1, type="claim", time=-5, why="voided", rule="r"),),
    left_runs=(Run(type="claim", start=(-1, 0), end=(10**15, 5), count=300, excluding=(("x",),)),),
)
VALUES = [
    EVIDENCE,
    Answer(
        question="?",
        results=(EVIDENCE,),
        groups=(GROUP,),
        certificate=Certificate(covered=("a",), as_of=0, cut=(3,), reasons=("cycle",), complete=False),
    ),
    Told(position="g/0/1", oseq=1, change=CHANGE),
    Waiting(id="w", revision=1, time=253_402_300_799_999_999),
    Rejected(offset=1, code="syntax", reason="no", append_time=5, value=b'{"time": "2024-01-01T00:00:00Z"}'),
    Rejected(offset=1, code="encoding", reason="no", append_time=5, value=b"\xff\x00"),
    Rejected(offset=1, code="syntax", reason="no", append_time=5, value=b""),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_reading_is_the_inverse_of_writing(value: msgspec.Struct) -> None:
    assert read(msgspec.json.encode(plain(value)), type(value)) == value


def test_a_field_of_a_newer_service_is_left_out() -> None:
    assert read(b'{"id": "w", "revision": 1, "time": "1970-01-01T00:00:01Z", "mood": "good"}', Waiting) == Waiting(
        id="w", revision=1, time=1_000_000
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"id": 1}', b'{"id": "w", "revision": 1, "time": "soon"}'])
def test_what_is_no_answer_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError):
        read(body, Waiting)

"""The library, both clients and HTTP reject the same requests, with the same code and the same sentence."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import get_args

import httpx
import pytest
from msgspec import Meta, Struct

import stream_car
from stream_car import Client, Engine, InvalidRequest, NotVisible, StreamCarError, connect_async
from stream_car.api import requests as r
from stream_car.api.calls import Calls
from stream_car.api.operations import OPERATIONS, SUBSCRIBE_PATH
from stream_car.codec import check_request
from stream_car.codec.expectations import hints_of, split_hint
from stream_car.codec.requests import IN_LIBRARY
from stream_car.errors import InvalidDocument
from tests.support.either_service import served
from tests.support.engines import RULESET, engine
from tests.support.http_service import TOKEN

LONG = "x" * 10_001
EAST = timezone(timedelta(hours=2))
JSON_REQUESTS: tuple[tuple[type[Struct], Mapping[str, object], str, str], ...] = (
    (r.Query, {"text": 5}, "text", "`text` must be a string that is not blank, of 1 to"),
    (r.Query, {"text": None}, "text", "not null."),
    (r.Query, {"text": ""}, "text", "not ''."),
    (r.Query, {"text": " "}, "text", "not ' '."),
    (r.Query, {"text": "a", "k": 0}, "k", "`k` must be an integer from 1 to"),
    (r.Query, {"text": "a", "k": "5"}, "k", "not '5'."),
    (r.Query, {"text": "a", "k": 5.0}, "k", "not 5.0."),
    (r.Query, {"text": "a", "k": True}, "k", "not true."),
    (r.Query, {"text": "a", "k": 100_001}, "k", "not 100,001."),
    (r.Query, {"text": "a", "depth": -1}, "depth", "`depth` must be an integer from 1 to"),
    (r.Query, {"text": "a", "budget": 0}, "budget", "`budget` must be an integer from 1 to 1,000,000, not 0."),
    (r.Query, {"text": "a", "as_of": 5}, "as_of", "or a day, such as 2024-01-31T09:30:00Z or 2024-01-31, not 5."),
    (r.Query, {"text": "a", "min_revisions": 5}, "min_revisions", "`min_revisions` must be a list, not 5."),
    (
        r.Query,
        {"text": "a", "min_revisions": ["x"]},
        "min_revisions",
        "A member of `min_revisions` must be an object with `id` and `revision`, not 'x'.",
    ),
    (
        r.Query,
        {"text": "a", "min_revisions": [{"id": "x", "revision": 0}]},
        "min_revisions",
        "`min_revisions[0].revision` must be an integer of at least 1, not 0.",
    ),
    (r.Query, {"text": "a", "timeout_ms": 30_001}, "timeout_ms", "must be an integer from 0 to 30,000, not 30,001."),
    (r.Search, {"text": "a", "k": []}, "k", "not an empty list."),
    (r.Resolve, {"names": 5}, "names", "`names` must be a list, not 5."),
    (r.Resolve, {"names": "tea"}, "names", "`names` must be a list, not 'tea'."),
    (r.Resolve, {"names": ["a", 5]}, "names", "A member of `names` must be a string of 1 to 1,100 characters, not 5."),
    (r.Resolve, {"names": [""]}, "names", "not ''."),
    (r.Check, {"ids": 5}, "ids", "`ids` must be a list, not 5."),
    (r.Check, {"ids": {}}, "ids", "not an object."),
    (r.Check, {"ids": [], "question": ""}, "question", "`question` must be a string that is not blank"),
    (r.Replay, {"offsets": [-1]}, "offsets", "A member of `offsets` must be an integer of at least 0, not -1."),
    (r.Replay, {"dry_run": "yes"}, "dry_run", "`dry_run` must be true or false, not 'yes'."),
    (r.Rebuild, {"future": "later"}, "future", "`future` must be 'wait' or 'apply', not 'later'."),
    (r.Rebuild, {"rules": [5]}, "rules", "or an object with `name` and `text`, not 5."),
)
PARAMETERS: tuple[tuple[type[Struct], Mapping[str, str | list[str]], str, str], ...] = (
    (r.GetFrontier, {"scope": ["a"]}, "scope", "A member of `scope` must look like package=lodash, not 'a'."),
    (r.GetHistory, {"scope": ["a="]}, "scope", "not 'a='."),
    (r.Explain, {"name": ""}, "name", "`name` must be a string of 1 to 1,100 characters, not ''."),
    (r.Subscribe, {"view": "zz"}, "view", "`view` must be 'record' or 'document' or 'scope', not 'zz'."),
    (r.Subscribe, {"after": "1" * 8_001}, "after", "not a string of 8,001 characters."),
)
CALLS: tuple[tuple[str, str, Callable[[Calls], object]], ...] = (
    ("documents", "or a list of these, not 5.", lambda calls: calls.publish(5)),  # type: ignore[arg-type]
    ("documents", "or a list of these, not null.", lambda calls: calls.publish(None)),  # type: ignore[arg-type]
    ("documents", "Cannot publish an int.", lambda calls: calls.publish([5])),  # type: ignore[list-item]
    ("text", "not 5.", lambda calls: calls.search(5)),  # type: ignore[arg-type]
    ("text", "not an object.", lambda calls: calls.search(object())),  # type: ignore[arg-type]
    ("encoding", "half a surrogate pair", lambda calls: calls.search("\ud800")),
    ("names", "`names` must be a list of strings, not 5.", lambda calls: calls.resolve(5)),  # type: ignore[arg-type]
    ("names", "a list of strings, not 'tea'.", lambda calls: calls.resolve("tea")),
    ("names", "`names` has a member that cannot", lambda calls: calls.resolve([object()])),  # type: ignore[list-item]
    ("ids", "`ids` must be a list of strings, not 5.", lambda calls: calls.check(5)),  # type: ignore[arg-type]
    ("name", "not 5.", lambda calls: calls.explain(5)),  # type: ignore[arg-type]
    ("name", "not ''.", lambda calls: calls.explain("")),
    ("scope", "`scope` must be KEY=VALUE", lambda calls: calls.history(5)),  # type: ignore[arg-type]
    ("scope", "not 'tea'.", lambda calls: calls.frontier("tea")),
    ("scope", "5, which is not a string.", lambda calls: calls.frontier({"a": 5})),  # type: ignore[dict-item]
    ("scope", "`scope` is empty.", lambda calls: calls.frontier({})),
    ("min_revisions", "'x' is not a pair.", lambda calls: calls.query("a", min_revisions=["x"])),  # type: ignore[list-item]
    ("min_revisions", "(id, revision), not 5.", lambda calls: calls.query("a", min_revisions=5)),  # type: ignore[arg-type]
    ("as_of", "`as_of` must be an aware datetime,", lambda calls: calls.query("a", as_of=5)),  # type: ignore[arg-type]
    ("as_of", "`as_of` is not a time.", lambda calls: calls.query("a", as_of="soon")),
    (
        "as_of",
        "outside the years 0001 to 9999",
        lambda calls: calls.query("a", as_of=datetime.min.replace(tzinfo=EAST)),
    ),
    ("scope", "no closing quotation mark.", lambda calls: calls.frontier('a="b')),
    ("scope", "`scope` must be KEY=VALUE", lambda calls: calls.frontier('a="\\x"')),
    ("offsets", "must be an integer, not a list of 1.", lambda calls: calls.replay(offsets=[[1]])),  # type: ignore[list-item]
    ("limit", "not 0.", lambda calls: calls.rejected(limit=0)),
    ("after", "not 'x'.", lambda calls: calls.rejected(after="x")),  # type: ignore[arg-type]
    ("corrected", "text or bytes, not 5.", lambda calls: calls.replay(5)),  # type: ignore[arg-type]
    ("corrected", "text or bytes, not 5.", lambda calls: calls.replay({1: 5})),  # type: ignore[dict-item]
    ("corrected", "`corrected[0].offset` must be", lambda calls: calls.replay({"a": b"x"})),  # type: ignore[dict-item]
    ("offsets", "a list of offsets, not 5.", lambda calls: calls.replay(offsets=5)),  # type: ignore[arg-type]
    ("offsets", "not 'a'.", lambda calls: calls.replay(offsets=["a"])),  # type: ignore[list-item]
    ("rules", "or a list of these, not 5.", lambda calls: calls.rebuild(5)),  # type: ignore[arg-type]
    ("future", "not 'later'.", lambda calls: calls.rebuild(future="later")),  # type: ignore[arg-type]
    ("view", "not 'zz'.", lambda calls: calls.subscribe(view="zz")),  # type: ignore[arg-type]
    ("after", "not 5.", lambda calls: calls.subscribe(after=5)),  # type: ignore[arg-type]
    ("types", "a list of strings, not 'a'.", lambda calls: calls.subscribe(types="a")),
    ("cursor_file", "must be a path, not 5.", lambda calls: calls.subscribe(cursor_file=5)),  # type: ignore[arg-type]
)
# The limit of a service, and that of the library where it is higher. Everything else is equal.
TWO_LIMITS = {
    (r.Query, "text"): (10_000, 100_000),
    (r.Query, "k"): (100, 1_000),
    (r.Query, "depth"): (200, 1_000),
    (r.Search, "text"): (10_000, 100_000),
    (r.Search, "k"): (100, 1_000),
    (r.Resolve, "names"): (1_000, 10_000),
    (r.GetDocuments, "names"): (100, 10_000),
    (r.GetAffected, "packages"): (1_000, 10_000),
    (r.Check, "ids"): (1_000, 10_000),
    (r.Check, "question"): (10_000, 100_000),
    (r.Check, "depth"): (200, 1_000),
    (r.GetChanges, "limit"): (1_000, r.SAFE_INTEGER_MAX),
    (r.GetFrontier, "limit"): (1_000, r.SAFE_INTEGER_MAX),
    (r.GetHistory, "limit"): (1_000, r.SAFE_INTEGER_MAX),
    (r.GetPending, "limit"): (1_000, r.SAFE_INTEGER_MAX),
    (r.GetRejected, "limit"): (1_000, r.SAFE_INTEGER_MAX),
    (r.Replay, "offsets"): (1_000, r.SAFE_INTEGER_MAX),
    (r.Replay, "corrected"): (100, r.SAFE_INTEGER_MAX),
    (r.Rebuild, "rules"): (200, 4_096),  # characters of each
}


@pytest.fixture(scope="module")
def library() -> Iterator[Engine]:
    with engine(ruleset=RULESET) as opened:
        yield opened


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with served(ruleset=RULESET, token=TOKEN) as connected:
        yield connected


def rejection(call: Callable[[], object]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        call()
    return caught.value


def problem(client: Client, kind: type[Struct], fields: Mapping[str, object]) -> tuple[str, str]:
    """Send the fields as they are, and return the code and the detail of the answer."""
    operation = {operation.request: operation for operation in OPERATIONS}.get(kind)  # type: ignore[arg-type]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    if operation is not None and operation.method == "POST":
        response = httpx.post(f"{client.url}{operation.path}", json=fields, headers=headers)
    else:
        path = operation.path.partition("{")[0] if operation is not None else SUBSCRIBE_PATH
        parameters = {} if operation is not None and operation.has_path_field else fields
        response = httpx.get(f"{client.url}{path}", params=parameters, headers=headers)  # type: ignore[arg-type]
    assert response.status_code == 400, response.text
    return response.json()["code"], response.json()["detail"]


@pytest.mark.parametrize(("kind", "fields", "code", "reason"), [*JSON_REQUESTS, *PARAMETERS])
def test_the_library_and_http_reject_the_same_in_the_same_words(
    client: Client, kind: type[Struct], fields: Mapping[str, object], code: str, reason: str
) -> None:
    error = rejection(lambda: check_request(kind(**fields)))
    http_code, detail = problem(client, kind, fields)

    assert (error.code, http_code) == (code, code)
    assert reason in str(error)
    assert reason in detail


@pytest.mark.parametrize(("code", "reason", "call"), CALLS)
def test_a_wrong_argument_is_named_by_the_library_and_the_client(
    library: Engine, client: Client, code: str, reason: str, call: Callable[[Calls], object]
) -> None:
    errors = [rejection(lambda calls=calls: call(calls)) for calls in (library, client)]  # type: ignore[misc]

    assert [error.code for error in errors] == [code, code]
    assert reason in str(errors[0])
    assert str(errors[0]) == str(errors[1])


def limits_of(hint: object) -> Iterator[tuple[int, int]]:
    inner, metas = split_hint(hint)
    for meta in metas:
        if meta.extra and IN_LIBRARY in meta.extra:
            yield (service_limit(meta), meta.extra[IN_LIBRARY])
    for part in get_args(inner):
        yield from limits_of(part)


def service_limit(meta: Meta) -> int:
    limit = meta.le if meta.le is not None else meta.max_length
    assert isinstance(limit, int)
    return limit


def test_only_these_limits_of_the_library_are_not_those_of_a_service() -> None:
    kinds: list[type[Struct]] = [*(operation.request for operation in OPERATIONS), r.Subscribe, r.Publish]
    declared = {
        (kind, name): limits for kind in kinds for name, hint in hints_of(kind).items() for limits in limits_of(hint)
    }

    assert declared == TWO_LIMITS


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("text", lambda calls: calls.query(LONG)),
        ("k", lambda calls: calls.query("a", k=101)),
        ("depth", lambda calls: calls.query("a", depth=900)),
        ("ids", lambda calls: calls.check(["a"] * 1_001)),
    ],
)
def test_a_service_rejects_what_only_the_library_accepts(
    library: Engine, client: Client, field: str, call: Callable[[Calls], object]
) -> None:
    call(library)

    assert rejection(lambda: call(client)).code == field


def test_what_is_only_too_long_for_one_request_is_sent_in_several(library: Engine, client: Client) -> None:
    for calls in (library, client):
        assert len(calls.resolve(["a"] * 1_001)) == 1_001
        assert calls.rejected(limit=1_001) == ()
        assert rejection(lambda calls=calls: calls.resolve(["a"] * 10_001)).code == "names"  # type: ignore[misc]


class Text(str):
    """A string of another class, as NumPy has it."""

    __slots__ = ()


class Number:
    """An integer of another class."""

    def __index__(self) -> int:
        return 3


def test_strings_and_integers_of_other_classes_are_accepted(library: Engine, client: Client) -> None:
    for calls in (library, client):
        assert calls.search(Text("tea"), k=Number()) == ()  # type: ignore[arg-type]
        [resolution] = calls.resolve([Text("tea")])
        assert type(resolution.name) is str


def test_the_empty_set_is_a_set(library: Engine, client: Client) -> None:
    for calls in (library, client):
        assert calls.resolve([]) == ()
        assert calls.check([]).holds


def test_an_invisible_revision_is_reported_in_the_same_words(library: Engine, client: Client) -> None:
    for calls in (library, client):
        with pytest.raises(NotVisible) as caught:
            calls.query("a", min_revisions=[("never", 2)], timeout_ms=20)
        assert str(caught.value) == "Revision 2 of never did not become visible in time. Was it accepted?"


def test_a_correction_may_be_text() -> None:
    with engine(ruleset=RULESET) as car:
        offset = car.publish([{"id": "a"}]).receipts[0].offset
        text = '{"id": "a", "type": "claim", "time": "2024-01-31"}'
        [replayed] = car.replay({offset: text})

    assert replayed.outcome == "replayed"


def test_a_closed_client_and_a_closed_engine_say_so() -> None:
    with engine(ruleset=RULESET) as car:
        pass
    closed = stream_car.connect("http://127.0.0.1:1")
    closed.close()
    for calls in (car, closed):
        error = rejection(lambda calls=calls: calls.query("a"))  # type: ignore[misc]
        assert (error.code, str(error)[-1]) == ("closed", ".")
        assert "is closed. " in str(error)
    assert rejection(lambda: next(iter(closed.subscribe()))).code == "closed"
    assert rejection(lambda: closed.publish({"id": "a"})).code == "closed"


async def test_a_closed_asynchronous_client_says_so() -> None:
    client = connect_async("http://127.0.0.1:1")
    await client.close()
    with pytest.raises(InvalidRequest) as caught:
        await client.status()

    assert caught.value.code == "closed"


def test_a_folder_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "a-file"
    file.write_text("x")
    for path in (file, file / "below", "/proc/nope", "a\0b", "", b"x", 5):
        error = rejection(lambda path=path: stream_car.open(path))  # type: ignore[misc]
        assert error.code == "path"
    assert rejection(lambda: stream_car.open(tmp_path / "new", future="later")).code == "future"  # type: ignore[arg-type]
    assert rejection(lambda: stream_car.open(tmp_path / "new", rules=5)).code == "rules"  # type: ignore[arg-type]
    assert rejection(lambda: stream_car.open(tmp_path / "new", ranking=5)).code == "ranking"  # type: ignore[arg-type]
    assert rejection(lambda: stream_car.open(tmp_path / "new", encoder=5)).code == "encoder"  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


def test_an_address_that_is_not_text_is_reported() -> None:
    assert rejection(lambda: stream_car.connect(5)).code == "url"  # type: ignore[arg-type]
    assert rejection(lambda: stream_car.connect("http://127.0.0.1:1", token=5)).code == "token"  # type: ignore[arg-type]


def test_a_document_that_json_cannot_hold_raises(library: Engine, client: Client) -> None:
    for calls in (library, client):
        with pytest.raises(InvalidDocument, match="not a JSON value"):
            calls.publish({"id": "a", "x": object()})
        with pytest.raises(StreamCarError, match="no time zone"):
            calls.publish({"id": "a", "time": datetime(2024, 1, 1)})  # noqa: DTZ001  the point of this test

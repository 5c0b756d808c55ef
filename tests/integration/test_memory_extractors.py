"""Extractors and judges of others around a memory: models behind an endpoint, and code that raises, hangs or lies."""

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import pytest

from stream_car.errors import InvalidRequest
from stream_car.memory import (
    ChatModel,
    Extractor,
    Fact,
    Judgement,
    LlmExtractor,
    LlmJudge,
    Memory,
    MemoryKey,
)

KEY = "staging::database"
HELD = "The staging database is db-3"
LATER = "The staging database is db-7"


class Endpoint(ThreadingHTTPServer):
    """An OpenAI-compatible endpoint that gives the answers it was given, one per request, and keeps the requests."""

    daemon_threads = True

    def __init__(self, replies: Sequence[tuple[int, str]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.requests: list[dict[str, object]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        endpoint = cast("Endpoint", self.server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint.requests.append({"path": self.path, "token": self.headers.get("Authorization"), **body})
        status, content = endpoint.replies.pop(0)
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        reply = json.dumps({"choices": [{"message": {"content": content}}], "usage": usage}).encode()
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments: object) -> None:
        """Keep quiet."""


@contextmanager
def endpoint(*replies: tuple[int, str]) -> Iterator[Endpoint]:
    server = Endpoint(replies)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def facts(subject: str, relation: str, value: str) -> tuple[int, str]:
    return 200, json.dumps({"facts": [{"subject": subject, "relation": relation, "object": value}]})


def test_a_model_finds_the_keys_of_texts_and_its_cost_is_counted() -> None:
    replies = [facts("the staging database", "host", "db-3"), (503, ""), facts("Staging database", "Host", "db-7")]
    with endpoint(*replies) as server:
        model = ChatModel(server.url, "small", token="secret")
        with Memory(extractor=LlmExtractor(model)) as memory:
            memory.add("Staging lives on db-3, folks")
            [added] = memory.add("By the way: staging went over to db-7")["results"]
        model.close()

    assert (added["event"], added["key"], added["object"]) == ("SUPERSEDE", "staging database::host", "db-7")
    first = server.requests[0]
    assert (first["path"], first["token"], first["temperature"]) == ("/v1/chat/completions", "Bearer secret", 0)
    assert cast("dict[str, object]", first["response_format"])["type"] == "json_schema"
    assert (model.usage.requests, model.usage.failures, model.usage.prompt_tokens) == (3, 0, 14)


@pytest.mark.parametrize(
    "reply",
    [
        (200, "no JSON"),
        (200, '{"facts": [{"subject": "x"}]}'),
        (200, '{"facts": "none"}'),
        (400, ""),
        facts("the staging database", "host", "db-9"),  # which is not in the text
        facts("the database db-7", "name", "db-7"),  # whose subject contains the value
        facts("", "host", "db-7"),
    ],
)
def test_what_a_model_makes_up_is_dropped_and_the_text_is_kept(reply: tuple[int, str]) -> None:
    with endpoint(reply) as server, Memory(extractor=LlmExtractor(ChatModel(server.url, "small", retries=0))) as memory:
        [added] = memory.add("Staging went over to db-7")["results"]

        assert added["key"].startswith("note ")
        assert [item["memory"] for item in memory.get_all()["results"]] == ["Staging went over to db-7"]


def test_a_model_that_is_away_costs_the_key_and_not_the_text() -> None:
    with endpoint() as server:
        url = server.url
    model = ChatModel(url, "small", retries=1, timeout=2)
    with Memory(extractor=LlmExtractor(model)) as memory:
        [added] = memory.add(LATER)["results"]

        assert (added["event"], memory.failures) == ("ADD", {"raised": 1})
    assert (model.usage.requests, model.usage.failures) == (2, 1)


def test_texts_with_a_key_are_not_sent() -> None:
    with endpoint() as server, Memory(extractor=LlmExtractor(ChatModel(server.url, "small"))) as memory:
        memory.add(HELD, key=KEY)
        memory.search("staging database")

        assert server.requests == []


class Raising:
    def extract(self, text: str) -> Sequence[Fact]:
        raise ZeroDivisionError(text)


class Hanging:
    def __init__(self) -> None:
        self.end = threading.Event()

    def extract(self, text: str) -> Sequence[Fact]:
        self.end.wait()
        return ()


class Returning:
    def __init__(self, value: object) -> None:
        self.value = value

    def extract(self, text: str) -> Sequence[Fact]:
        return cast("Sequence[Fact]", self.value)


@pytest.mark.parametrize(
    ("extractor", "failure"),
    [
        (Raising(), "raised"),
        (Returning(None), "nonsense"),
        (Returning("facts"), "nonsense"),
        (Returning([1]), "nonsense"),
        (Returning([Fact(MemoryKey("staging", "data\x00base"), "db-3")]), "nonsense"),
        (Returning([Fact(MemoryKey("", "database"), "db-3")]), "nonsense"),
        (Returning([Fact(MemoryKey("staging", "database"), "")]), "nonsense"),
        (Returning([Fact(MemoryKey("staging", "database"), "db-3", "x" * 10**6)]), "nonsense"),
        (Returning([Fact(MemoryKey("staging", "database"), "db-3")] * 1000), "nonsense"),
    ],
)
def test_an_extractor_that_fails_costs_the_key_and_not_the_text(
    extractor: Extractor, failure: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "stream_car.memory"), Memory(extractor=extractor) as memory:
        [added] = memory.add(HELD)["results"]

        assert (added["event"], added["memory"], memory.failures) == ("ADD", HELD, {failure: 1})
        assert added["key"].startswith("note ")
    assert len(caplog.records) == 1


def test_an_extractor_that_hangs_is_left_after_the_time_limit_and_then_not_called() -> None:
    hanging = Hanging()
    with Memory(extractor=hanging, time_limit=0.01) as memory:
        for number in range(6):
            memory.add(f"Sentence {number}")

        assert memory.failures == {"timed_out": 4, "busy": 2}
        assert len(memory.get_all()["results"]) == 6
    hanging.end.set()


def test_a_time_limit_must_be_positive() -> None:
    with pytest.raises(InvalidRequest) as caught:
        Memory(time_limit=0)

    assert caught.value.code == "time_limit"


class Judging:
    def __init__(self, verdict: object) -> None:
        self.verdict = verdict
        self.seen: list[tuple[str, list[str]]] = []

    def judge(self, candidate: str, existing: Sequence[str]) -> Judgement:
        self.seen.append((candidate, list(existing)))
        return cast("Judgement", self.verdict)


@pytest.mark.parametrize(
    ("verdict", "event", "kept"),
    [
        (Judgement("contradict"), "SUPERSEDE", [LATER]),
        (Judgement("duplicate"), "REINFORCE", [LATER]),
        (
            Judgement("merge", "The staging databases are db-3 and db-7"),
            "SUPERSEDE",
            ["The staging databases are db-3 and db-7"],
        ),
        (Judgement("novel"), "ADD", [HELD, LATER]),
        (Judgement("merge"), "SUPERSEDE", [LATER]),  # without a text: as without a judge
        ("duplicate", "SUPERSEDE", [LATER]),
    ],
)
def test_a_judge_decides_inside_one_key(verdict: object, event: str, kept: list[str]) -> None:
    judge = Judging(verdict)
    with Memory(judge=judge) as memory:
        memory.add("The production database is db-1", key="production::database")
        memory.add(HELD, key=KEY)
        [added] = memory.add(LATER, key=KEY)["results"]
        memory.forget("production::database")

        assert added["event"] == event
        assert sorted(item["memory"] for item in memory.get_all()["results"]) == kept
    assert judge.seen == [(LATER, [HELD])]


def test_a_model_judges_by_its_endpoint() -> None:
    with endpoint((200, '{"relation": "duplicate", "merged_text": ""}')) as server:
        judge = LlmJudge(ChatModel(server.url, "small"))
        with Memory(judge=judge) as memory:
            memory.add(HELD, key=KEY)
            [added] = memory.add("db-3 it is", key=KEY)["results"]

    assert added["event"] == "REINFORCE"
    assert HELD in str(server.requests[0]["messages"])


@pytest.mark.parametrize(
    ("earlier", "change", "retired"),
    [
        (["The staging database is db-3."], "Staging moved from db-3 to db-7.", 1),
        (["The oven is 180 degrees."], "I turned the oven up to 200.", 1),
        (["The staging database is db-3.", "The staging replica is db-3."], "Staging moved from db-3 to db-7.", 0),
        (["The production database is db-3."], "Staging moved from db-3 to db-7.", 0),
        (["The staging database is db-4."], "Staging moved from db-3 to db-7.", 0),
    ],
)
def test_a_change_means_the_one_known_key_that_has_the_former_value(
    earlier: list[str], change: str, retired: int
) -> None:
    with Memory() as memory:
        for text in earlier:
            memory.add(text)
        added = memory.add(change)["results"]

        assert sum(len(item["retired"]) for item in added) == retired


@pytest.mark.parametrize("bad", ["\x00", "\ud800"])
def test_of_a_text_with_an_unfit_character_nothing_is_written(bad: str) -> None:
    with Memory() as memory:
        with pytest.raises(InvalidRequest) as caught:
            memory.add(f"The admin port is 8080. The debug port is 9090. {bad}")

        assert caught.value.code == "messages"
        assert memory.get_all()["results"] == []


def test_a_memory_bound_to_an_owner_reaches_no_memory_of_another_by_id() -> None:
    with Memory(user_id="ada") as ada:
        [held] = ada.add(HELD, key=KEY)["results"]
        [tentative] = ada.add("db-9", key="other::database", validity="tentative")["results"]
        bob = Memory(engine=ada._calls, user_id="bob")

        assert bob.get(held["id"]) is None
        for call in (bob.delete, bob.confirm, lambda name: bob.update(name, "db-9")):
            with pytest.raises(InvalidRequest) as caught:
                call(held["id"])
            assert caught.value.code == "memory_id"
        with pytest.raises(InvalidRequest):
            bob.confirm(tentative["id"])
        assert bob.history(held["id"]) == []
        assert Memory(engine=ada._calls).get(held["id"]) is not None  # bound to nobody: reaches everybody's
        assert [item["memory"] for item in ada.get_all()["results"]] == [HELD]

"""The client against a real server: the same calls, values and errors as the engine's own."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import stream_car
from stream_car import AsyncClient, Client, Engine, InvalidRequest, NotVisible, Unavailable
from stream_car.api.messages import Progress
from stream_car.codec import DEFAULTS, encode
from stream_car.settings import ServerSettings
from tests.integration.test_service_rebuild import PEACE, TOKEN
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import day, document, engine
from tests.support.http_service import serving
from tests.support.relay import relaying

pytestmark = on_both
ODD = "a/b%2F c?d#e&é=\u2028\"'"
DOCUMENTS = (
    document("c1", topic="tea"),
    document("d1", "denial", 3, topic="tea", text="tea is void"),
    document("other", topic="coffee"),
    document(ODD, topic="odd, one"),
    document("..", topic="tea"),
    document("later", at=5000, topic="tea"),
)
MANGLED: tuple[bytes, ...] = (
    b'{"id": "pretty",\n "type": "claim",\n "time": "2020-01-01T00:00:00Z"}\n',
    b'{"id": "broken\n", "type": "claim"}',
    b"",
    b"  \n ",
    b'[{"id": "in-a-list"}]',
    b"[",
    b'{"id": "half',
    b"\xff\xfe",
    b' {"id": "led", "type": "claim", "time": "2020-01-01T00:00:00Z"} ',
    b'{"id": "' + b"x" * DEFAULTS.document + b'"}',
    encode(document("whole", topic="tea")),
)

Call = Callable[[Client | Engine], object]
CALLS: dict[str, Call] = {
    "query": lambda car: car.query("about tea", k=3, depth=4),
    "query within a budget": lambda car: car.query("about tea", budget=1),
    "query as of": lambda car: car.query("about tea", as_of=day(1)),
    "relevance": lambda car: car.relevance("tea", 2),
    "resolve": lambda car: car.resolve(["c1", "d1#4", "nobody", ODD]),
    "resolve many": lambda car: car.resolve(["c1"] * 2500),
    "check": lambda car: car.check(["c1"], question="tea"),
    "frontier": lambda car: car.frontier({"topic": "tea"}),
    "frontier by name": lambda car: car.frontier('topic="odd, one"', as_of=day(1)),
    "history": lambda car: car.history({"topic": "tea"}),
    "no history": lambda car: car.history({"topic": "nothing"}),
    "changes": lambda car: car.changes(),
    "some changes": lambda car: car.changes({"topic": "tea"}, after=1, limit=1),
    "explain": lambda car: car.explain("c1", as_of=day(10)),
    "explain an odd name": lambda car: car.explain(ODD),
    "explain dots": lambda car: car.explain(".."),
    "rejected": lambda car: car.rejected(limit=5),
    "rejected behind": lambda car: car.rejected(after=car.rejected(limit=1)[0].oseq),
}


def answers(car: Client | Engine) -> dict[str, object]:
    return {name: call(car) for name, call in CALLS.items()}


@only_embedded("it compares with the engine that is served")
async def test_every_call_answers_what_the_engine_answers() -> None:
    async with serving() as running:
        running.engine.publish([*DOCUMENTS, b"{", b"\xff", {"id": "no-type"}])
        with stream_car.connect(running.url) as car:
            told = await asyncio.to_thread(answers, car)

        assert told == answers(running.engine)


@only_embedded("it compares with the engine that is served")
async def test_the_asynchronous_client_makes_the_same_calls() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        own = running.engine
        published = await car.publish(DOCUMENTS)
        assert [receipt.outcome for receipt in published.receipts] == ["accepted"] * 5 + ["pending"]
        assert await car.query("about tea", after=[("d1", 1)]) == own.query("about tea")
        assert await car.relevance("tea") == own.relevance("tea")
        assert await car.resolve(["c1"], as_of=day(1)) == own.resolve(["c1"], as_of=day(1))
        assert await car.check(["c1"]) == own.check(["c1"])
        assert await car.frontier({"topic": "tea"}) == own.frontier({"topic": "tea"})
        assert await car.history("topic=tea") == own.history("topic=tea")
        assert await car.changes(limit=2) == own.changes(limit=2)
        assert await car.explain("c1") == own.explain("c1")
        assert (await car.retract("other")).outcome == "retracted"
        assert await car.rejected() == own.rejected()
        assert [(one.id, one.revision, one.time) for one in await car.pending()] == list(own.pending())
        assert (await car.rules()).domains == own.ruleset.packs
        assert (await car.status()).generation == own.generation


def mended(name: str) -> bytes:
    return encode(document(name, topic="tea"))


@only_embedded("nothing is replayed from a query worker")
async def test_refused_input_is_replayed_once_as_it_came_or_mended() -> None:
    async with serving() as running:
        running.engine.publish([b"{", b"\xff", {"id": "no-type"}, document("c1", topic="tea")])
        with stream_car.connect(running.url) as car:
            as_it_came = await asyncio.to_thread(car.replay)
            tried = await asyncio.to_thread(lambda: car.replay({0: mended("m0"), 1: b"\xfe"}, only=[2], trial=True))
            sent = await asyncio.to_thread(lambda: car.replay({0: mended("m0"), 1: mended("m1")}))
            again = await asyncio.to_thread(lambda: car.replay({0: mended("m0")}))
            with pytest.raises(InvalidRequest, match="input 3 was not rejected"):
                await asyncio.to_thread(lambda: car.replay(only=[3]))

        assert [one.outcome for one in as_it_came] == ["refused"] * 3
        assert [(one.outcome, one.receipt) for one in tried] == [
            ("replayed", None),
            ("refused", None),
            ("refused", None),
        ]
        assert [one.receipt.id if one.receipt is not None else None for one in sent] == ["m0", "m1"]
        assert [(one.outcome, one.at) for one in again] == [("before", sent[0].at)]
        assert running.engine.next_offset == 6


@only_embedded("nothing is replayed from a query worker")
async def test_many_refused_inputs_are_replayed_in_pieces_by_the_asynchronous_client_too() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        running.engine.publish([b"{"] * 2100)
        told = await car.replay({n: mended(f"m{n}") for n in range(2100)})

        assert [one.receipt.id for one in told if one.receipt is not None] == [f"m{n}" for n in range(2100)]
        assert running.engine.header().documents == 2100


@only_embedded("workers do not change their rules while they run")
async def test_rules_are_changed_from_afar(tmp_path: Path) -> None:
    file = tmp_path / "peace.toml"
    file.write_text(PEACE)
    async with serving(token=TOKEN) as running, stream_car.connect_async(running.url, token=TOKEN) as car:
        await car.publish(DOCUMENTS)
        before = (await car.status()).generation
        begun = await car.rebuild([file], dry_run=True)
        assert (begun.state, begun.dry_run) == ("building", True)
        assert [one.id for one in (await followed(car)).differences] == ["..", "c1"]
        await car.rebuild([str(file)])
        assert (await followed(car)).state == "switched"
        assert (await car.status()).generation != before
        with stream_car.connect(running.url, token=TOKEN) as other:
            with pytest.raises(InvalidRequest, match=r"nowhere\.toml cannot be read"):
                other.rebuild([tmp_path / "nowhere.toml"])
            with pytest.raises(InvalidRequest, match="nothing-of-the-kind"):
                await asyncio.to_thread(lambda: other.rebuild(["nothing-of-the-kind"]))
            assert (await asyncio.to_thread(other.rebuilding)).state == "switched"


async def followed(car: AsyncClient) -> Progress:
    async with asyncio.timeout(30):
        while (said := await car.rebuilding()).state in ("building", "comparing"):
            await asyncio.sleep(0.01)
    return said


@only_embedded("it compares with the engine that is served")
async def test_what_is_published_arrives_byte_for_byte_with_the_receipts_of_the_engine() -> None:
    async with serving() as running:
        with stream_car.connect(running.url) as car, engine() as other:
            told = await asyncio.to_thread(car.publish, MANGLED)
            expected = other.publish(MANGLED)
            bare = [(receipt.outcome, receipt.id, receipt.code) for receipt in told.receipts]

            assert bare == [(receipt.outcome, receipt.id, receipt.code) for receipt in expected.receipts]
            kept = {one.offset: one.value for one in running.engine.rejected()}
            assert kept == {one.offset: one.value[: DEFAULTS.document + 1] for one in other.rejected()}


@in_the_gate
async def test_a_long_publication_goes_in_pieces_and_is_told_in_order() -> None:
    async with serving() as running:
        with stream_car.connect(running.url) as car:
            told = await asyncio.to_thread(car.publish, (document(f"n{n}", topic=f"t{n}") for n in range(2500)))

    assert [receipt.id for receipt in told.receipts] == [f"n{n}" for n in range(2500)]


@only_embedded("it counts what the engine has")
async def test_an_answer_that_is_lost_on_its_way_does_not_publish_twice() -> None:
    async with serving() as running, relaying(running.url) as relay:
        with stream_car.connect(relay.url) as car:
            relay.cuts = 1
            told = await asyncio.to_thread(car.publish, DOCUMENTS[:2])

        assert [receipt.outcome for receipt in told.receipts] == ["duplicate", "duplicate"]
        assert running.engine.header().documents == 2
        assert len(running.engine.changes()) == 2


@only_embedded("it counts what the engine has")
async def test_a_retraction_of_whatever_stands_is_not_repeated_when_its_answer_is_lost() -> None:
    async with serving() as running, relaying(running.url) as relay:
        with stream_car.connect(relay.url) as car:
            await asyncio.to_thread(car.publish, DOCUMENTS[:1])
            relay.cuts = 1
            with pytest.raises(Unavailable, match="not known"):
                await asyncio.to_thread(car.retract, "c1")

        assert running.engine.next_offset == 2


def ask_wrongly(car: Client) -> list[str]:
    """The codes of questions that cannot be answered."""
    wrong: list[Callable[[], object]] = [
        lambda: car.query(" "),
        lambda: car.query("tea", k=0),
        lambda: car.query("tea", budget=0),
        lambda: car.query("tea", after=[("later", 1)]),
        lambda: car.query("tea", after=[("nobody", 1)], timeout_ms=1),
        lambda: car.frontier("no scope"),
        lambda: car.frontier({}),
        lambda: car.frontier({"topic": "tea"}, as_of=1 << 62),
        lambda: car.resolve(["x" * 2000]),
    ]
    codes = []
    for question in wrong:
        with pytest.raises((InvalidRequest, NotVisible)) as caught:
            question()
        codes.append(str(getattr(caught.value, "code", "")))
    return codes


@in_the_gate
async def test_errors_are_those_of_the_library_with_their_codes() -> None:
    async with serving() as running:
        await running.publish(DOCUMENTS)
        with stream_car.connect(running.url) as car:
            codes = await asyncio.to_thread(ask_wrongly, car)

    assert codes == ["text", "k", "budget", "pending", "not_visible", "scope", "scope", "as_of", "names"]


async def test_a_token_lets_in_and_without_it_nobody_is() -> None:
    async with serving(token="a-token-for-tests") as running:
        async with stream_car.connect_async(running.url, token="a-token-for-tests") as car:
            assert (await car.status()).documents == 0
        async with stream_car.connect_async(running.url) as car:
            with pytest.raises(InvalidRequest) as caught:
                await car.status()

    assert caught.value.code == "token"


@only_embedded("nothing is asked")
@pytest.mark.parametrize(
    "url", ["", "nowhere", "ftp://127.0.0.1", "http://", "http://name:word@127.0.0.1", "http://[::"]
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        stream_car.connect(url)

    assert caught.value.code == "url"


@only_embedded("nothing is asked")
def test_an_address_where_nobody_is_says_what_to_do() -> None:
    with Client("http://127.0.0.1:9", retries=1) as car, pytest.raises(Unavailable, match="stream-car up"):
        car.status()


@only_embedded("two at one address")
async def test_a_service_that_starts_late_is_waited_for() -> None:
    async with serving() as first:
        await first.get("/livez")
        port = int(first.url.rpartition(":")[2])
    late = asyncio.create_task(_status_of(f"http://127.0.0.1:{port}"))
    await asyncio.sleep(0)
    async with serving(settings=ServerSettings(port=port)):
        assert (await late) == 0


async def _status_of(url: str) -> int:
    async with AsyncClient(url, retries=8) as car:
        return (await car.status()).documents

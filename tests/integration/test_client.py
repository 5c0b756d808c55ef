"""The client against a real server: the same calls, values and errors as the engine's own."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import stream_car
from stream_car import AsyncClient, Client, Engine, InvalidRequest, InvalidRules, NotVisible, RebuildStatus, Unavailable
from stream_car.codec import DEFAULT_LIMITS, encode
from stream_car.settings import ServerSettings
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.contract import ODD_ID, PEACE
from tests.support.engines import document, engine, on_day
from tests.support.http_service import TOKEN, serving
from tests.support.relay import relaying

pytestmark = on_both
DOCUMENTS = (
    document("c1", topic="tea"),
    document("d1", "denial", 3, topic="tea", text="tea is void"),
    document("other", topic="coffee"),
    document(ODD_ID, topic="odd, one"),
    document("..", topic="tea"),
    document("later", at=5000, topic="tea"),
)
MALFORMED: tuple[bytes, ...] = (
    b'{"id": "pretty",\n "type": "claim",\n "time": "2020-01-01T00:00:00Z"}\n',
    b'{"id": "broken\n", "type": "claim"}',
    b"",
    b"  \n ",
    b'[{"id": "in-a-list"}]',
    b"[",
    b'{"id": "half',
    b"\xff\xfe",
    b' {"id": "led", "type": "claim", "time": "2020-01-01T00:00:00Z"} ',
    b'{"id": "' + b"x" * DEFAULT_LIMITS.document + b'"}',
    encode(document("whole", topic="tea")),
)

Call = Callable[[Client | Engine], object]
CALLS: dict[str, Call] = {
    "query": lambda car: car.query("about tea", k=3, depth=4),
    "query within a budget": lambda car: car.query("about tea", budget=1),
    "query as of": lambda car: car.query("about tea", as_of=on_day(1)),
    "search": lambda car: car.search("tea", 2),
    "resolve": lambda car: car.resolve(["c1", "d1#4", "nobody", ODD_ID]),
    "resolve many": lambda car: car.resolve(["c1"] * 2500),
    "check": lambda car: car.check(["c1"], question="tea"),
    "frontier": lambda car: car.frontier({"topic": "tea"}),
    "frontier by name": lambda car: car.frontier('topic="odd, one"', as_of=on_day(1)),
    "history": lambda car: car.history({"topic": "tea"}),
    "no history": lambda car: car.history({"topic": "nothing"}),
    "changes": lambda car: car.changes(),
    "changes after the first": lambda car: car.changes({"topic": "tea"}, after=car.changes()[0].position, limit=1),
    "explain": lambda car: car.explain("c1", as_of=on_day(10)),
    "explain an odd name": lambda car: car.explain(ODD_ID),
    "explain dots": lambda car: car.explain(".."),
    "rejected": lambda car: car.rejected(limit=5),
    "rejected after the first": lambda car: car.rejected(after=car.rejected(limit=1)[0].number),
}


def answers(car: Client | Engine) -> dict[str, object]:
    return {name: call(car) for name, call in CALLS.items()}


@only_embedded("it compares with the engine that is served")
async def test_every_call_answers_what_the_engine_answers() -> None:
    async with serving() as running:
        running.engine.publish([*DOCUMENTS, b"{", b"\xff", {"id": "no-type"}])
        with stream_car.connect(running.url) as car:
            received = await asyncio.to_thread(answers, car)

        assert received == answers(running.engine)


@only_embedded("it compares with the engine that is served")
async def test_the_asynchronous_client_makes_the_same_calls() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        own = running.engine
        published = await car.publish(DOCUMENTS)
        assert [receipt.outcome for receipt in published.receipts] == ["accepted"] * 5 + ["pending"]
        assert await car.query("about tea", min_revisions=[("d1", 1)]) == own.query("about tea")
        assert await car.search("tea") == own.search("tea")
        assert await car.resolve(["c1"], as_of=on_day(1)) == own.resolve(["c1"], as_of=on_day(1))
        assert await car.check(["c1"]) == own.check(["c1"])
        assert await car.frontier({"topic": "tea"}) == own.frontier({"topic": "tea"})
        assert await car.history("topic=tea") == own.history("topic=tea")
        assert await car.changes(limit=2) == own.changes(limit=2)
        assert await car.explain("c1") == own.explain("c1")
        assert (await car.retract("other")).outcome == "retracted"
        assert await car.rejected() == own.rejected()
        assert await car.pending() == own.pending()
        assert await car.rules() == own.rules()
        assert await car.status() == own.status()


def corrected(name: str) -> bytes:
    return encode(document(name, topic="tea"))


@only_embedded("nothing is replayed from a query worker")
async def test_rejected_input_is_replayed_once_as_it_was_or_corrected() -> None:
    async with serving() as running:
        running.engine.publish([b"{", b"\xff", {"id": "no-type"}, document("c1", topic="tea")])
        with stream_car.connect(running.url) as car:
            as_it_was = await asyncio.to_thread(car.replay)
            dry = await asyncio.to_thread(
                lambda: car.replay({0: corrected("m0"), 1: b"\xfe"}, offsets=[2], dry_run=True)
            )
            sent = await asyncio.to_thread(lambda: car.replay({0: corrected("m0"), 1: corrected("m1")}))
            again = await asyncio.to_thread(lambda: car.replay({0: corrected("m0")}))
            with pytest.raises(InvalidRequest, match="3 was not rejected") as caught:
                await asyncio.to_thread(lambda: car.replay(offsets=[3]))

        assert caught.value.code == "offset"
        assert [replayed.outcome for replayed in as_it_was] == ["rejected"] * 3
        outcomes = {replayed.offset: (replayed.outcome, replayed.receipt) for replayed in dry}
        assert outcomes == {0: ("replayed", None), 1: ("rejected", None), 2: ("rejected", None)}
        assert [replayed.receipt.id if replayed.receipt is not None else None for replayed in sent] == ["m0", "m1"]
        assert [(replayed.outcome, replayed.at) for replayed in again] == [("replayed_before", sent[0].at)]
        assert running.engine.directory.next_offset == 6


@only_embedded("nothing is replayed from a query worker")
async def test_many_rejected_inputs_are_replayed_in_parts_by_the_asynchronous_client_too() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        running.engine.publish([b"{"] * 2100)
        replayed = await car.replay({n: corrected(f"m{n}") for n in range(2100)})

        assert [item.receipt.id for item in replayed if item.receipt is not None] == [f"m{n}" for n in range(2100)]
        assert running.engine.status().documents == 2100


@only_embedded("workers do not change their rules while they run")
async def test_rules_are_changed_over_the_network(tmp_path: Path) -> None:
    file = tmp_path / "peace.toml"
    file.write_text(PEACE)
    async with serving(token=TOKEN) as running, stream_car.connect_async(running.url, token=TOKEN) as car:
        await car.publish(DOCUMENTS)
        before = (await car.status()).generation
        begun = await car.rebuild([file], dry_run=True, wait=False)
        assert (begun.state, begun.dry_run) == ("building", True)
        assert [difference.id for difference in (await rebuilt(car)).differences] == ["..", "c1"]
        assert (await car.rebuild([str(file)])).state == "switched"
        assert (await car.status()).generation != before
        with stream_car.connect(running.url, token=TOKEN) as other:
            with pytest.raises(InvalidRequest, match=r"nowhere\.toml cannot be read"):
                other.rebuild([tmp_path / "nowhere.toml"])
            with pytest.raises(InvalidRules, match="nothing-of-the-kind"):
                await asyncio.to_thread(lambda: other.rebuild(["nothing-of-the-kind"]))
            assert (await asyncio.to_thread(other.rebuild_status)).state == "switched"


async def rebuilt(car: AsyncClient) -> RebuildStatus:
    """Return the status of a rebuild when it has ended."""
    async with asyncio.timeout(30):
        while (status := await car.rebuild_status()).is_running:
            await asyncio.sleep(0.01)
    return status


@only_embedded("it compares with the engine that is served")
async def test_what_is_published_arrives_byte_for_byte_with_the_receipts_of_the_engine() -> None:
    async with serving() as running:
        with stream_car.connect(running.url) as car, engine() as other:
            published = await asyncio.to_thread(car.publish, MALFORMED)
            expected = other.publish(MALFORMED)

            assert published == expected
            values = {rejected.offset: rejected.value for rejected in running.engine.rejected()}
            assert values == {
                rejected.offset: rejected.value[: DEFAULT_LIMITS.document + 1] for rejected in other.rejected()
            }


@in_the_gate
async def test_a_long_publication_is_sent_in_parts_and_has_its_receipts_in_order() -> None:
    async with serving() as running:
        with stream_car.connect(running.url) as car:
            published = await asyncio.to_thread(car.publish, (document(f"n{n}", topic=f"t{n}") for n in range(2500)))

    assert [receipt.id for receipt in published.receipts] == [f"n{n}" for n in range(2500)]


@only_embedded("it counts what the engine has")
async def test_a_response_that_is_lost_on_its_way_does_not_publish_twice() -> None:
    async with serving() as running, relaying(running.url) as relay:
        with stream_car.connect(relay.url) as car:
            relay.cuts = 1
            published = await asyncio.to_thread(car.publish, DOCUMENTS[:2])

        assert [receipt.outcome for receipt in published.receipts] == ["duplicate", "duplicate"]
        assert running.engine.status().documents == 2
        assert len(running.engine.changes()) == 2


@only_embedded("it counts what the engine has")
async def test_a_retraction_of_any_revision_is_not_repeated_when_its_response_is_lost() -> None:
    async with serving() as running, relaying(running.url) as relay:
        with stream_car.connect(relay.url) as car:
            await asyncio.to_thread(car.publish, DOCUMENTS[:1])
            relay.cuts = 1
            with pytest.raises(Unavailable, match="may have been carried out"):
                await asyncio.to_thread(car.retract, "c1")

        assert running.engine.status().next_offset == 2


def codes_of_invalid_requests(car: Client) -> list[str]:
    requests: list[Callable[[], object]] = [
        lambda: car.query(" "),
        lambda: car.query("tea", k=0),
        lambda: car.query("tea", budget=0),
        lambda: car.query("tea", min_revisions=[("later", 1)]),
        lambda: car.query("tea", min_revisions=[("nobody", 1)], timeout_ms=1),
        lambda: car.frontier("no scope"),
        lambda: car.frontier({}),
        lambda: car.frontier({"topic": "tea"}, as_of="the day after tomorrow"),
        lambda: car.resolve(["x" * 2000]),
    ]
    codes = []
    for send in requests:
        with pytest.raises((InvalidRequest, NotVisible)) as caught:
            send()
        codes.append(str(getattr(caught.value, "code", "")))
    return codes


@in_the_gate
async def test_errors_are_those_of_the_library_with_their_codes() -> None:
    async with serving() as running:
        await running.publish(DOCUMENTS)
        with stream_car.connect(running.url) as car:
            codes = await asyncio.to_thread(codes_of_invalid_requests, car)

    assert codes == ["text", "k", "budget", "pending", "not_visible", "scope", "scope", "as_of", "names"]


async def test_a_client_with_the_token_is_answered_and_one_without_it_is_not() -> None:
    async with serving(token=TOKEN) as running:
        async with stream_car.connect_async(running.url, token=TOKEN) as car:
            assert (await car.status()).documents == 0
        async with stream_car.connect_async(running.url) as car:
            with pytest.raises(InvalidRequest) as caught:
                await car.status()

    assert caught.value.code == "token"


@only_embedded("nothing is sent")
@pytest.mark.parametrize(
    "url", ["", "nowhere", "ftp://127.0.0.1", "http://", "http://name:word@127.0.0.1", "http://[::"]
)
def test_a_text_that_is_not_a_url_is_rejected_at_once(url: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        stream_car.connect(url)

    assert caught.value.code == "url"


@only_embedded("nothing is sent")
def test_an_address_without_a_service_names_the_command_that_starts_it() -> None:
    with Client("http://127.0.0.1:9", retries=1) as car, pytest.raises(Unavailable, match="stream-car serve"):
        car.status()


@only_embedded("two at one address")
async def test_a_client_waits_for_a_service_that_starts_late() -> None:
    async with serving() as first:
        await first.get("/livez")
        port = int(first.url.rpartition(":")[2])
    late = asyncio.create_task(_documents_at(f"http://127.0.0.1:{port}"))
    await asyncio.sleep(0)
    async with serving(settings=ServerSettings(port=port)):
        assert (await late) == 0


async def _documents_at(url: str) -> int:
    async with AsyncClient(url, retries=8) as car:
        return (await car.status()).documents

"""Query worker processes over a real Kafka and a real Redis answer as the library does."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import httpx
from msgspec.structs import replace

import stream_car
from stream_car.codec import decode
from stream_car.http.tokens import make_token
from stream_car.queries.answers import Answer, Resolution
from stream_car.subscriptions.events import DocumentChange, Event, SnapshotDocument, SnapshotEnd
from tests.chaos.installation import Installation
from tests.support.command_line import invoke
from tests.support.engines import document
from tests.support.mcp_over_http import call_tool
from tests.support.passwords import CURRENT, QUESTION as ABOUT_PASSWORDS, SUPERSEDED, policy
from tests.support.servers import in_one_worker
from tests.support.webhook_receiver import ALLOWED, SECRET, receiving

pytestmark = in_one_worker(__name__)

FEED = Path(stream_car.__file__).parent / "demo" / "feed.jsonl"


async def snapshot_of(subscription: AsyncIterator[Event]) -> list[Event]:
    """Return the events of a subscription up to the end of its snapshot."""
    events: list[Event] = []
    async with asyncio.timeout(20):
        while not (events and isinstance(events[-1], SnapshotEnd)):
            events.append(await anext(subscription))
    return events


QUESTION = "is lodash 4.17.4 safe to use?"


async def test_a_query_worker_publishes_and_answers_like_the_library(kafka: str, redis: str, tmp_path: Path) -> None:
    lines = FEED.read_bytes().splitlines()
    ids = [decode(line).id for line in lines]
    with stream_car.open() as car:
        receipts = car.publish(lines).receipts
        answer = car.query(QUESTION)
        resolved = car.resolve(ids)
        explained = car.explain(ids[0])
    scoped = {receipt.id for receipt in receipts if receipt.scopes}
    in_force = {resolution.name for resolution in resolved if resolution.status == "in_force"} & scoped
    revisions = [
        (receipt.id, receipt.revision)
        for receipt in receipts
        if receipt.outcome == "accepted" and receipt.id and receipt.revision
    ][-20:]
    async with Installation(kafka, redis, tmp_path, rules=()).open() as installation:
        worker, first = installation.worker(), installation.query_worker()
        await worker.assigned(5)
        await first.ready()
        async with stream_car.AsyncClient(await first.url()) as client:
            published = await client.publish(lines)
            first_answer = await client.query(QUESTION, min_revisions=revisions)
            resolved_by_first = await client.resolve(ids)
            explained_by_first = await client.explain(ids[0])
            rejected = await client.publish([b'{"id": "bad", "type": "unheard of", "time": "2024-01-01T00:00:00Z"}'])
            listed = await client.rejected()
            async with client.subscribe() as subscription:
                snapshot = await snapshot_of(subscription)
        second = installation.query_worker()
        await second.ready()
        async with stream_car.AsyncClient(await second.url()) as client:
            second_answer = await client.query(QUESTION)
            async with client.subscribe(after=snapshot[-1].cursor) as subscription:
                await client.publish([document("new", "fact", subject="new", relation="of")])
                async with asyncio.timeout(20):
                    change = await anext(subscription)
        codes = [await second.stop(), await first.stop()]

    assert [replace(receipt, offset=0) for receipt in published.receipts] == [
        replace(receipt, offset=0) for receipt in receipts
    ]
    assert controlling(first_answer) == controlling(second_answer) == controlling(answer)
    assert first_answer.certificate.complete == answer.certificate.complete
    assert statuses(resolved_by_first) == statuses(resolved)
    assert explained_by_first.status == explained.status
    assert [receipt.outcome for receipt in rejected.receipts] == ["rejected"]
    assert [rejection.id for rejection in listed] == ["bad"]
    assert {event.id for event in snapshot if isinstance(event, SnapshotDocument)} == in_force
    assert isinstance(change, DocumentChange)
    assert (change.id, change.status) == ("new", "in_force")
    assert codes == [0, 0]


def controlling(answer: Answer) -> list[list[str]]:
    """Return the ids of the controlling documents, group by group."""
    return [[evidence.document.id for evidence in group.controlling] for group in answer.groups]


def statuses(resolutions: Iterable[Resolution]) -> list[tuple[str, str]]:
    return [(resolution.name, resolution.status) for resolution in resolutions]


async def test_publishers_receive_what_was_decided_although_the_worker_is_killed(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    documents = [document(f"d{number}", "fact", subject=str(number), relation="of") for number in range(20)]
    async with Installation(kafka, redis, tmp_path, rules=()).open() as installation:
        victim, query_worker = installation.worker(), installation.query_worker()
        await victim.assigned(5)
        await query_worker.ready()
        async with stream_car.AsyncClient(await query_worker.url()) as client:
            publications = [asyncio.create_task(client.publish([item, b"{"])) for item in documents]
            victim.kill()
            await installation.worker().assigned(5)
            published = await asyncio.gather(*publications)
            again = await client.publish(documents)
            status = await client.status()

    for number, publication in enumerate(published):
        accepted, rejected = publication.receipts
        assert (accepted.id, rejected.outcome) == (f"d{number}", "rejected")
        assert accepted.outcome in ("accepted", "duplicate")  # a duplicate if the client had to try again
    assert again.outcomes == {"duplicate": 20}
    assert status.outcomes["accepted"] == status.documents == 20


async def test_a_query_worker_answers_agents_by_the_roles_of_their_tokens_and_sends_changes_to_webhooks(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    reader, reader_line = make_token("the-reader", ["read"])
    writer, writer_line = make_token("the-writer", ["read", "publish"])
    tokens, secret, settings = tmp_path / "tokens", tmp_path / "secret", tmp_path / "server.toml"
    tokens.write_text(f"{reader_line}\n{writer_line}\n")
    secret.write_text(SECRET)
    async with Installation(kafka, redis, tmp_path, rules=()).open() as installation:
        with receiving() as receiver:
            settings.write_text(
                f'token_file = "{tokens}"\n[[webhooks]]\nurl = "{receiver.url}"\nsecret_file = "{secret}"\n'
                f"allow = {list(ALLOWED)}\n"
            )
            worker = installation.worker()
            query_worker = installation.query_worker(index=tmp_path / "index", options=["--settings", str(settings)])
            query_worker.token = writer
            await worker.assigned(5)
            await query_worker.ready()
            url = await query_worker.url()
            async with stream_car.AsyncClient(url, token=writer) as publisher:
                await publisher.publish([policy(2022, "90 days"), policy(2024, "never")])
            async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
                explained = await call_tool(http, reader, "explain", {"name": SUPERSEDED})
                answer = await call_tool(http, reader, "ask", {"text": ABOUT_PASSWORDS})
                denied = await call_tool(http, reader, "remember", {"text": "x"})
                stranger = await http.post("/mcp", json={})
            [first_change] = await asyncio.to_thread(receiver.next)

    assert '"status":"superseded"' in explained.text
    assert CURRENT in answer.text
    assert (denied.isError, denied.text[:5], stranger.status_code) == (True, "role:", 401)
    assert (first_change.record, first_change.outcome) == (SUPERSEDED, "published")


def test_a_query_worker_with_webhooks_needs_a_directory_that_keeps_what_it_has_to_send(tmp_path: Path) -> None:
    settings = tmp_path / "server.toml"
    settings.write_text('[[webhooks]]\nurl = "https://x.example"\nsecret_file = "secret"\n')
    arguments = ("query-worker", "--settings", str(settings), "--kafka", "127.0.0.1:1")
    shown = invoke(*arguments, STREAM_CAR_REDIS="redis://127.0.0.1:1")

    assert shown.exit_code == 2
    assert "--index DIR" in shown.stderr

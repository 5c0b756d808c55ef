"""Rules are changed under a running service: over a real socket, with a subscriber, questions and publishers."""

import asyncio
from collections.abc import AsyncIterator
from errno import EIO, ENOSPC

import msgspec
import pytest

from stream_car import DocumentChange, RebuildStatus, Reset, SnapshotDocument, StatusCount
from stream_car.api import requests as r
from stream_car.codec import encode
from stream_car.errors import StreamCarError
from stream_car.local import concurrent_service
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.local.rebuild import NewGeneration
from tests.support.contract import PEACE
from tests.support.engines import document, engine
from tests.support.http_service import (
    CLAIM,
    DENIAL,
    TOKEN,
    Fields,
    ReceivedEvent,
    Running,
    as_fields,
    code_of,
    serving,
    take_until,
)

OTHER_RULES = {"rules": [{"name": "peace.toml", "text": PEACE}]}
PAIRS = 150


def pair(name: str) -> list[Fields]:
    """Return a claim, and what voids it under the rules that the service begins with."""
    return [as_fields(f"claim-{name}", topic=name), as_fields(f"denial-{name}", "denial", 5, topic=name)]


async def rebuilt(running: Running) -> RebuildStatus:
    """Return the status of the rebuild when it has ended."""
    async with asyncio.timeout(60):
        while True:
            status = msgspec.json.decode((await running.get("/v1/rebuild")).content, type=RebuildStatus)
            if status.state in ("switched", "compared", "failed"):
                return status


async def statuses_over_time(running: Running, answered: asyncio.Event, done: asyncio.Event) -> list[set[str]]:
    """Return the statuses of all claims, whenever they changed; each set is from one answer."""
    names = [f"claim-{n}" for n in range(PAIRS)]
    seen: list[set[str]] = []
    while not done.is_set():
        answer = (await running.post("/v1/resolve", {"names": names})).json()
        statuses = {resolution["status"] for resolution in answer}
        answered.set()
        if not seen or seen[-1] != statuses:
            seen.append(statuses)
    return seen


async def publish_until(running: Running, done: asyncio.Event) -> list[str]:
    """Publish pairs until done, and return their ids; each is looked for as soon as it is acknowledged."""
    names: list[str] = []
    while not done.is_set():
        documents = pair(f"late-{len(names)}")
        await running.post_documents(*documents)
        ids = [str(fields["id"]) for fields in documents]
        answer = (await running.post("/v1/resolve", {"names": ids})).json()
        assert "unknown" not in {resolution["status"] for resolution in answer}
        names += ids
    return names


async def fold(events: AsyncIterator[ReceivedEvent], last: str) -> tuple[set[str], list[str]]:
    """Return what is in force by the events up to the one about `last`, and the reasons of resets on the way."""
    in_force: set[str] = set()
    resets: list[str] = []
    async with asyncio.timeout(60):
        async for event in events:
            if event.event == "reset":
                resets.append(msgspec.json.decode(event.data, type=Reset).reason)
                in_force.clear()
            elif event.event == "snapshot-document":
                in_force.add(msgspec.json.decode(event.data, type=SnapshotDocument).id)
            elif event.event == "document-change":
                change = msgspec.json.decode(event.data, type=DocumentChange)
                (in_force.add if change.in_force else in_force.discard)(change.id)
            if last in in_force:
                break
    return in_force, resets


async def test_rules_change_under_questions_publishers_and_subscribers_without_mix_or_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(concurrent_service, "BUILD_MAX", 16)
    monkeypatch.setattr(concurrent_service, "QUIET_BUILD_MAX", 16)
    answered, done = asyncio.Event(), asyncio.Event()
    async with serving(token=TOKEN) as running:
        await running.post_documents(*(fields for n in range(PAIRS) for fields in pair(str(n))))
        before = running.generation
        async with running.subscribe() as events:
            await take_until(events, "snapshot-end")
            folding = asyncio.create_task(fold(events, "last"))
            asking = asyncio.create_task(statuses_over_time(running, answered, done))
            await answered.wait()
            publishing = asyncio.create_task(publish_until(running, done))
            begun = await running.post("/v1/rebuild", OTHER_RULES)
            assert (begun.status_code, begun.json().get("state")) == (200, "building"), begun.text
            end = await rebuilt(running)
            done.set()
            seen, late = await asking, await publishing
            await running.post_documents(as_fields("last", topic="last"))
            in_force, resets = await folding
        names = [str(fields["id"]) for n in range(PAIRS) for fields in pair(str(n))] + [*late, "last"]
        statuses = {
            resolution["status"]
            for start in range(0, len(names), 1000)
            for resolution in (await running.post("/v1/resolve", {"names": names[start : start + 1000]})).json()
        }
        after = (await running.get("/v1/status")).json()["generation"]

    assert (end.state, end.detail) == ("switched", "")
    assert seen in ([{"superseded"}], [{"superseded"}, {"in_force"}])
    assert statuses == {"in_force"}
    assert (in_force, resets) == (set(names), ["generation"])
    assert before != after
    assert len(late) > 2


async def test_rules_that_were_sent_are_kept_by_a_rebuild_that_names_none() -> None:
    async with serving(token=TOKEN) as running:
        await running.post_documents(CLAIM, DENIAL)
        await running.post("/v1/rebuild", OTHER_RULES)
        await rebuilt(running)
        await running.post("/v1/rebuild", {})
        status = await rebuilt(running)
        claim = (await running.post("/v1/resolve", {"names": ["claim-1"]})).json()

    assert (status.state, claim[0]["status"]) == ("switched", "in_force")


async def test_a_dry_run_reports_what_would_change_and_changes_nothing() -> None:
    async with serving(token=TOKEN) as running:
        await running.post_documents(CLAIM, DENIAL)
        await running.post("/v1/rebuild", {**OTHER_RULES, "dry_run": True})
        status = await rebuilt(running)
        claim = (await running.post("/v1/resolve", {"names": ["claim-1"]})).json()

    assert status.counts == (StatusCount(before="superseded", after="in_force", documents=1),)
    assert [(difference.id, difference.why[0].id) for difference in status.differences] == [("claim-1", "denial-1")]
    assert (status.state, claim[0]["status"]) == ("compared", "superseded")


async def wait_forever() -> None:
    await asyncio.Event().wait()


def hold_rebuilds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a rebuild apply one record, and then nothing more."""
    monkeypatch.setattr(concurrent_service, "BUILD_MAX", 1)
    monkeypatch.setattr(concurrent_service, "QUIET_BUILD_MAX", 1)
    monkeypatch.setattr(concurrent_service, "_rest", wait_forever)


async def test_one_rebuild_runs_at_a_time_and_ends_with_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_rebuilds(monkeypatch)
    async with serving(token=TOKEN) as running:
        await running.post_documents(CLAIM)
        first = await running.post("/v1/rebuild", OTHER_RULES)
        second = await running.post("/v1/rebuild", OTHER_RULES)
        directory = running.engine.directory
        folders = len(list((directory.path / "built").iterdir()))

    assert (first.status_code, second.status_code, code_of(second), folders) == (200, 409, "rebuild_running", 2)
    assert directory.built_with.number == 1


async def test_a_rebuild_that_a_full_disk_ends_reports_why_and_the_service_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: NewGeneration, limit: int = 1) -> int:
        raise OSError(ENOSPC, "No space left on device")

    async with serving(token=TOKEN) as running:
        await running.post_documents(CLAIM)
        with monkeypatch.context() as patched:
            patched.setattr(NewGeneration, "step", fail)
            await running.post("/v1/rebuild", OTHER_RULES)
            failed = await rebuilt(running)
        again = await running.post("/v1/rebuild", OTHER_RULES)
        end = await rebuilt(running)

    assert (failed.state, "No space left" in failed.detail) == ("failed", True)
    assert (again.status_code, end.state) == (200, "switched")


async def test_a_rebuild_that_cannot_be_removed_does_not_keep_the_service_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail_to_close(self: NewGeneration) -> None:
        close(self)
        raise OSError(EIO, "Input/output error")

    close = NewGeneration.close
    hold_rebuilds(monkeypatch)
    monkeypatch.setattr(NewGeneration, "close", fail_to_close)
    with engine() as car:
        async with ConcurrentService(car.directory) as service:
            await service.call(r.Publish(documents=(encode(document("c1", topic="tea")),)))
            await service.call(r.Rebuild(rules=(r.RuleText(name="peace.toml", text=PEACE),)))
            await asyncio.sleep(0)

        with pytest.raises(StreamCarError, match="Publishing has stopped"):
            await service.require_ready()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"rules": ["nonsense"]}, "rules"),
        ({"rules": ["/etc/passwd"]}, "rules"),
        ({"rules": [{"name": "a.toml", "text": "no TOML"}]}, "rules"),
        ({"rules": [{"name": "a.toml"}]}, "field"),
        ({"rules": [{"name": "a.toml", "text": "", "path": "/"}]}, "field"),
        ({"future": "never"}, "future"),
    ],
)
async def test_rules_that_cannot_be_loaded_are_rejected_before_anything_begins(body: object, code: str) -> None:
    async with serving(token=TOKEN) as running:
        response = await running.post("/v1/rebuild", body)
        state = (await running.get("/v1/rebuild")).json()["state"]

    assert (response.status_code in (400, 422), code_of(response), state) == (True, code, "none")


async def test_a_service_without_a_token_changes_its_rules_for_nobody() -> None:
    async with serving() as running:
        response = await running.post("/v1/rebuild", OTHER_RULES)

    assert (response.status_code, code_of(response)) == (403, "no_token")

"""Rules are changed under a running service: over a real socket, with a subscriber, questions and publishers."""

import asyncio
from collections.abc import AsyncIterator
from errno import EIO, ENOSPC

import httpx
import msgspec
import pytest

from stream_car.api.messages import Moved, PackText, Progress
from stream_car.codec import encode
from stream_car.errors import StreamCarError
from stream_car.local import background_rebuild
from stream_car.local.rebuild import Rebuild
from stream_car.local.service import EmbeddedService
from tests.integration.test_service import CLAIM, DENIAL, code_of, published, sent
from tests.integration.test_subscriptions import read, until
from tests.support.engines import document, engine
from tests.support.http_service import Heard, Running, serving

TOKEN = "the-token-of-these-tests"
PEACE = """
name = "talk"
[types]
claim = "Something is said."
denial = "It is not so, which voids nothing here."
[keys.topic]
[[rules]]
name = "claim-voids-denial"
superseding = "claim"
superseded = "denial"
scope = ["topic"]
"""
OTHER_RULES = {"texts": [{"name": "peace.toml", "text": PEACE}]}
PAIRS = 150


def pair(name: str) -> list[dict[str, object]]:
    """A claim, and what voids it under the rules that the service begins with."""
    return [sent(f"claim-{name}", topic=name), sent(f"denial-{name}", "denial", 5, topic=name)]


async def ended(running: Running) -> Progress:
    """How the rebuild ended."""
    async with asyncio.timeout(60):
        while True:
            said = msgspec.json.decode((await running.get("/v1/rebuild")).content, type=Progress)
            if said.state in ("switched", "compared", "failed"):
                return said


async def standing_in_time(running: Running, done: asyncio.Event) -> list[set[str]]:
    """How all claims stood, again and again; each set is one answer."""
    names = [f"claim-{n}" for n in range(PAIRS)]
    seen: list[set[str]] = []
    while not done.is_set():
        said = (await running.post("/v1/resolve", {"names": names})).json()
        found = {one["status"] for one in said}
        if not seen or seen[-1] != found:
            seen.append(found)
    return seen


async def publishing(running: Running, done: asyncio.Event) -> list[str]:
    """Publish pairs until done; each is looked for as soon as it is answered."""
    names: list[str] = []
    while not done.is_set():
        some = pair(f"late-{len(names)}")
        await published(running, *some)
        said = (await running.post("/v1/resolve", {"names": [one["id"] for one in some]})).json()
        assert "unknown" not in {one["status"] for one in said}
        names += [str(one["id"]) for one in some]
    return names


async def folded(events: AsyncIterator[Heard], last: str) -> tuple[set[str], list[str]]:
    """What is in force by the events up to the one that tells of `last`, and the resets on the way."""
    active: set[str] = set()
    resets: list[str] = []
    async with asyncio.timeout(60):
        async for one in events:
            if one.event == "reset":
                resets.append(msgspec.json.decode(one.data)["reason"])
                active.clear()
            elif one.event in ("snapshot", "change"):
                said = read(one)
                (active.add if said.active else active.discard)(said.id)
                if said.id == last:
                    break
    return active, resets


async def test_rules_change_under_questions_publishers_and_subscribers_without_mix_or_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background_rebuild, "STEP", 16)
    done = asyncio.Event()
    async with serving(token=TOKEN) as running:
        await published(running, *(one for n in range(PAIRS) for one in pair(str(n))))
        before = running.engine.generation
        async with running.subscribed() as events:
            await until(events, "snapshot-end")
            hearing = asyncio.create_task(folded(events, "last"))
            asking = asyncio.create_task(standing_in_time(running, done))
            adding = asyncio.create_task(publishing(running, done))
            begun = await running.post("/v1/rebuild", OTHER_RULES)
            assert (begun.status_code, begun.json().get("state")) == (200, "building"), begun.text
            end = await ended(running)
            done.set()
            seen, late = await asking, await adding
            await published(running, sent("last", topic="last"))
            active, resets = await hearing
        names = [str(one["id"]) for n in range(PAIRS) for one in pair(str(n))] + [*late, "last"]
        stands = [one["status"] for at in range(0, len(names), 1000)
                  for one in (await running.post("/v1/resolve", {"names": names[at : at + 1000]})).json()]  # fmt: skip
        after = (await running.get("/v1/status")).json()["generation"]

    assert (end.state, end.detail) == ("switched", "")
    assert seen in ([{"void"}], [{"void"}, {"active"}])
    assert set(stands) == {"active"}
    assert (active, resets) == (set(names), ["generation"])
    assert before != after
    assert len(late) > 2


async def test_rules_that_were_sent_are_kept_by_a_rebuild_that_names_none() -> None:
    async with serving(token=TOKEN) as running:
        await published(running, CLAIM, DENIAL)
        await running.post("/v1/rebuild", OTHER_RULES)
        await ended(running)
        await running.post("/v1/rebuild", {})
        said = await ended(running)
        claim = (await running.post("/v1/resolve", {"names": ["claim-1"]})).json()

    assert (said.state, claim[0]["status"]) == ("switched", "active")


async def test_a_dry_run_tells_what_would_stand_otherwise_and_changes_nothing() -> None:
    async with serving(token=TOKEN) as running:
        await published(running, CLAIM, DENIAL)
        await running.post("/v1/rebuild", {**OTHER_RULES, "dry_run": True})
        said = await ended(running)
        claim = (await running.post("/v1/resolve", {"names": ["claim-1"]})).json()

    assert said.counts == (Moved(before="void", after="active", documents=1),)
    assert [(one.id, one.why[0].id) for one in said.differences] == [("claim-1", "denial-1")]
    assert (said.state, claim[0]["status"]) == ("compared", "void")


async def test_one_rebuild_goes_on_at_a_time_and_ends_with_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    async def held() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(background_rebuild, "STEP", 1)
    monkeypatch.setattr(background_rebuild, "_turn", held)
    async with serving(token=TOKEN) as running:
        await published(running, CLAIM)
        first = await running.post("/v1/rebuild", OTHER_RULES)
        second = await running.post("/v1/rebuild", OTHER_RULES)
        folders = len(list((running.engine.path / "built").iterdir()))
        engine = running.engine

    assert (first.status_code, second.status_code, code_of(second), folders) == (200, 409, "rebuild_running", 2)
    assert engine.going_by.number == 1


async def test_a_rebuild_that_a_disk_ends_says_why_and_the_service_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Rebuild, most: int = 1) -> int:
        raise OSError(ENOSPC, "No space left on device")

    async with serving(token=TOKEN) as running:
        await published(running, CLAIM)
        with monkeypatch.context() as patched:
            patched.setattr(Rebuild, "step", full)
            await running.post("/v1/rebuild", OTHER_RULES)
            failed = await ended(running)
        again = await running.post("/v1/rebuild", OTHER_RULES)
        end = await ended(running)

    assert (failed.state, "No space left" in failed.detail) == ("failed", True)
    assert (again.status_code, end.state) == (200, "switched")


async def test_what_goes_wrong_when_a_rebuild_is_given_up_does_not_keep_the_service_from_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def held() -> None:
        await asyncio.Event().wait()

    def stuck(self: Rebuild) -> None:
        close(self)
        raise OSError(EIO, "Input/output error")

    close = Rebuild.close
    monkeypatch.setattr(background_rebuild, "STEP", 1)
    monkeypatch.setattr(background_rebuild, "_turn", held)
    monkeypatch.setattr(Rebuild, "close", stuck)
    with engine() as here:
        async with EmbeddedService(here) as service:
            await service.publish([encode(document("c1", topic="tea"))])
            await service.rebuild(texts=[PackText(name="peace.toml", text=PEACE)])
            await asyncio.sleep(0)

        with pytest.raises(StreamCarError, match="publishing has stopped"):
            await service.require_ready()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"packs": ["nonsense"]}, "rules"),
        ({"packs": ["/etc/passwd"]}, "rules"),
        ({"texts": [{"name": "a.toml", "text": "no TOML"}]}, "rules"),
        ({"texts": [{"name": "a.toml"}]}, "field"),
        ({"future": "never"}, "future"),
    ],
)
async def test_rules_that_cannot_be_read_are_refused_before_anything_begins(body: object, code: str) -> None:
    async with serving(token=TOKEN) as running:
        response = await running.post("/v1/rebuild", body)
        state = (await running.get("/v1/rebuild")).json()["state"]

    assert (response.status_code in (400, 422), code_of(response), state) == (True, code, "none")


async def test_a_service_without_a_token_changes_its_rules_for_nobody() -> None:
    async with serving() as running:
        response: httpx.Response = await running.post("/v1/rebuild", OTHER_RULES)

    assert (response.status_code, code_of(response)) == (403, "no_token")

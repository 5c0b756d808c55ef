"""Streams of made-up compliance events to measure with: seeded, so that every run sees the same.

Promise: all thirteen types of the pack occur, and all of R1-R10 fire; three quarters of a mixed
stream are new documents, the rest corrections, retractions and repeats; one new document in ten
arrives late by up to a month. A person and a security see about four events whatever the length of
the stream; policies are one scope for everyone, as the pack has it.
"""

from collections.abc import Iterator, Sequence
from random import Random

import msgspec
from msgspec import Struct

from stream_car.codec import content_digest
from stream_car.core.documents import Document, Retraction, Statement

START = 1_704_067_200_000_000  # 2024-01-01
STEP = 60_000_000  # a document a minute
HOUR = 3_600_000_000
MONTH = 30 * 86_400_000_000
TICKERS = ("AAPL", "AMGN", "BLK", "COP", "GOOGL", "META", "MSFT", "SLB", "USB", "WFC")
VOCABULARY = 20_000
WEIGHTS = {
    "pre_clearance_approved": 26.0,
    "pre_clearance_denied": 15.0,
    "policy_acknowledged": 15.0,
    "conflict_disclosed": 14.0,
    "blackout_announced": 9.0,
    "blackout_lifted": 4.0,
    "watchlist_added": 4.0,
    "emergency_exception": 3.0,
    "conflict_amended": 3.0,
    "watchlist_removed": 3.0,
    "exception_revoked": 2.0,
    "conflict_cleared": 2.0,
    "policy_update": 0.02,
}


class Arrival(Struct, frozen=True, gc=False):
    """A statement, when the log took it in, and the digest that the codec gives with it."""

    said: Statement
    append_time: int
    digest: bytes


def mixed(length: int, *, seed: int = 1) -> list[Arrival]:
    """New documents, corrections (1 in 10), retractions (1 in 20) and repeats (1 in 10)."""
    random = Random(seed)
    employees = max(1, length // 50)
    latest: dict[str, Document] = {}
    names: list[str] = []
    arrivals = []
    for at in range(length):
        now = START + at * STEP
        arrivals.append(_arrival(_statement(random, names, latest, employees, now), now))
    return arrivals


def _statement(random: Random, names: list[str], latest: dict[str, Document], employees: int, now: int) -> Statement:
    what = random.random()
    if not names or what < 0.75:
        document = _new(random, f"event-{len(names):07d}", employees, now)
        names.append(document.id)
        latest[document.id] = document
        return document
    stood = latest[random.choice(names)]
    if what < 0.85:
        latest[stood.id] = _corrected(random, stood, now)
        return latest[stood.id]
    return Retraction(id=stood.id, revision=stood.revision) if what < 0.9 else stood


def _new(random: Random, name: str, employees: int, now: int) -> Document:
    kind = random.choices(_KINDS, _SHARES)[0]
    late = random.randrange(MONTH) if random.random() < 0.1 else 0
    return event(name, kind, now - late, employee=random.randrange(employees), ticker=random.choice(TICKERS))


def _corrected(random: Random, stood: Document, now: int) -> Document:
    """Mostly other words or another hour; seldom another security."""
    revision, time = stood.revision + 1, min(now, stood.time + random.choice((0, 0, -HOUR, HOUR)))
    scope = stood.scope
    if random.random() < 0.1:
        scope = ({**scope[0], "ticker": (random.choice(TICKERS),)},)
    return msgspec.structs.replace(stood, revision=revision, time=time, scope=scope)


def event(name: str, kind: str, time: int, *, employee: int, ticker: str) -> Document:
    """One event as the publisher's system would word it."""
    return Document(
        id=name,
        type=kind,
        time=time,
        scope=({"employee": (f"EMP{employee:05d}",), "ticker": (ticker,)},),
        title=f"{kind} EMP{employee:05d} {ticker}".replace("_", " "),
        source="trading desk",
    )


def _arrival(said: Statement, now: int) -> Arrival:
    return Arrival(said, now, content_digest(said) if isinstance(said, Document) else b"")


def uniform(length: int) -> list[Arrival]:
    """New documents in scopes of four, of the types that go by person and security."""
    return _shaped(length, length // 4, _COMMON)


def hot(length: int) -> list[Arrival]:
    """The same types in the scope of one person and one security."""
    return _shaped(length, 1, _COMMON)


def chains(length: int, links: int) -> list[Arrival]:
    """Scopes in which every document voids those before it or is voided by the next."""
    return _shaped(length, length // links, ("pre_clearance_approved", "blackout_announced", "blackout_lifted"))


def _shaped(length: int, scopes: int, kinds: Sequence[str]) -> list[Arrival]:
    """Scopes in turn, each given these kinds again and again; one document in ten is up to a month late."""
    random = Random(1)
    arrivals = []
    for at in range(length):
        now = START + at * STEP
        late = random.randrange(MONTH) if random.random() < 0.1 else 0
        kind = kinds[at // scopes % len(kinds)]
        document = event(f"event-{at:07d}", kind, now - late, employee=at % scopes, ticker=TICKERS[0])
        arrivals.append(_arrival(document, now))
    return arrivals


def paragraphs(length: int, size: int, *, seed: int = 1) -> Iterator[Document]:
    """New documents whose JSON is about `size` bytes; as in any language few words are common."""
    random = Random(seed)
    words = [f"{random.choice(_STEMS)}{number}" for number in range(VOCABULARY)]
    for at in range(length):
        document = _new(random, f"event-{at:07d}", max(1, length // 50), START + at * STEP)
        text = " ".join(words[int(VOCABULARY ** random.random()) - 1] for _ in range(size // 7))
        yield msgspec.structs.replace(document, text=text[: size - 220])


_KINDS = tuple(WEIGHTS)
_SHARES = tuple(WEIGHTS.values())
_COMMON = (
    "pre_clearance_approved",
    "pre_clearance_approved",
    "blackout_announced",
    "blackout_lifted",
    "pre_clearance_approved",
    "watchlist_added",
    "emergency_exception",
    "watchlist_removed",
)
_STEMS = ("audit", "border", "capital", "ledger", "market", "notice", "review", "trade")

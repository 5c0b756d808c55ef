"""Synthetic streams of compliance events for measurements, seeded so that every run gets the same events.

Promise: all thirteen types of the pack occur, and all of R1-R10 apply. Three quarters of a mixed stream are new
documents, the rest corrections, retractions and repeats; one new document in ten arrives late, by up to a month. About
four events concern the same person and security, whatever the length of the stream; policies have one scope for
everyone, as in the pack.
"""

from collections.abc import Iterator, Sequence
from random import Random

import msgspec
from msgspec import Struct

from stream_car.codec import content_digest
from stream_car.core.documents import Document, Retraction, Statement

START = 1_704_067_200_000_000  # 2024-01-01, in microseconds
STEP = 60_000_000  # one document per minute
HOUR = 3_600_000_000
MONTH = 30 * 86_400_000_000
TICKERS = ("AAPL", "AMGN", "BLK", "COP", "GOOGL", "META", "MSFT", "SLB", "USB", "WFC")
VOCABULARY = 20_000  # words
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
_KINDS = tuple(WEIGHTS)
_SHARES = tuple(WEIGHTS.values())
_PERSON_AND_SECURITY_KINDS = (
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


class Arrival(Struct, frozen=True, gc=False):
    """A statement, its append time in the log, and the digest that the codec computes."""

    statement: Statement
    append_time: int
    digest: bytes


def mixed(length: int, *, seed: int = 1) -> list[Arrival]:
    """Generate new documents, corrections (1 in 10), retractions (1 in 20) and repeats (1 in 10)."""
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
    choice = random.random()
    if not names or choice < 0.75:
        document = _new_document(random, f"event-{len(names):07d}", employees, now)
        names.append(document.id)
        latest[document.id] = document
        return document
    earlier = latest[random.choice(names)]
    if choice < 0.85:
        latest[earlier.id] = _correct(random, earlier, now)
        return latest[earlier.id]
    return Retraction(id=earlier.id, revision=earlier.revision) if choice < 0.9 else earlier


def _new_document(random: Random, name: str, employees: int, now: int) -> Document:
    kind = random.choices(_KINDS, _SHARES)[0]
    delay = random.randrange(MONTH) if random.random() < 0.1 else 0
    return event(name, kind, now - delay, employee=random.randrange(employees), ticker=random.choice(TICKERS))


def _correct(random: Random, document: Document, now: int) -> Document:
    """Return a correction: in most cases only the revision or the hour changes, in one of ten also the security."""
    revision, time = document.revision + 1, min(now, document.time + random.choice((0, 0, -HOUR, HOUR)))
    scope = document.scope
    if random.random() < 0.1:
        scope = ({**scope[0], "ticker": (random.choice(TICKERS),)},)
    return msgspec.structs.replace(document, revision=revision, time=time, scope=scope)


def event(name: str, kind: str, time: int, *, employee: int, ticker: str) -> Document:
    """Return an event as the publisher's system would word it."""
    return Document(
        id=name,
        type=kind,
        time=time,
        scope=({"employee": (f"EMP{employee:05d}",), "ticker": (ticker,)},),
        title=f"{kind} EMP{employee:05d} {ticker}".replace("_", " "),
        source="trading desk",
    )


def _arrival(statement: Statement, now: int) -> Arrival:
    return Arrival(statement, now, content_digest(statement) if isinstance(statement, Document) else b"")


def uniform(length: int) -> list[Arrival]:
    """Generate new documents in scopes of four, of types whose scope is a person and a security."""
    return _shaped(length, length // 4, _PERSON_AND_SECURITY_KINDS)


def hot(length: int) -> list[Arrival]:
    """Generate documents of the same types in the scope of one person and one security."""
    return _shaped(length, 1, _PERSON_AND_SECURITY_KINDS)


def chains(length: int, links: int) -> list[Arrival]:
    """Generate scopes in which every document voids those before it or is voided by the next."""
    return _shaped(length, length // links, ("pre_clearance_approved", "blackout_announced", "blackout_lifted"))


def _shaped(length: int, scopes: int, kinds: Sequence[str]) -> list[Arrival]:
    """Fill scopes in turn with these kinds, cyclically; one document in ten is up to a month late."""
    random = Random(1)
    arrivals = []
    for at in range(length):
        now = START + at * STEP
        delay = random.randrange(MONTH) if random.random() < 0.1 else 0
        kind = kinds[at // scopes % len(kinds)]
        document = event(f"event-{at:07d}", kind, now - delay, employee=at % scopes, ticker=TICKERS[0])
        arrivals.append(_arrival(document, now))
    return arrivals


def paragraphs(length: int, size: int, *, seed: int = 1) -> Iterator[Document]:
    """Generate new documents whose JSON has about `size` bytes; as in any language, few words are common."""
    random = Random(seed)
    words = [f"{random.choice(_STEMS)}{number}" for number in range(VOCABULARY)]
    for at in range(length):
        document = _new_document(random, f"event-{at:07d}", max(1, length // 50), START + at * STEP)
        text = " ".join(words[int(VOCABULARY ** random.random()) - 1] for _ in range(size // 7))
        yield msgspec.structs.replace(document, text=text[: size - 220])

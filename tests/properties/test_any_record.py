"""Whatever a record holds, the folds apply, reject or ignore it, and what they emit fits into its topic."""

import json
from collections.abc import Sequence
from random import Random
from typing import Generic, Never, TypeVar

import pytest

from stream_car.adapters.kafka.journal import KafkaJournal
from stream_car.adapters.kafka.topic_layout import MESSAGE_BYTES
from stream_car.cluster.rejected import RejectedTopic
from stream_car.codec import encode
from stream_car.local.run_sync import run_sync
from stream_car.ports import Emission, Message, Record
from stream_car.processing.fold import CHANGES, TICK, UNREADABLE, Fold
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.shard import FoldProtocol, HasTouchedKeys, digest_of
from stream_car.processing.signatures import SIGNATURE
from stream_car.processing.state import State, encode_value
from stream_car.processing.two_hop import (
    DOCUMENTS,
    FORWARDED,
    FRONTIER,
    PLACEMENTS,
    FrontierFold,
    IntakeFold,
    emission_message,
)
from tests.golden.stored import RecordedLog
from tests.support.engines import NOW, RULESET, document
from tests.support.two_hop_folds import SIGNATURES, TWO, run_fold

R = TypeVar("R")
E = TypeVar("E", bound=HasTouchedKeys)
ROOM = MESSAGE_BYTES - 1000
HEADER_NAMES = (
    FORWARDED, SIGNATURE, TICK[0], UNREADABLE[0], "ce_specversion", "ce_id", "ce_type", "ce_time", "ce_subject",
    "stream-car-partition", "stream-car-offset", "stream-car-code", "stream-car-replay-of", "", "\x00", "\U0010ffff",
)  # fmt: skip
TEXTS = ("", "a", "topic", "é", "\x00", "\u2028", "\U0010ffff", "9" * 30, "n" * 300, "x" * 5000, "../..", "a/b", "=")
NUMBERS = (0, -1, 1, 2**31, 2**53 - 1, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 1e308, -0.0, 0.5, float("nan"))
TIMES = ("2024-01-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2024-02-30", "-1", "24")


class Hostile:
    """Records as any program may send them: some close to what is valid, some arbitrary bytes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        names = [f"n{number}" for number in range(20)]
        valid = [document(name, topic="rain", place="here") for name in names]
        self.seeds = [encode(each) for each in valid]

    def record(self, offset: int, seeds: Sequence[bytes]) -> Record:
        return Record(
            offset=offset, append_time=NOW, value=self.value(seeds), key=self.key(), headers=tuple(self.headers())
        )

    def value(self, seeds: Sequence[bytes]) -> bytes | None:
        choice = self.random.random()
        if choice < 0.05 or not seeds:
            return self.random.choice((None, b"", b"{}", b"[]", b"null", b"\xff\xfe", b"{" * 5000))
        if choice < 0.1:
            return self.random.randbytes(self.random.choice((1, 20, 300)))
        seed = self.random.choice(seeds)
        return self.flipped(seed) if choice < 0.4 else self.mutated(seed)

    def flipped(self, value: bytes) -> bytes:
        content = bytearray(value)
        for _ in range(self.random.randint(1, 3)):
            content[self.random.randrange(len(content))] = self.random.randrange(256)
        return bytes(content[: self.random.choice((None, None, self.random.randrange(len(content))))])

    def mutated(self, value: bytes) -> bytes:
        fields = json.loads(value)
        if "time" in fields:
            fields |= {"id": f"n{self.random.randrange(200)}", "revision": self.random.randint(1, 50)}
        for _ in range(self.random.choice((0, 0, 1, 3))):
            name = self.random.choice((*fields, "scope", "supersedes", "superseded_by", "amends", "attributes", "time"))
            fields[name] = self.odd(2)
        return json.dumps(fields, ensure_ascii=self.random.random() < 0.5).encode(errors="surrogatepass")

    def odd(self, depth: int) -> object:
        choice = self.random.randrange(7 if depth else 5)
        if choice < 2:
            return self.random.choice((*TEXTS, *TIMES, "\udc80"))
        if choice == 2:
            return self.random.choice(NUMBERS)
        if choice < 5:
            return self.random.choice((None, True, False, "n1", "n2", {"topic": "rain"}, {"topic": ["rain", "sun"]}))
        if choice == 5:
            return [self.odd(depth - 1) for _ in range(self.random.choice((0, 1, 3, 300)))]
        return {self.random.choice((*TEXTS, "topic", "place")): self.odd(depth - 1) for _ in range(3)}

    def key(self) -> bytes | None:
        keys = (b"", b"n1", b"n2", b"\xff", b"k" * 1_000_000)
        return self.random.choice(keys) if self.random.random() < 0.1 else None

    def headers(self) -> list[tuple[str, bytes]]:
        count = self.random.choice((0, 0, 0, 1, 2, 5)) if self.random.random() < 0.995 else 2000
        values = (b"", b"1", b"0/5", b"0/" + b"9" * 19, b"0/" + b"9" * 5000, b"1.0", b"\xff", b"a" * 16, b"g/0/1")
        return [(self.random.choice(HEADER_NAMES), self.random.choice(values)) for _ in range(count)]


class Applied(Generic[R, E]):
    """A fold over a dictionary, which encodes what it would store and emit."""

    def __init__(self, fold: FoldProtocol[R, E]) -> None:
        self.fold = fold
        self.state = State()
        self.count = 0

    def apply(self, record: Record) -> list[Emission]:
        digest_of(record)
        decoded = self.fold.read(record)
        for key in self.fold.keys_needed(decoded):
            self.state.setdefault(key, None)
        effects = run_fold(self.state, self.fold.apply(self.state, decoded))
        for key in effects.touched:
            encode_value(self.state.get(key))
        emissions = self.fold.emit(decoded, effects, self.count + 1)
        self.count += len(emissions)
        return list(emissions)


class Hops:
    """Both hops and the logs between them, with every record applied as soon as it is appended."""

    def __init__(self) -> None:
        self.intakes = [Applied(IntakeFold(RULESET, TWO, shard=q, signatures=SIGNATURES)) for q in range(2)]
        self.frontiers = [Applied(FrontierFold(RULESET, TWO, shard=p, signatures=SIGNATURES)) for p in range(2)]
        self.ends = {(DOCUMENTS, 0): 0, (DOCUMENTS, 1): 0, (PLACEMENTS, 0): 0, (PLACEMENTS, 1): 0}
        self.placements: list[bytes] = []  # the last ones

    def append(self, stream: str, partition: int, record: Record | Message) -> None:
        """Append a record, and apply it and what it leads to."""
        offset = self.ends[stream, partition]
        self.ends[stream, partition] += 1
        placed = Record(offset=offset, append_time=NOW, value=record.value, key=record.key, headers=record.headers)
        intake, frontier = self.intakes[partition], self.frontiers[partition]
        for emission in intake.apply(placed) if stream == DOCUMENTS else frontier.apply(placed):
            if emission.stream == CHANGES:
                assert len(emission.key) + len(emission.value) < ROOM
                continue
            message = SIGNATURES.sign(emission.stream, emission_message(emission))
            size = len(message.value or b"") + len(message.key or b"")
            assert size + sum(len(name) + len(value) for name, value in message.headers) < ROOM
            if emission.stream == PLACEMENTS:
                self.placements = [*self.placements[-50:], emission.value]
                self.append(PLACEMENTS, TWO.of_scope(emission.key), message)
            elif emission.stream == DOCUMENTS:
                self.append(DOCUMENTS, 1 - partition, message)


def run_hostile(count: int, seed: int) -> int:
    """Give both hops and the composed fold hostile records. Return how many placements were applied."""
    hostile, hops, composed = Hostile(seed), Hops(), Applied(Fold(RULESET))
    for number in range(count):
        record = hostile.record(number, hostile.seeds)
        composed.apply(record)
        hops.append(DOCUMENTS, number % 2, record)
        hops.append(PLACEMENTS, number % 2, hostile.record(0, hops.placements))  # nobody signed it
    headers = [hop.state[FRONTIER] for hop in hops.frontiers]
    return sum(header.applied for header in headers if isinstance(header, FrontierHeader))


@pytest.mark.parametrize("seed", range(4))
def test_no_record_stops_a_fold(seed: int) -> None:
    assert run_hostile(1_000, seed) > 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_none_of_a_hundred_thousand_records_stops_a_fold(seed: int) -> None:
    assert run_hostile(10_000, seed) > 1_000


def test_no_record_stops_a_reader_of_changes_or_of_rejected_input() -> None:
    hostile = Hostile(5)
    records = [hostile.record(offset, hostile.seeds) for offset in range(2_000)]
    log = RecordedLog({0: records})
    journal = KafkaJournal({CHANGES: log}, "g", SIGNATURES)
    rejected = RejectedTopic(log, log, NoSnapshots(), RULESET, TWO, SIGNATURES)

    assert run_sync(journal.last(0)) == 0
    assert run_sync(journal.read(0, CHANGES)) == []
    assert run_sync(journal.deleted_up_to(0)) == 0
    run_sync(rejected.list_from(0, 5_000))


class NoSnapshots:
    """Implements `ports.SnapshotReader`; nothing is asked."""

    async def peek(self, wanted: object) -> Never:
        raise AssertionError("a listing reads no state")

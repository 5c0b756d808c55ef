"""The folds of both hops over plain dictionaries, and the records that they read."""

from collections.abc import Generator, Sequence
from typing import TypeVar

import msgspec

from stream_car.codec import encode
from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Document
from stream_car.ports import Emission, Message, Record
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.partitions import Partitions
from stream_car.processing.signatures import Signatures
from stream_car.processing.state import State, decode_value, encode_value
from stream_car.processing.two_hop import FRONTIER, PLACEMENTS, FrontierFold, IntakeFold
from tests.support.engines import NOW, RULESET

T = TypeVar("T")
TWO = Partitions(intakes=2, frontiers=2)
SIGNATURES = Signatures(key=bytes(range(32)))
LABELS = tuple(map(str, range(40)))


def ids_of(shard: int, partitions: Partitions = TWO) -> list[str]:
    """Return some ids that belong to an intake shard."""
    return [name for name in LABELS if partitions.of_id(name) == shard]


def topic_of(shard: int) -> str:
    """Return a topic whose scope belongs to a frontier shard."""
    return next(name for name in LABELS if TWO.of_scope(f"topic={name}".encode()) == shard)


def record(
    offset: int,
    content: Document | bytes | None,
    *,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes]] = (),
) -> Record:
    """Return a record of a log with this document, or with these bytes."""
    value = encode(content) if isinstance(content, Document) else content
    return Record(offset=offset, append_time=NOW, value=value, key=key, headers=tuple(headers))


def run_fold(state: State, steps: Generator[list[bytes], None, T]) -> T:
    """Run a step of a fold. Every key that it asks for is new."""
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result
        state.update(dict.fromkeys(keys))


class Intake:
    """An intake shard over a plain dictionary."""

    def __init__(self, shard: int = 0, partitions: Partitions = TWO, signatures: Signatures = SIGNATURES) -> None:
        self.fold = IntakeFold(RULESET, partitions, shard=shard, signatures=signatures)
        self.state = State()
        self.oseq = 0

    def apply(self, given: Record) -> list[Emission]:
        """Apply a record, and return what it emits."""
        decoded = self.fold.read(given)
        emissions = self.fold.emit(decoded, run_fold(self.state, self.fold.apply(self.state, decoded)), self.oseq + 1)
        self.oseq += len(emissions)
        return emissions

    def stored(self, key: bytes) -> object:
        """Return a value as it comes back from the store."""
        encoded = encode_value(self.state[key])
        assert encoded is not None
        return decode_value(key, encoded)


class Frontier:
    """A frontier shard over a plain dictionary."""

    def __init__(self, shard: int = 0, signatures: Signatures = SIGNATURES) -> None:
        self.fold = FrontierFold(RULESET, TWO, shard=shard, signatures=signatures)
        self.state = State()
        self.offset = 0

    def apply(self, value: bytes | None, *, is_signed: bool = True) -> list[FrontierChange]:
        """Apply the next record, and return the changes of frontiers."""
        message = Message(value=value)
        headers = SIGNATURES.sign(PLACEMENTS, message).headers if is_signed else ()
        decoded = self.fold.read(record(self.offset, value, headers=headers))
        effects = run_fold(self.state, self.fold.apply(self.state, decoded))
        self.offset += 1
        emissions = self.fold.emit(decoded, effects, 1)
        return [msgspec.json.decode(emission.value, type=FrontierChange) for emission in emissions]

    @property
    def header(self) -> FrontierHeader:
        """The counts of the shard."""
        header = self.state[FRONTIER]
        assert isinstance(header, FrontierHeader)
        return header

"""What must be true: the state of an uninterrupted run, and the frontiers and answers of the definition.

Promise: `Reference` is the fold over a log partition as it really came to be, without machine, store
or faults. `Inputs` knows nothing of folds: it reads documents as their publishers sent them and lets
`core.authority` say what follows.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TypeVar

from stream_car.codec import decode
from stream_car.codec.changes import decode_change
from stream_car.core import definitions
from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidDocument
from stream_car.ports import Emission, Record
from stream_car.processing.fold import TICK
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import GENERATION, LAST, FoldProtocol, HasTouchedKeys, digest_of
from stream_car.processing.signatures import Signatures
from stream_car.processing.state import State, encode_value
from stream_car.processing.two_hop import DOCUMENTS, FORWARDED
from tests.simulation.world import SKEW, Violation

R = TypeVar("R")
E = TypeVar("E", bound=HasTouchedKeys)
Cut = tuple[int, ...]


class Reference:
    """State and events after every record of one log partition; grows with the log."""

    def __init__(self, fold: FoldProtocol[R, E], records: Sequence[Record]) -> None:
        self.records = records
        self.values: list[Mapping[bytes, bytes]] = [{}]
        self.oseqs = [1]
        self.events: list[Emission] = []
        self._run = self._steps(fold)

    def _steps(self, fold: FoldProtocol[R, E]) -> Generator[None, None, None]:
        state = State()
        while True:
            record = self.records[len(self.values) - 1]
            read = fold.read(record)
            for key in fold.keys_needed(read):
                state.setdefault(key, None)
            effects = _driven(state, fold.apply(state, read))
            self.events += fold.emit(read, effects, len(self.events) + 1)
            after = {**self.values[-1], GENERATION: fold.generation.encode(), LAST: digest_of(record)}
            for key in effects.touched:
                raw = encode_value(state.get(key))
                if raw is None:
                    after.pop(key, None)
                else:
                    after[key] = raw
            self.values.append(after)
            self.oseqs.append(len(self.events) + 1)
            yield

    def at(self, offset: int) -> tuple[Mapping[bytes, bytes], int]:
        """The values before a record, and the number of the next event."""
        while len(self.values) <= offset:
            self._advance()
        return self.values[offset], self.oseqs[offset]

    def _advance(self) -> None:
        try:
            next(self._run)
        except (LookupError, RuntimeError, StopIteration) as broken:
            raise Violation(f"record {len(self.values) - 1} of the log cannot be folded: {broken}") from broken

    def event(self, oseq: int) -> Emission | None:
        """The event of this number, if the log has led to it."""
        while len(self.events) < oseq and len(self.values) <= len(self.records):
            self._advance()
        return self.events[oseq - 1] if oseq <= len(self.events) else None


def events_of(fold: FoldProtocol[R, E], records: Sequence[Record]) -> list[Emission]:
    """Return the events of an uninterrupted run over a log, of which only the last state is kept."""
    state = State()
    events: list[Emission] = []
    for record in records:
        read = fold.read(record)
        for key in fold.keys_needed(read):
            state.setdefault(key, None)
        effects = _driven(state, fold.apply(state, read))
        events += fold.emit(read, effects, len(events) + 1)
    return events


def _driven(state: State, steps: Generator[list[bytes], None, E]) -> E:
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            effects: E = stop.value
            return effects
        for key in keys:
            state[key] = None


class Known:
    """A corpus with what the definition says about it, worked out once."""

    def __init__(self, corpus: dict[str, Document], ruleset: Ruleset) -> None:
        self.corpus = corpus
        self.ruleset = ruleset
        self.above = definitions.superseders(corpus, ruleset)
        self.active = definitions.active(corpus, ruleset)

    def controlling(self, anchor: str) -> set[str]:
        """The active documents of `cl({anchor})`."""
        return definitions.closure([anchor], self.above) & self.active

    def frontier(self, scope: str) -> set[str]:
        """The members that no member voids through that scope."""
        return definitions.frontier(scope, self.corpus, self.ruleset)


class Inputs:
    """The documents as they were published, by partition."""

    def __init__(
        self,
        records: Sequence[Sequence[Record]],
        partitions: Partitions,
        ruleset: Ruleset,
        signatures: Signatures,
    ) -> None:
        self.records = records
        self.signatures = signatures
        self.partitions = partitions
        self.ruleset = ruleset
        self._statements: dict[tuple[int, int], Statement | None] = {}
        self._known: dict[Cut, Known] = {}

    def statement_at(self, partition: int, offset: int) -> Statement | None:
        """What a record says, if it can be read and has a type that the rules know."""
        key = partition, offset
        if key not in self._statements:
            record = self.records[partition][offset]
            statement: Statement | None = None
            if TICK not in record.headers:
                try:
                    statement = decode(record.value, key=record.key, headers=record.headers)
                except InvalidDocument:
                    statement = None
            if isinstance(statement, Document) and not self.ruleset.knows(statement.type):
                statement = None
            self._statements[key] = statement
        return self._statements[key]

    def statements(self, partition: int, up_to: int) -> list[Statement]:
        """What was said in a partition about its own ids, forwarded records once."""
        statements: list[Statement] = []
        seen: set[bytes] = set()
        for offset in range(up_to):
            statement = self.statement_at(partition, offset)
            if statement is None or self.partitions.of_id(statement.id) != partition:
                continue
            origin = self._origin(self.records[partition][offset])
            if origin is None or origin not in seen:
                statements.append(statement)
            if origin is not None:
                seen.add(origin)
        return statements

    def _origin(self, record: Record) -> bytes | None:
        """Where a worker forwarded a record from; whatever a publisher claims does not count."""
        return dict(record.headers)[FORWARDED] if self.signatures.is_signed(DOCUMENTS, record) else None

    def known(self, cut: Cut) -> Known:
        """What follows from exactly the inputs before the cut."""
        if cut not in self._known:
            corpus: dict[str, Document] = {}
            for partition, up_to in enumerate(cut):
                clock = max((record.append_time for record in self.records[partition][:up_to]), default=0)
                stands = definitions.current_documents(self.statements(partition, up_to))
                corpus |= {name: document for name, document in stands.items() if document.time <= clock + SKEW}
            self._known[cut] = Known(corpus, self.ruleset)
        return self._known[cut]

    def end(self) -> Cut:
        """The cut that covers everything."""
        return tuple(map(len, self.records))

    def ids(self) -> list[str]:
        """Every id that any record speaks about, and one that none does."""
        names = {
            statement.id
            for p, of in enumerate(self.records)
            for at in range(len(of))
            if (statement := self.statement_at(p, at))
        }
        return sorted(names | {"n99"})

    def documents(self) -> list[Document]:
        """Every document that was published so far."""
        every = [self.statement_at(p, at) for p, of in enumerate(self.records) for at in range(len(of))]
        return [statement for statement in every if isinstance(statement, Document)]

    def unforwarded(self) -> list[tuple[int, int]]:
        """Records in a wrong partition of which no copy came to the right one."""
        copies = {
            (partition, self._origin(record)) for partition, records in enumerate(self.records) for record in records
        }
        return [
            (partition, offset)
            for partition, records in enumerate(self.records)
            for offset, record in enumerate(records)
            if (statement := self.statement_at(partition, offset)) is not None
            and (home := self.partitions.of_id(statement.id)) != partition
            and self._origin(record) is None
            and (home, f"{partition}/{offset}".encode()) not in copies
        ]


def replayed(events: Iterable[Emission]) -> dict[str, set[str]]:
    """The members that hold in each scope, as the changes tell it. Raises `Violation` for a gap in a scope."""
    frontiers: dict[str, set[str]] = {}
    seqs: dict[str, int] = {}
    for event in events:
        change = decode_change(event.key, event.value)
        if change.seq != seqs.get(change.scope, 0) + 1:
            raise Violation(f"change {change.seq} of {change.scope} follows change {seqs.get(change.scope, 0)}")
        seqs[change.scope] = change.seq
        members = frontiers.setdefault(change.scope, set())
        if change.scope.startswith("document="):
            members |= {gone.id for gone in change.left}
            members -= {new.id for new in change.entered}
        else:
            members -= {gone.id for gone in change.left}
            members |= {new.id for new in change.entered}
    return frontiers

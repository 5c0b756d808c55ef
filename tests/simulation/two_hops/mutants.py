"""The protocol with one rule broken at a time: each must be caught, or the simulation proves nothing."""

from collections.abc import Generator, Mapping, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import msgspec
from msgspec import structs

from stream_car.codec.placements import PlacementRecord, decode_placement, encode_watermark
from stream_car.core.stored import Scope, StoredDocument
from stream_car.errors import ClaimLost
from stream_car.ports import Claim, Emission, Log, Record, ShardId
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.shard import AppliedRecord, HasTouchedKeys, Shard
from stream_car.processing.state import State, Value
from stream_car.processing.two_hop import (
    DOCUMENTS,
    FRONTIER,
    PLACEMENTS,
    FrontierEffects,
    FrontierFold,
    FrontierRecord,
    IntakeFold,
    IntakeRecord,
)
from stream_car.queries.shards import ManyShardsSource
from tests.simulation.two_hops.plan import Parts
from tests.simulation.two_hops.servers import Server, Standing, written

R = TypeVar("R")
E = TypeVar("E", bound=HasTouchedKeys)


class TrimsFirst(Shard[R, E]):
    """Events leave the outbox before they are published."""

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        claim = await self.store.trim(claim, events[-1].oseq)
        await self.event_sink.publish(self.shard, events)
        return claim


class KeepsValues(Shard[R, E]):
    """Decoded state survives a claim that was lost."""

    async def start(self) -> None:
        kept = self._state
        await super().start()
        self._state = kept


class ForgetsTheOutbox(Shard[R, E]):
    """What an earlier worker left in the outbox is taken for published."""

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        if self._claim is None:  # at the start
            return await self.store.trim(claim, events[-1].oseq)
        return await super()._publish(claim, events)


class TrustsTheLog(Shard[R, E]):
    """Records are numbered as they come, so that one which was skipped is never missed."""

    async def _fold(self, claim: Claim, records: Sequence[Record]) -> list[AppliedRecord[R, E]]:
        return await super()._fold(structs.replace(claim, next_offset=records[0].offset), records)


class StartsAtTheGroup(Shard[R, E]):
    """A worker goes on where its group's fetches have come to, not where the store is."""

    async def start(self) -> None:
        await super().start()
        assert self._claim is not None
        fetched = _fetched(self.log).get(self.shard, 0)
        if fetched > self._claim.next_offset:
            self._claim = structs.replace(self._claim, next_offset=fetched)

    async def _fold(self, claim: Claim, records: Sequence[Record]) -> list[AppliedRecord[R, E]]:
        _fetched(self.log)[self.shard] = records[-1].offset + 1
        return await super()._fold(claim, records)


_FETCHED: WeakKeyDictionary[Log, dict[int, int]] = WeakKeyDictionary()


def _fetched(log: Log) -> dict[int, int]:
    """How far anybody has fetched the partitions of a log."""
    return _FETCHED.setdefault(log, {})


class PublishesBackwards(Shard[R, E]):
    """The events of a batch go out in the wrong order."""

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        for event in reversed(events):
            await self.event_sink.publish(self.shard, [event])
        return await self.store.trim(claim, events[-1].oseq)


class Unfenced(Server):
    """Whoever asks may read and write, wherever it believes the shard to be."""

    def check(self, at: int, claim: Claim) -> Standing:
        return self.primaries[at][-1]


class FencedByOwner(Server):
    """Only the owner counts, not where the shard stands: the group's offset is believed."""

    def check(self, at: int, claim: Claim) -> Standing:
        state = self.primaries[at][-1]
        if claim.owner != state.claim.owner:
            raise ClaimLost("the shard is another worker's")
        return state


class ReadsUnverified(Server):
    """A read answers whatever the shard holds now; only writes look at the claim."""

    def read(self, at: int, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        values = self.primaries[at][-1].values
        return {key: values[key] for key in keys if key in values}


class WritesTwice(Server):
    """A commit is two commands, and what cuts the file between them leaves the first."""

    def commit(
        self, at: int, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        state = self.check(at, claim)
        half = Standing(claim, written(state.values, writes), state.outbox)
        self.primaries[at].append(half)
        return super().commit(at, claim, next_offset, writes, outbox)


class NoOutbox(Server):
    """Events are not committed with the state that caused them."""

    def keep(self, at: int, state: Standing) -> Claim:
        return super().keep(at, structs.replace(state, outbox=()))


class AppliesRepeats(FrontierFold):
    """No `in[q]`: a placement counts as often as it comes."""

    def apply(self, state: State, decoded: FrontierRecord) -> Generator[list[bytes], None, FrontierEffects]:
        if isinstance(decoded, PlacementRecord) and isinstance(header := state.others.get(FRONTIER), FrontierHeader):
            header.oseqs[decoded.shard] = 0
        return (yield from super().apply(state, decoded))


class BoundsBeyond(FrontierFold):
    """A placement is taken for the last of its input: the bound is off by one."""

    def apply(self, state: State, decoded: FrontierRecord) -> Generator[list[bytes], None, FrontierEffects]:
        effects = yield from super().apply(state, decoded)
        header = state.others[FRONTIER]
        if isinstance(decoded, PlacementRecord) and isinstance(header, FrontierHeader):
            header.watermarks[decoded.shard] = max(header.watermarks[decoded.shard], decoded.offset + 1)
        return effects


class HearsEveryGeneration(FrontierFold):
    """What other rules placed is applied as well."""

    def read(self, record: Record) -> FrontierRecord:
        if not self._signatures.is_signed(PLACEMENTS, record):
            return None
        generation = msgspec.json.decode(record.value or b"", type=dict[str, object])["generation"]
        return decode_placement(record.value, str(generation))


class ForwardsForEver(IntakeFold):
    """A forwarded record counts as often as it comes."""

    def read(self, record: Record) -> IntakeRecord:
        read = super().read(record)
        return structs.replace(read, origin=None) if read.is_home else read


class KeepsStrays(IntakeFold):
    """A record counts where it lies, whoever's id it has."""

    def read(self, record: Record) -> IntakeRecord:
        return structs.replace(super().read(record), is_home=True)


class BelievesAnyone(IntakeFold):
    """A forwarded record needs no signature."""

    def read(self, record: Record) -> IntakeRecord:
        believed = structs.replace(self._signatures, ends={DOCUMENTS: (1 << 60,) * self.partitions.intakes})
        self._signatures = believed
        return super().read(record)


class BelievesPlacements(FrontierFold):
    """A placement needs no signature."""

    def read(self, record: Record) -> FrontierRecord:
        self._signatures = structs.replace(self._signatures, ends={PLACEMENTS: (1 << 60,) * self.partitions.frontiers})
        return super().read(record)


class MarksTooFar(WatermarkEmitter):
    """A mark speaks for the record that is not applied yet, too."""

    async def emit(self) -> bool:
        settled = self.shard.published_offset
        if settled is None or settled == self.emitted:
            return False
        generation, shard = self.shard.generation, self.shard.shard
        record = encode_watermark(generation=generation, shard=shard, next_offset=settled + 1)
        await self.outbox.emit_watermarks([record])
        self.emitted = settled
        return True


class MarkedBeforePublished(Shard[R, E]):
    """The intake marks as soon as it has committed, before its outbox is empty."""

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        if isinstance(self.event_sink, IntakeOutbox):
            record = encode_watermark(generation=self.generation, shard=self.shard, next_offset=claim.next_offset)
            await self.event_sink.emit_watermarks([record])
        return await super()._publish(claim, events)


class LosesAPartition(IntakeOutbox):
    """A publication that failed half-way is taken for done."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        await super().publish(shard, events[:-1] if len(events) > 2 else events)


Wanted = Mapping[ShardId, Sequence[bytes]]
Replies = Mapping[ShardId, tuple[int, Mapping[bytes, bytes]]]


class NeverDoubts(ManyShardsSource):
    """Every read is called exact."""

    @property
    def is_exact(self) -> bool:
        return True


class CutsAtTheLast(ManyShardsSource):
    """The cut is what the last shard read had heard, not the least of all."""

    def _lower_cut(self, wanted: Wanted, replies: Replies) -> None:
        self._cut = []
        super()._lower_cut(wanted, replies)


class IgnoresRevisions(ManyShardsSource):
    """What is known of an id is not compared with the cut."""

    def _record_applied(self, place: ShardId, value: Value) -> None:
        if not isinstance(value, StoredDocument):
            super()._record_applied(place, value)


class IgnoresReleases(ManyShardsSource):
    """A document counts as changed when it was said, not when it was released."""

    def _record_applied(self, place: ShardId, value: Value) -> None:
        if isinstance(value, StoredDocument):
            self._seen[place.shard] = max(self._seen[place.shard], value.offset)
        else:
            super()._record_applied(place, value)


class IgnoresScopes(ManyShardsSource):
    """What a scope has applied is not compared with the cut."""

    def _record_applied(self, place: ShardId, value: Value) -> None:
        if not isinstance(value, Scope):
            super()._record_applied(place, value)


class TrustsTheIntake(ManyShardsSource):
    """An intake shard that fell back is believed to know all that the frontiers have heard."""

    def _lower_cut(self, wanted: Wanted, replies: Replies) -> None:
        ahead = {place: (1 << 40, raw) if place.hop == "intake" else (at, raw) for place, (at, raw) in replies.items()}
        super()._lower_cut(wanted, ahead)


MUTANTS: dict[str, Parts] = {
    "no fence": Parts(server=Unfenced),
    "the fence is the owner alone": Parts(server=FencedByOwner),
    "start at the committed offset": Parts(
        server=FencedByOwner, intake_machine=StartsAtTheGroup, frontier_machine=StartsAtTheGroup
    ),
    "unverified read": Parts(server=ReadsUnverified),
    "several write commands": Parts(server=WritesTwice),
    "no outbox": Parts(server=NoOutbox),
    "trim before acknowledgement, intake": Parts(intake_machine=TrimsFirst),
    "trim before acknowledgement, frontier": Parts(frontier_machine=TrimsFirst),
    "decoded state is kept, intake": Parts(intake_machine=KeepsValues),
    "decoded state is kept, frontier": Parts(frontier_machine=KeepsValues),
    "the outbox of the dead is forgotten": Parts(intake_machine=ForgetsTheOutbox),
    "the consumer is trusted, intake": Parts(intake_machine=TrustsTheLog),
    "the consumer is trusted, frontier": Parts(frontier_machine=TrustsTheLog),
    "published backwards, intake": Parts(intake_machine=PublishesBackwards),
    "published backwards, frontier": Parts(frontier_machine=PublishesBackwards),
    "published in part": Parts(outlet=LosesAPartition),
    "no in[q]": Parts(frontier=AppliesRepeats),
    "other generations are heard": Parts(frontier=HearsEveryGeneration),
    "forwarded records count twice": Parts(intake=ForwardsForEver),
    "forged origins are believed": Parts(intake=BelievesAnyone),
    "forged placements are believed": Parts(frontier=BelievesPlacements),
    "strays are kept": Parts(intake=KeepsStrays),
    "mark beyond what is applied": Parts(marks=MarksTooFar),
    "mark before the outbox is empty": Parts(intake_machine=MarkedBeforePublished),
    "cut bound off by one": Parts(frontier=BoundsBeyond),
    "no test of exactness": Parts(source=NeverDoubts),
    "the cut of the last shard read": Parts(source=CutsAtTheLast),
    "revisions beyond the cut": Parts(source=IgnoresRevisions),
    "releases beyond the cut": Parts(source=IgnoresReleases),
    "scopes beyond the cut": Parts(source=IgnoresScopes),
    "an intake that fell back": Parts(source=TrustsTheIntake),
}

"""What is published in a run, and what its shards and readers are made of."""

from collections.abc import Callable
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.placements import encode_placement, encode_watermark
from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.ports import Message
from stream_car.processing.effects import Effects
from stream_car.processing.fold import TICK
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.signatures import SIGNATURE
from stream_car.processing.two_hop import (
    FORWARDED,
    OFFSET_MAX,
    FrontierEffects,
    FrontierFold,
    FrontierRecord,
    IntakeFold,
    IntakeRecord,
)
from stream_car.queries.shards import ManyShardsSource
from tests.simulation.two_hops.servers import Server
from tests.simulation.world import bytes_of
from tests.support.streams import random_stream


class Parts(Struct, frozen=True, kw_only=True):
    """The real ones; a mutant replaces some."""

    intake_machine: type[Shard[IntakeRecord, Effects]] = Shard
    frontier_machine: type[Shard[FrontierRecord, FrontierEffects]] = Shard
    intake: type[IntakeFold] = IntakeFold
    frontier: type[FrontierFold] = FrontierFold
    server: type[Server] = Server
    outlet: type[IntakeOutbox] = IntakeOutbox
    marks: type[WatermarkEmitter] = WatermarkEmitter
    source: type[ManyShardsSource] = ManyShardsSource


HONEST = Parts()


class Publication(Struct, frozen=True):
    """A message for a partition, by how much the clock moves before it, and what a forger adds to the placements."""

    partition: int
    message: Message
    pause: int
    forged: Callable[[str], Message] | None = None


def _forged_placement(generation: str) -> Message:
    cause = Cause(id="n1", revision=1)
    placement = Placement(scope="topic=rain", id="n1", entry=None, old=None, cause=cause, offset=1)
    return Message(value=encode_placement(placement, generation=generation, shard=0, oseq=OFFSET_MAX))


def _forged_watermark(generation: str) -> Message:
    return Message(value=encode_watermark(generation=generation, shard=0, next_offset=OFFSET_MAX))


FORGED_HEADERS = (
    ((FORWARDED, b"0/9000000000000000000"),),
    ((FORWARDED, b"0/" + b"9" * 32),),
    ((FORWARDED, b"0/5"), (SIGNATURE, bytes(16))),
)
FORGED_PLACEMENTS: tuple[Callable[[str], Message], ...] = (
    _forged_placement,
    _forged_watermark,
    lambda generation: Message(value=b"garbage", key=b"\xff"),
    lambda generation: Message(value=b'{"kind":"place","v":9,"generation":"%b"}' % generation.encode()),
)


def random_plan(random: Random, length: int, partitions: Partitions) -> list[Publication]:
    """Documents, corrections, retractions, ticks, nonsense and forgeries, some of them in a wrong partition."""
    plan: list[Publication] = []
    for statement in random_stream(random, length, links=random.choice((0.0, 0.15))):
        what = random.random()
        message = Message(value=bytes_of(statement))
        if 0.72 < what < 0.84:
            message = Message(value=None, key=statement.id.encode())
        elif 0.94 < what < 0.97:
            message = Message(value=random.choice((b"", b"{", b'{"id": "n1", "type": "unheard of", "time": "2024"}')))
        elif what >= 0.97:
            message = Message(value=None, headers=(TICK,))
        at = partitions.of_id(statement.id) if what < 0.75 else random.randrange(partitions.intakes)
        forged = None
        if random.random() < 0.1:
            message = replace(message, headers=(*message.headers, *random.choice(FORGED_HEADERS)))
            forged = random.choice(FORGED_PLACEMENTS)
        plan.append(Publication(at, message, random.choice((0, 0, 1, 1)), forged))
    return plan

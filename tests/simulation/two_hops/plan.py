"""What is published in a run, and what its shards and readers are made of."""

from random import Random

from msgspec import Struct

from stream_car.codec.placements import PlacementRecord, WatermarkRecord
from stream_car.ports import Message
from stream_car.processing.effects import Effects
from stream_car.processing.fold import TICK
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierEffects, FrontierFold, IntakeFold, IntakeRecord
from stream_car.queries.shards import ManyShardsSource
from tests.simulation.two_hops.servers import Server
from tests.simulation.world import bytes_of
from tests.support.streams import random_stream


class Parts(Struct, frozen=True, kw_only=True):
    """The real ones; a mutant replaces some."""

    intake_machine: type[Shard[IntakeRecord, Effects]] = Shard
    frontier_machine: type[Shard[PlacementRecord | WatermarkRecord, FrontierEffects]] = Shard
    intake: type[IntakeFold] = IntakeFold
    frontier: type[FrontierFold] = FrontierFold
    server: type[Server] = Server
    outlet: type[IntakeOutbox] = IntakeOutbox
    marks: type[WatermarkEmitter] = WatermarkEmitter
    source: type[ManyShardsSource] = ManyShardsSource


HONEST = Parts()


class Publication(Struct, frozen=True):
    """A message for a partition, and by how much the clock moves before it."""

    partition: int
    message: Message
    pause: int


def random_plan(random: Random, length: int, partitions: Partitions) -> list[Publication]:
    """Documents, corrections, retractions, ticks and nonsense, some of them in a wrong partition."""
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
        plan.append(Publication(at, message, random.choice((0, 0, 1, 1))))
    return plan

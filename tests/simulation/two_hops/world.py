"""Two hops under every fault of the failure model: publishers, workers that all believe in themselves, readers.

Promise: a run is a function of its seed. Whatever is committed, published or answered is compared at
once with an uninterrupted run or with the definition; in the end the faults stop, the shards come to
rest and everything that is left is compared. Cost: about 25 ms a seed.

See a run again with `python -m tests.simulation.two_hops SEED`.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest

from stream_car.core import pages
from stream_car.core.rules import Ruleset
from stream_car.ports import Message, ShardId
from stream_car.processing.fold import REJECTED
from stream_car.processing.headers import FrontierHeader, Header
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import HEADER, decode_value
from stream_car.processing.two_hop import FRONTIER, emission_message, generation_of
from stream_car.queries.queries import Queries
from stream_car.queries.shards import ManyShards, ManyShardsSource, ValueSource
from tests.simulation.network import Network
from tests.simulation.two_hops.people import Asker, Worker
from tests.simulation.two_hops.plan import HONEST, Parts, Publication, random_plan
from tests.simulation.two_hops.servers import Client, Server, SimLog, SimOutlet, SimViews, Standing
from tests.simulation.two_hops.truth import Inputs, Reference, replayed
from tests.simulation.world import SKEW, Violation, finish
from tests.support.plain_index import PlainIndex
from tests.support.streams import random_rules, remember_the_oracle
from tests.support.two_hop_folds import SIGNATURES

LIFE = 80  # turns that a zombie has left


class Logs:
    """The logs that all generations share."""

    def __init__(self, network: Network, partitions: Partitions) -> None:
        self.documents = SimLog(network, partitions.intakes)
        self.placements = SimLog(network, partitions.frontiers)

    def size(self) -> int:
        """How many records there are."""
        return sum(map(len, (*self.documents.partitions, *self.placements.partitions)))


class Generation:
    """One rule set's shards on both hops: servers, what they should hold, and who works on them."""

    def __init__(self, network: Network, logs: Logs, partitions: Partitions, ruleset: Ruleset, parts: Parts) -> None:
        self.network = network
        self.logs = logs
        self.partitions = partitions
        self.ruleset = ruleset
        self.generation = generation_of(ruleset, partitions)
        self.parts = parts
        self.rejected = SimLog(network, 1)
        self.inputs = Inputs(logs.documents.partitions, partitions, ruleset, SIGNATURES)
        self.references: dict[ShardId, Reference] = {}
        self.servers: dict[ShardId, Server] = {}
        for shard, records in enumerate(logs.documents.partitions):
            intake = parts.intake(ruleset, partitions, shard=shard, skew=SKEW, signatures=SIGNATURES)
            self._add(ShardId("intake", shard), Reference(intake, records))
        for shard, records in enumerate(logs.placements.partitions):
            frontier = parts.frontier(ruleset, partitions, shard=shard, signatures=SIGNATURES)
            self._add(ShardId("frontier", shard), Reference(frontier, records))
        self.changes = {
            place: SimOutlet(network, self.references[place].event) for place in self.servers if place.hop == "frontier"
        }
        self.outlet = parts.outlet(
            partitions,
            signatures=SIGNATURES,
            placements=logs.placements,
            documents=logs.documents,
            rejected=self.rejected,
        )
        shards = _Sources(SimViews(network, self.servers), partitions, parts.source)
        queries = Queries(shards=shards, index=PlainIndex(), ruleset=ruleset, generation="")
        self.asker = Asker(network, self.inputs, queries, ruleset)
        self.workers = {place: [self.worker(place), self.worker(place)] for place in self.servers}
        self.zombies: list[tuple[Worker, int]] = []

    def _add(self, place: ShardId, reference: Reference) -> None:
        self.references[place] = reference
        self.servers[place] = self.parts.server(place.shard, lambda state: self._watch(place, state))

    def _watch(self, place: ShardId, state: Standing) -> None:
        """Every state that a store is ever in is the fold of the log before its offset."""
        at = state.claim.next_offset
        values, oseq = self.references[place].at(at)
        if state.values != values:
            wrong = {key for key in {*state.values, *values} if state.values.get(key) != values.get(key)}
            raise Violation(f"{place} at offset {at}: these values are not the fold of the log: {sorted(wrong)}")
        if state.claim.next_oseq != oseq:
            raise Violation(f"{place} at offset {at}: the next event is {state.claim.next_oseq}, not {oseq}")

    def worker(self, place: ShardId) -> Worker:
        """A new worker for a shard."""
        parts, shard = self.parts, place.shard
        client = Client(self.network, self.servers[place])
        if place.hop == "intake":
            intake = parts.intake(self.ruleset, self.partitions, shard=shard, skew=SKEW, signatures=SIGNATURES)
            machine = parts.intake_machine(
                shard=shard, log=self.logs.documents, store=client, event_sink=self.outlet, fold=intake
            )
            return Worker(self.network.random, client, machine, parts.marks(machine, self.outlet))
        frontier = parts.frontier_machine(
            shard=shard,
            log=self.logs.placements,
            store=client,
            event_sink=self.changes[place],
            fold=parts.frontier(self.ruleset, self.partitions, shard=shard, signatures=SIGNATURES),
        )
        return Worker(self.network.random, client, frontier)

    def everyone(self) -> list[Worker | Asker]:
        """Who may have a turn."""
        return [*(w for pair in self.workers.values() for w in pair), *(w for w, _ in self.zombies), self.asker]

    def mishap(self) -> None:
        """A rebalance, or a store that loses something."""
        random, network = self.network.random, self.network
        if network.happens(network.rate / 5):
            place = random.choice(list(self.workers))
            pair = self.workers[place]
            at = random.randrange(len(pair))
            if network.happens(0.5):
                self.zombies.append((pair[at], LIFE))
            else:
                pair[at].stop()
            pair[at] = self.worker(place)
            network.seen["rebalance"] += 1
        for place, pair in self.workers.items():
            for at, worker in enumerate(pair):
                if worker.is_gone:
                    pair[at] = self.worker(place)
        self.zombies = [(worker, left - 1) for worker, left in self.zombies if left and not worker.is_gone]
        if network.happens(network.rate / 8):
            self._lose(random.choice(list(self.servers)))

    def _lose(self, place: ShardId) -> None:
        """A shard's store is wiped, loses its last states, or has two primaries for a while."""
        random, server = self.network.random, self.servers[place]
        what = random.choice(("wipe", "rollback", "rollback", "split", "split"))
        self.network.seen[what] += 1
        server.fall_back(1 if what == "wipe" else random.randint(1, len(server.primaries[-1])))
        if what != "split":
            for worker in self.workers[place]:
                worker.client.sees = server.primary

    def stop(self) -> None:
        """Everybody lets go."""
        for person in self.everyone():
            person.stop()

    def recover(self) -> dict[ShardId, Worker]:
        """New workers, who meet no faults."""
        return {place: self.worker(place) for place in self.servers}

    def check(self) -> None:
        """Nothing is missing, nothing is left over, and all of it is as defined."""
        for place, server in self.servers.items():
            self._check_shard(place, server.state)
        unforwarded = self.inputs.unforwarded()
        if unforwarded:
            raise Violation(f"these records were never forwarded: {unforwarded}")
        self._check_rejected()
        self._check_changes()
        finish(self.asker.answer(self.inputs.ids(), self.asker.scopes(1000), [], 1))

    def _check_shard(self, place: ShardId, state: Standing) -> None:
        logs = self.logs.documents if place.hop == "intake" else self.logs.placements
        end = len(logs.partitions[place.shard])
        if state.claim.next_offset != end or state.outbox:
            raise Violation(f"{place} stopped at {state.claim.next_offset} with {len(state.outbox)} events to publish")
        header = decode_value(HEADER, state.values.get(HEADER)) or decode_value(FRONTIER, state.values.get(FRONTIER))
        counted = 0
        if isinstance(header, Header):
            counted = sum(header.counts.values())
        elif isinstance(header, FrontierHeader):
            counted = header.applied + header.repeated + header.foreign + header.watermark_records
        if counted != end:
            raise Violation(f"{place} counts {counted} records, not {end}")

    def _check_rejected(self) -> None:
        """Each rejected record is kept at least once, with its bytes, and no other."""
        expected = {
            SIGNATURES.sign(REJECTED, emission_message(event))
            for place, reference in self.references.items()
            if place.hop == "intake"
            for event in reference.events
            if event.stream == REJECTED
        }
        rejected = {
            Message(value=record.value, key=record.key, headers=record.headers)
            for record in self.rejected.partitions[0]
        }
        if rejected != expected:
            raise Violation(f"{len(rejected)} records were rejected, not {len(expected)}")

    def _check_changes(self) -> None:
        """What the changes told is what the definition says holds now."""
        known = self.inputs.known(self.inputs.end())
        frontiers: dict[str, set[str]] = {}
        for place, outlet in self.changes.items():
            expected = self.references[place].events
            if outlet.events != expected:
                raise Violation(f"{place} published {len(outlet.events)} changes, not {len(expected)}")
            frontiers |= replayed(outlet.events)
        for scope in self.asker.scopes(1000):
            if frontiers.get(scope, set()) != known.frontier(scope):
                raise Violation(f"{scope}: told {frontiers.get(scope)}, not {known.frontier(scope)}")
        for scope, void in frontiers.items():
            if scope.startswith("document="):
                name = scope.partition("=")[2]
                named = any(name in document.supersedes for document in known.corpus.values())
                named = named or (name in known.corpus and bool(known.corpus[name].superseded_by))
                if bool(void) != named:
                    raise Violation(f"{scope}: told {void}")


class _Sources(ManyShards):
    """The shards, seen through the source under test."""

    def __init__(self, views: SimViews, partitions: Partitions, kind: type[ManyShardsSource]) -> None:
        super().__init__(views, partitions)
        self._kind = kind

    def source(self, required: Sequence[int] = ()) -> ValueSource:
        return self._kind(self, required or self.required)


class World:
    """A run: what will be published, the generations, and whose turn it is."""

    def __init__(self, random: Random, parts: Parts, length: int) -> None:
        self.random = random
        self.parts = parts
        self.network = Network(random, random.choice((0.01, 0.03, 0.08)))
        self.turn_rate = random.choice((0.03, 0.1, 0.4))
        self.partitions = Partitions(intakes=random.choice((1, 2, 2, 3)), frontiers=random.choice((1, 2, 2, 3)))
        self.logs = Logs(self.network, self.partitions)
        self.plan: list[Publication] = random_plan(random, length, self.partitions)
        self.generations = [self._generation()]

    def _generation(self) -> Generation:
        return Generation(self.network, self.logs, self.partitions, random_rules(self.random), self.parts)

    def run(self, steps: int) -> None:
        """Turns end at requests; whoever had the last turn often has the next."""
        second = self.random.randrange(steps) if self.random.random() < 0.15 else -1
        current: Worker | Asker | None = None
        for step in range(steps):
            self._publish(0.02)
            if step == second:
                self.generations.append(self._generation())
                self.network.seen["another rule set"] += 1
            for generation in self.generations:
                generation.mishap()
            if self.network.late and self.network.happens(0.05):
                self.network.execute_late()
            if current is None or self.network.happens(self.turn_rate):
                current = self.random.choice(self.random.choice(self.generations).everyone())
            current.turn()

    def _publish(self, rate: float) -> None:
        if self.plan and self.network.happens(rate):
            publication = self.plan.pop(0)
            self.network.now += publication.pause
            self.logs.documents.write(publication.partition, [publication.message])
            if publication.forged is not None:
                partition = self.random.randrange(self.partitions.frontiers)
                self.logs.placements.write(partition, [publication.forged(self.generations[0].generation)])
                self.network.seen["forged"] += 1

    def settle(self) -> None:
        """Faults have stopped: everything is published, new workers bring all shards to rest."""
        for generation in self.generations:
            generation.stop()
        while self.network.late:
            self.network.execute_late()
        self.network.rate = 0.0
        while self.plan:
            self._publish(1.0)
        workers = [generation.recover() for generation in self.generations]
        size = -1
        while size != self.logs.size():
            size = self.logs.size()
            for of_generation in workers:
                for worker in of_generation.values():
                    worker.catch_up()
        for generation in self.generations:
            generation.check()


def simulate(seed: int, parts: Parts = HONEST, *, length: int = 24, steps: int = 2500) -> Counter[str]:
    """One seeded run with faults, then recovery, in small pages; what befell it.

    Raises `Violation`, or whatever the engine raised.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pages, "INLINE_MAX", 2)
        patched.setattr(pages, "PAGE_MAX", 4)
        patched.setattr(pages, "FOLDER_MAX", 3)
        remember_the_oracle(patched.setattr)
        world = World(Random(seed), parts, length)
        world.run(steps)
        world.settle()
    return world.network.seen


def replay_command(seed: int) -> str:
    """What to type to see a failed seed again."""
    return f"python -m tests.simulation.two_hops {seed}"

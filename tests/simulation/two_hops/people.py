"""Who works on shards, and who asks."""

from collections.abc import Coroutine, Sequence
from random import Random
from typing import Protocol

from stream_car.core.rules import Ruleset
from stream_car.core.stored import Entry
from stream_car.core.walk import WalkResult
from stream_car.errors import ClaimLost, Halted, InvalidRequest
from stream_car.processing.outbox import WatermarkEmitter
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import MinRevision, ReadOptions
from stream_car.queries.scope_members import ALL, active_members
from stream_car.queries.snapshot import Snapshot
from tests.simulation.network import Crash, Lost, Network, Pause
from tests.simulation.two_hops.servers import Client
from tests.simulation.two_hops.truth import Inputs
from tests.simulation.world import Violation, finish

Running = Coroutine[object, object, object]


class Machine(Protocol):
    """What a host drives."""

    def start(self) -> Running:
        """Claim the shard."""
        ...

    def check_claim(self) -> Running:
        """Notice that the store fell back."""
        ...

    def run_once(self, max_records: int) -> Coroutine[object, object, Sequence[object]]:
        """Apply a batch."""
        ...


class Worker:
    """Somebody who believes that a shard is his, and what he is doing now."""

    def __init__(self, random: Random, client: Client, machine: Machine, marks: WatermarkEmitter | None = None) -> None:
        self.random = random
        self.client = client
        self.machine = machine
        self.marks = marks
        self.running: Running | None = None
        self.is_gone = False

    def turn(self) -> None:
        """Go on until the next request, or begin something."""
        work = self.running or self._work()
        self.running = None
        try:
            work.send(None)
            self.running = work
        except Crash:
            self.is_gone = True
        except (StopIteration, ClaimLost, Lost):
            pass
        except Halted as halted:
            if halted.code != "gap":
                raise

    def _work(self) -> Running:
        """A batch, a mark, or now and then a heartbeat or a new start, as a rebalance would bring it."""
        what = self.random.random()
        if what < 0.04:
            return self.machine.start()
        if what < 0.08:
            return self.machine.check_claim()
        if what < 0.3 and self.marks is not None:
            return self.marks.emit()
        return self.machine.run_once(self.random.randint(1, 5))

    def stop(self) -> None:
        """Cancel what is running, as a host does that is told to let go."""
        if self.running is not None:
            self.running.close()
            self.running = None

    def catch_up(self) -> None:
        """Bring the shard to the end of its log, and say so; without faults."""
        while finish(self.machine.run_once(100)):
            pass
        if self.marks is not None:
            finish(self.marks.emit())


class Pauses:
    """Implements `ports.RetryPolicy`: lets the others have some turns, so often and no more."""

    def __init__(self, left: int) -> None:
        self.left = left

    async def wait(self) -> bool:
        for _ in range(10):
            await Pause()
        self.left -= 1
        return self.left > 0


class Seen:
    """What one answer said, and as of which cut."""

    def __init__(self, reader: Snapshot) -> None:
        self.reader = reader
        self.walks: dict[str, WalkResult | None] = {}
        self.holding: dict[str, list[Entry]] = {}


class Asker:
    """Somebody who asks, and compares every answer that is called exact with the definition."""

    def __init__(self, network: Network, inputs: Inputs, queries: Queries, ruleset: Ruleset) -> None:
        self.network = network
        self.inputs = inputs
        self.queries = queries
        self.ruleset = ruleset
        self.running: Running | None = None

    def turn(self) -> None:
        """Go on until the next request, or ask something new."""
        work = self.running or self.ask()
        self.running = None
        try:
            work.send(None)
            self.running = work
        except (StopIteration, Lost, Crash):
            pass
        except InvalidRequest as refused:
            self.network.seen[refused.code] += 1

    def stop(self) -> None:
        """Ask no more."""
        if self.running is not None:
            self.running.close()
            self.running = None

    async def ask(self) -> None:
        """What controls some documents, and who holds in some scopes; at times after a given statement."""
        random = self.network.random
        ids = self.inputs.ids()
        anchors = random.sample(ids, min(len(ids), random.choice((1, 2, 4))))
        after = [MinRevision(id=random.choice(ids), revision=random.choice((1, 1, 2)))] if random.random() < 0.4 else []
        await self.answer(anchors, self.scopes(random.choice((0, 1, 2))), after, random.choice((1, 3, 6)))

    def scopes(self, limit: int) -> list[str]:
        """Some scopes of documents that were published."""
        every = sorted({scope for document in self.inputs.documents() for scope in self.ruleset.scopes(document)})
        return self.network.random.sample(every, min(limit, len(every)))

    async def answer(
        self, anchors: Sequence[str], scopes: Sequence[str], after: Sequence[MinRevision], patience: int
    ) -> None:
        """One question; raises `Violation` where the answer is called exact and is not."""

        async def look(reader: Snapshot) -> Seen:
            seen = Seen(reader)
            seen.walks = dict(zip(anchors, await reader.walk(anchors), strict=True))
            for name in scopes:
                scope = await reader.scope(name)
                seen.holding[name] = await reader.with_pages(lambda scope=scope: active_members(scope, reader, ALL))  # type: ignore[misc]
            return seen

        seen = await self.queries.read_consistently(
            None, look, ReadOptions(min_revisions=after, retry=Pauses(patience))
        )
        self.network.seen["exact"] += 1
        self._compare(seen, after)

    def _compare(self, seen: Seen, after: Sequence[MinRevision]) -> None:
        cut = seen.reader.cut
        known = self.inputs.known(cut)
        for anchor, walk in seen.walks.items():
            if (walk is not None) != (anchor in known.corpus):
                raise Violation(f"at {cut}: {anchor} is {'here' if walk is not None else 'not here'}")
            if walk is not None:
                controlling = {entry.id for entry in walk.controlling}
                if controlling != known.controlling(anchor) or walk.is_active != (anchor in known.active):
                    raise Violation(
                        f"at {cut}: {anchor} is controlled by {controlling}, not {known.controlling(anchor)}"
                    )
        for scope, entries in seen.holding.items():
            if {entry.id for entry in entries} != known.frontier(scope):
                raise Violation(f"at {cut}: in {scope} hold {[entry.id for entry in entries]}")
        for minimum in after:
            home = self.inputs.partitions.of_id(minimum.id)
            statements = self.inputs.statements(home, cut[home])
            if not any(each.id == minimum.id and (each.revision or 0) >= minimum.revision for each in statements):
                raise Violation(f"at {cut}: revision {minimum.revision} of {minimum.id} was not seen yet")

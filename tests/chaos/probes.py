"""Small worlds that are published through query workers, and questions about them at any moment.

Promise: an answer that is not marked is what the definition says of some prefix, by partition, of what was published.
The prefix includes whatever the process has given a receipt for, whatever anybody had a receipt for when the process
was started, whatever `after` names, and whatever the process has shown before in an answer to the same question.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from random import Random

from stream_car import AsyncClient
from stream_car.core import definitions
from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest, NotVisible, Overloaded, StreamCarError, Unavailable
from stream_car.processing.partitions import Partitions
from stream_car.queries.read_options import MinRevision
from tests.chaos import questions
from tests.chaos.documents import random_statement
from tests.chaos.fleet import Fleet, Member
from tests.chaos.questions import Question, Sample
from tests.simulation.two_hops.truth import Known
from tests.simulation.world import bytes_of

STEPS = 10
MEMBERS = 4
RETRY_S = 0.2
LETTERS = "abcdefghijklmnopqrstuvwxyz"
TEMPORARY = frozenset({"not_visible", "in_flight", "pending"})  # codes of a request that may succeed later

Counts = tuple[int, ...]  # of statements, by partition


class Probe:
    """One world: what was published so far, and what is known to have been applied."""

    def __init__(self, number: int, random: Random, ruleset: Ruleset, partitions: Partitions) -> None:
        self.world = "probe" + "".join(LETTERS[number // 26**at % 26] for at in range(4))
        self.ruleset = ruleset
        self.partitions = partitions
        statements = [random_statement(random, self.world, revision=n + 1, members=MEMBERS) for n in range(STEPS)]
        self.steps: list[tuple[int, Statement]] = [(partitions.of_id(each.id), each) for each in statements]
        self.sent = self.acknowledged = 0
        self.known_by: dict[tuple[int, int], Counts] = {}  # what a start of a query worker must know
        self.shown: dict[tuple[int, int, Question], Counts] = {}
        self._known: dict[Counts, Known] = {}

    def counts(self, steps: int) -> Counts:
        """Return how many of the first steps are in each partition."""
        counts = Counter(partition for partition, _ in self.steps[:steps])
        return tuple(counts[partition] for partition in range(self.partitions.intakes))

    def known(self, counts: Counts) -> Known:
        """Return what the definition says of these prefixes of the partitions."""
        if counts not in self._known:
            left = list(counts)
            statements = []
            for partition, statement in self.steps:
                if left[partition]:
                    left[partition] -= 1
                    statements.append(statement)
            self._known[counts] = Known(definitions.current_documents(statements), self.ruleset)
        return self._known[counts]

    def note_receipt(self, member: Member | None) -> None:
        """Note that the last step sent has a receipt, of this query worker if that is known."""
        self.acknowledged = self.sent
        if member is None:
            return
        key = member.number, member.starts
        known = list(self.known_by.get(key, (0,) * self.partitions.intakes))
        partition = self.steps[self.sent - 1][0]
        known[partition] = self.counts(self.sent)[partition]
        self.known_by[key] = tuple(known)

    def after(self) -> tuple[MinRevision, ...]:
        """Return the latest revisions that have receipts."""
        latest = {statement.id: n + 1 for n, (_, statement) in enumerate(self.steps[: self.acknowledged])}
        return tuple(MinRevision(id=name, revision=revision) for name, revision in latest.items())

    def question(self, random: Random) -> Question:
        """Return a question about what was published so far."""
        kind = random.choice(questions.KINDS)
        documents = [each for _, each in self.steps if isinstance(each, Document)]
        if kind == "query" or not documents:
            return Question("query", self.world)
        document = random.choice(documents)
        scopes = self.ruleset.scopes(document)
        if kind in questions.ABOUT_SCOPES:
            return Question(kind, random.choice(scopes)) if scopes else Question("resolve", document.id)
        return Question(kind, document.id)

    def explains(self, question: Question, gist: object, low: Counts, high: Counts) -> Counts | None:
        """Return the lowest prefixes between two by which the definition says this, or `None` if there are none."""
        ranges = [range(first, max(first, last) + 1) for first, last in zip(low, high, strict=True)]
        cuts = list(itertools.product(*ranges))
        matches = [
            cut
            for cut in cuts
            if any(
                gist == questions.expected(question, self.known(indexed), self.known(cut), self.ruleset)
                for indexed in (cuts if question.kind == "query" else [cut])
            )
        ]
        return tuple(map(min, zip(*matches, strict=True))) if matches else None


class Prober:
    """Publishes probes through query workers, one after the other, and asks about them meanwhile."""

    def __init__(self, fleet: Fleet, random: Random, ruleset: Ruleset, partitions: Partitions) -> None:
        self.probes: list[Probe] = []
        self.answers: Counter[str] = Counter()  # by kind and what came of it
        self.violations: list[str] = []
        self.is_stopping = False
        self._fleet = fleet
        self._random = random
        self._ruleset = ruleset
        self._partitions = partitions

    def note_start(self, member: Member) -> None:
        """Note that a query worker is about to start: it must know whatever has a receipt now."""
        for probe in self.probes:
            probe.known_by[member.number, member.starts + 1] = probe.counts(probe.acknowledged)

    async def publish(self, pause_s: float) -> None:
        """Publish until `is_stopping`: each step until it has a receipt."""
        while self._continues():
            probe = Probe(len(self.probes), self._random, self._ruleset, self._partitions)
            self.probes.append(probe)
            for _, statement in probe.steps:
                if self._continues():
                    probe.sent += 1
                    await self._publish(probe, bytes_of(statement))
                    await asyncio.sleep(pause_s)

    def _continues(self) -> bool:
        return not self.is_stopping

    async def _publish(self, probe: Probe, document: bytes) -> None:
        while True:
            member = self._random.choice([*self._fleet.members, None])
            start = member.starts if member is not None else 0
            client = member.client if member is not None else self._fleet.proxy
            assert client is not None
            try:
                published = await client.publish([document])
            except (Unavailable, Overloaded) as error:
                self.answers[f"publish {_code(error)}"] += 1
                await asyncio.sleep(RETRY_S)
                continue
            [receipt] = published.receipts
            if receipt.outcome in ("rejected", "pending"):
                self.violations.append(f"{probe.world}: the receipt of {document!r} says {receipt.outcome}")
            if member is None or start == member.starts:
                probe.note_receipt(member)
            else:
                probe.acknowledged = probe.sent
            self.answers["publish receipt"] += 1
            return

    async def sample(self, member: Member | None, pause_s: float) -> None:
        """Ask one query worker, or the proxy, until cancelled."""
        while True:
            await asyncio.sleep(pause_s * (0.5 + self._random.random()))
            recent = self.probes[-30:] if self._random.random() < 0.7 else self.probes
            if recent:
                await self._sample(self._random.choice(recent), member)

    async def _sample(self, probe: Probe, member: Member | None) -> None:
        question = probe.question(self._random)
        has_after = question.kind in questions.WITH_AFTER and (member is None or self._random.random() < 0.3)
        if member is None and not has_after:
            return
        client = member.client if member is not None else self._fleet.proxy
        start = member.starts if member is not None else 0
        key = (member.number, start) if member is not None else (-1, 0)
        low = probe.known_by.get(key, (0,) * self._partitions.intakes)
        low = tuple(map(max, low, probe.shown.get((*key, question), low)))
        if has_after:
            low = tuple(map(max, low, probe.counts(probe.acknowledged)))
        assert client is not None
        sample = await self._ask(client, question, probe.after() if has_after else ())
        if sample is None:
            return
        if member is not None and member.starts != start:
            self.answers[f"{question.kind} of a process that ended"] += 1
            return
        if sample.is_marked:
            self.answers[f"{question.kind} marked"] += 1
            return
        cut = probe.explains(question, sample.gist, low, probe.counts(probe.sent))
        if cut is None:
            self.answers[f"{question.kind} WRONG"] += 1
            self.violations.append(self._describe(probe, question, sample, low, has_after, member))
            return
        self.answers[f"{question.kind} right"] += 1
        if member is not None:
            probe.shown[*key, question] = cut

    def _describe(
        self, probe: Probe, question: Question, sample: Sample, low: Counts, has_after: bool, member: Member | None
    ) -> str:
        high = probe.counts(probe.sent)
        wanted = [
            questions.expected(question, probe.known(cut), probe.known(cut), self._ruleset)
            for cut in dict.fromkeys((low, high))
        ]
        who = f"query worker {member.number}" if member is not None else "the proxy"
        who += " with after" if has_after else ""
        return (
            f"{who}: {question.kind} {question.subject} is {sample.gist}, and should be "
            f"{wanted[0]} as of {low} or {wanted[-1]} as of {high}; steps: "
            + ", ".join(f"{partition}:{bytes_of(each).decode()}" for partition, each in probe.steps[: probe.sent])
        )

    async def _ask(self, client: AsyncClient, question: Question, after: Sequence[MinRevision]) -> Sample | None:
        try:
            return await questions.ask(client, question, after)
        except (Unavailable, NotVisible, Overloaded) as error:
            self.answers[f"{question.kind} {_code(error)}"] += 1
        except InvalidRequest as error:
            self.answers[f"{question.kind} {error.code}"] += 1
            if error.code not in TEMPORARY:
                self.violations.append(f"{question.kind} {question.subject}: {error.code}: {error}")
        except StreamCarError as error:
            self.answers[f"{question.kind} {type(error).__name__}"] += 1
            self.violations.append(f"{question.kind} {question.subject}: {type(error).__name__}: {error}")
        return None

    @property
    def sampled(self) -> int:
        """How many answers were compared, or were marked."""
        return sum(count for name, count in self.answers.items() if name.split()[-1] in ("right", "marked", "WRONG"))


def _code(error: StreamCarError) -> str:
    return error.code if isinstance(error, Unavailable | NotVisible) else "overloaded"

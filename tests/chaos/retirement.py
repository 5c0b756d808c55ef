"""Kafka deletes the beginning of the topics while an installation works; later its state is lost too.

Promise: as long as state and index are there, all answers are right. A query worker that lacks what was deleted is not
ready, and marks every answer as incomplete. So are and do all of them once the state cannot be built again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import httpx
from kafka import KafkaAdminClient, TopicPartition

from stream_car.errors import InvalidRequest, NotVisible, Unavailable
from tests.chaos import questions
from tests.chaos.fleet import Fleet, Member
from tests.chaos.installation import PARTITIONS, Installation
from tests.chaos.questions import Question
from tests.chaos.twin import Twin
from tests.simulation.two_hops.truth import Inputs
from tests.simulation.world import Violation

DOCUMENTS = 200
READY_S = 60.0
LOOK_S = 0.1
ROUNDS = 8  # of all questions


class Retirement:
    """One installation of which the history is deleted."""

    def __init__(
        self, kafka: str, redis: str, folder: Path, random: Random, flush: Callable[[], Awaitable[None]]
    ) -> None:
        folder.mkdir()
        self.installation = Installation(kafka, redis, folder)
        self.fleet = Fleet(self.installation)
        self.marked = 0
        self._random = random
        self._flush = flush

    async def run(self) -> None:
        """Let it happen, and examine every answer. Raises `Violation`."""
        installation = self.installation
        twin = Twin(installation.folder / "twin", installation.rules, installation.ruleset, self._random)
        keeping, fresh, _ = self.fleet.members
        kept: list[Inputs] = []

        async def compare(inputs: Inputs) -> None:
            kept.append(inputs)
            await self._compare(twin, keeping, inputs)

        with twin.engine:
            async with installation.open(), self.fleet.open():
                installation.worker()
                keeping.start(installation)
                await installation.publish(DOCUMENTS, small_worlds=0.5)
                await installation.judge(further=compare)
                await self._delete_records()
                fresh.start(installation)
                await self._not_ready(fresh)
                await self._require_marked(fresh)
                assert keeping.process is not None
                await keeping.process.stop()
                keeping.start(installation)
                await self._compare(twin, keeping, kept[0])
                await self._flush()
                for code in ("", "lost_history"):  # as soon as it is not ready, and when it knows why
                    for member in (keeping, fresh):
                        await self._not_ready(member, code)
                    for _ in range(ROUNDS):
                        await self._require_marked(keeping)
                        await self._require_marked(fresh)

    async def _delete_records(self) -> None:
        """Let retention delete a beginning of every partition of documents, placements and changes."""
        ends = {("documents", partition): end for partition, end in enumerate(self.installation.ends())}
        for topic in ("placements", "changes"):
            for partition in range(PARTITIONS.frontiers):
                ends[topic, partition] = len(await self.installation.records(topic, partition))
        offsets = {
            TopicPartition(self.installation.layout.full_name(topic), partition): self._random.randint(1, max(1, end))
            for (topic, partition), end in ends.items()
            if end
        }
        admin = KafkaAdminClient(bootstrap_servers=self.installation.server.address)
        await asyncio.to_thread(admin.delete_records, offsets)
        admin.close()

    async def _compare(self, twin: Twin, member: Member, inputs: Inputs) -> None:
        async with httpx.AsyncClient(base_url=member.client.url, trust_env=False) as http:
            await _until_readiness(http, 200)
        twin.feed(inputs)
        await twin.require_equal(member.client, f"query worker {member.number}", inputs)

    async def _not_ready(self, member: Member, code: str = "") -> None:
        async with httpx.AsyncClient(base_url=member.client.url, trust_env=False) as http:
            await _until_readiness(http, 503, code)

    async def _require_marked(self, member: Member) -> None:
        """Ask all kinds of questions. Raises `Violation` for an answer that is not marked, and if it is ready."""
        async with httpx.AsyncClient(base_url=member.client.url, trust_env=False) as http:
            if (await http.get("/readyz")).status_code == 200:
                raise Violation(f"query worker {member.number} is ready although history is lost")
        scope = self._random.choice(["x=1", "y=2", "x=1, y=2", "record=r1", "x=none"])
        for kind in questions.KINDS:
            question = Question(kind, scope if kind in questions.ABOUT_SCOPES else f"n{self._random.randrange(60)}")
            try:
                sample = await questions.ask(member.client, question)
            except (Unavailable, NotVisible):
                continue
            except InvalidRequest as error:
                if error.code == "in_flight":
                    continue
                raise
            if not sample.is_marked:
                raise Violation(f"query worker {member.number}: {question} is {sample.gist}, unmarked; history is lost")
            self.marked += 1


async def _until_readiness(http: httpx.AsyncClient, status: int, code: str = "") -> None:
    """Return when `/readyz` answers with this status and code. Raises `Violation` if that takes long."""
    deadline = asyncio.get_running_loop().time() + READY_S
    given, text = 0, ""
    while given != status or code not in text:
        if asyncio.get_running_loop().time() > deadline:
            raise Violation(f"{http.base_url}readyz answers {given} {text}, not {status} {code}")
        await asyncio.sleep(LOOK_S)
        try:
            response = await http.get("/readyz")
            given, text = response.status_code, response.text
        except httpx.TransportError:
            given = 0

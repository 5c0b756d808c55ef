"""A rebuild beside a running service: built in small steps between its questions, then switched to at once.

Promise: one at a time; until the switch everybody is answered by the old rules, from then on by the new,
and no publication is answered before the rules in force have seen it. What fails or is given up changes
nothing and is told by `progress`.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from stream_car.api.messages import Moved, PackText, Progress
from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.local.engine import Engine
from stream_car.local.rebuild import Rebuild
from stream_car.processing.effects import Future
from stream_car.queries.answers import Difference, Stands
from stream_car.rule_packs import load_sent
from stream_car.subscriptions.broadcast import Broadcast

STEP = 64  # records folded, or documents compared, before questions get their turn
QUIET_STEP = 256  # the same while nobody asks
TURNS = 4
PREPARING_S = 0.01
TOLD_MAX = 1000  # differences kept to be looked at


class Rebuilding:
    """The rebuilds of one service."""

    def __init__(self, engine: Engine, bell: Broadcast, still: asyncio.Lock, is_asked: Callable[[], bool]) -> None:
        self.engine = engine
        self.bell = bell
        self.still = still
        self.is_asked = is_asked
        self._task: asyncio.Task[None] | None = None
        self._progress = Progress()

    def begin(
        self, packs: Sequence[str], texts: Sequence[PackText], future: Future | None, *, dry_run: bool
    ) -> Progress:
        """Begin. Raises `InvalidRules`, `InvalidRequest` (`rebuild_running`)."""
        if self._task is not None and not self._task.done():
            raise InvalidRequest("rebuild_running", "another rebuild goes on; GET /v1/rebuild tells how far it is")
        rebuild = self._begun(packs, texts, future)
        self._progress = Progress(state="building", dry_run=dry_run, end=rebuild.end)
        self._task = asyncio.create_task(self._run(rebuild, dry_run=dry_run))
        return self._progress

    def _begun(self, packs: Sequence[str], texts: Sequence[PackText], future: Future | None) -> Rebuild:
        if not packs and not texts:
            return self.engine.rebuild(future=future)
        ruleset = load_sent(packs, {one.name: one.text for one in texts})
        return self.engine.rebuild(packs, ruleset=ruleset, future=future)

    def progress(self) -> Progress:
        """How far it is, or how the last one ended."""
        return self._progress

    async def stop(self) -> None:
        """Give up what goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, rebuild: Rebuild, *, dry_run: bool) -> None:
        """What ended is told when nothing is left of it: then the next may begin."""
        ended: dict[str, object] = {"state": "failed", "detail": "it was stopped; nothing has changed, begin again"}
        try:
            await self._build(rebuild)
            if dry_run:
                ended = await self._compared(rebuild)
            else:
                async with self.still:  # nobody is in the middle of an answer
                    rebuild.switch()
                self.bell.notify()
                ended = {"state": "switched", "applied": rebuild.applied, "end": rebuild.end}
        except Exception as error:
            is_told = isinstance(error, StreamCarError | OSError)
            ended = {"state": "failed", "detail": str(error) if is_told else repr(error)}
        finally:
            try:
                await asyncio.to_thread(rebuild.close)
            finally:
                self._tell(**ended)

    async def _build(self, rebuild: Rebuild) -> None:
        """All but the last few records, which the switch applies: to wait for none would be to race the publishers."""
        step = STEP
        while rebuild.step(step) == step:
            step = STEP if self.is_asked() else QUIET_STEP
            self._tell(applied=rebuild.applied, end=rebuild.end)
            await _turn()
        while not rebuild.is_prepared():
            await asyncio.sleep(PREPARING_S)

    async def _compared(self, rebuild: Rebuild) -> dict[str, object]:
        self._tell(state="comparing")
        counts: Counter[tuple[Stands, Stands]] = Counter()
        told: list[Difference] = []
        for some in rebuild.compared(STEP):
            counts.update((one.before, one.after) for one in some)
            told += some[: TOLD_MAX - len(told)]
            await _turn()
        found = tuple(Moved(before=before, after=after, documents=n) for (before, after), n in counts.most_common())
        return {"state": "compared", "counts": found, "differences": tuple(told)}

    def _tell(self, **changed: object) -> None:
        self._progress = replace(self._progress, **changed)


async def _turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)

"""Extractors and judges are code of others: here is what happens if one raises, hangs or returns nonsense.

Promise: a failure never loses a text and never writes half of it. A text without facts is kept without a key; a judge
that fails decides nothing, so the rule does. Failures are counted and logged. Cost: a thread per call, except for the
default extractor, which is called directly.
"""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Literal, TypeVar

from stream_car.errors import InvalidRequest
from stream_car.memory.documents import TEXT_MAX
from stream_car.memory.extraction import Extractor, Fact
from stream_car.memory.frames import FrameExtractor
from stream_car.memory.judging import Judge, Judgement
from stream_car.memory.keys import parse_key

Failure = Literal["raised", "timed_out", "nonsense", "busy"]
SECONDS = 30.0  # how long an extractor or a judge may take
FACTS_MAX = 100  # of one text
HANGING_MAX = 4  # calls that did not return in time; at this number no further one is made
_log = logging.getLogger(__name__)
T = TypeVar("T")


class ExtractionGuard:
    """Calls an extractor and a judge within a time limit. `failures` counts why their results were not used."""

    def __init__(self, extractor: Extractor | None, judge: Judge | None = None, seconds: float = SECONDS) -> None:
        """Guard an extractor and a judge. Raises `InvalidRequest` (`time_limit`) if it is not positive."""
        if not seconds > 0:
            raise InvalidRequest("time_limit", "`time_limit` must be a positive number of seconds.")
        self._extractor = extractor
        self._judge = judge
        self._seconds = seconds
        self._hanging: list[threading.Thread] = []
        self.failures: Counter[Failure] = Counter()

    @property
    def has_judge(self) -> bool:
        """Whether there is a judge."""
        return self._judge is not None

    def extract(self, text: str) -> Sequence[Fact]:
        """Return the facts of a text; none if there is no extractor, or it fails."""
        extractor = self._extractor
        if extractor is None or isinstance(extractor, FrameExtractor):
            return extractor.extract(text) if extractor is not None else ()
        facts: object = self._within(lambda: extractor.extract(text))
        if facts is None:
            return ()
        if not isinstance(facts, Sequence) or len(facts) > FACTS_MAX or not all(map(_is_fact, facts)):
            self._failed("nonsense", extractor, "something else than facts with keys and values")
            return ()
        return [fact for fact in facts if isinstance(fact, Fact)]

    def judge(self, candidate: str, existing: Sequence[str]) -> Judgement | None:
        """Return how a sentence relates to those that hold; `None` if there is no judge, or it fails."""
        judge = self._judge
        if judge is None:
            return None
        verdict: object = self._within(lambda: judge.judge(candidate, existing))
        if verdict is None:
            return None
        if not isinstance(verdict, Judgement) or (verdict.relation == "merge" and not _is_text(verdict.merged_text)):
            self._failed("nonsense", judge, "no verdict, or a merge without a text")
            return None
        return verdict

    def _within(self, call: Callable[[], T]) -> T | None:
        """Return what a call returns within the time limit; `None` if it fails."""
        self._hanging = [thread for thread in self._hanging if thread.is_alive()]
        if len(self._hanging) >= HANGING_MAX:
            self._failed("busy", call, f"{HANGING_MAX} earlier calls have not returned")
            return None
        results: SimpleQueue[tuple[T | None, Exception | None]] = SimpleQueue()

        def run() -> None:
            try:
                results.put((call(), None))
            except Exception as error:
                results.put((None, error))

        thread = threading.Thread(target=run, name="stream-car-extractor", daemon=True)
        thread.start()
        try:
            result, error = results.get(timeout=self._seconds)
        except Empty:
            self._hanging.append(thread)
            self._failed("timed_out", call, f"no answer in {self._seconds:g} s")
            return None
        if error is not None:
            self._failed("raised", call, f"{type(error).__name__}: {error}")
        elif result is None:
            self._failed("nonsense", call, "None")
        return result

    def _failed(self, failure: Failure, what: object, detail: str) -> None:
        self.failures[failure] += 1
        _log.warning("The extractor or judge %s (%s). The text is kept without its help.", failure, detail[:200])


class AsyncExtractionGuard(ExtractionGuard):
    """The same for asynchronous programs: waiting blocks no other task."""

    async def facts(self, text: str) -> Sequence[Fact]:
        """Return the facts of a text, as `extract` does."""
        if self._extractor is None or isinstance(self._extractor, FrameExtractor):
            return self.extract(text)
        return await asyncio.to_thread(self.extract, text)

    async def verdict(self, candidate: str, existing: Sequence[str]) -> Judgement | None:
        """Return how a sentence relates to those that hold, as `judge` does."""
        return await asyncio.to_thread(self.judge, candidate, existing) if self._judge is not None else None


def _is_text(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and len(text.encode("utf-8", "surrogatepass")) <= TEXT_MAX


def _is_fact(fact: object) -> bool:
    if not isinstance(fact, Fact) or not _is_text(fact.object) or not isinstance(fact.text, str):
        return False
    try:
        parse_key(str(fact.key))
    except InvalidRequest:
        return False
    return not fact.text or _is_text(fact.text)

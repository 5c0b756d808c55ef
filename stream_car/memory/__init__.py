"""Memory for agents: values that change, of which the latest holds, on the same log and rules as everything else.

    from stream_car.memory import Memory

    memory = Memory("agent.car", user_id="ada")
    memory.add("The staging database is db-3", key="staging::database")
    memory.add("The staging database is db-7", key="staging::database")
    memory.search("which database is staging")["results"]

The calls have the names and shapes that mem0 made common, and beside them the words of the papers: `remember`,
`recall`, `current`, `retire`.
"""

from pathlib import Path
from types import TracebackType

import stream_car
from stream_car.client.aio import AsyncClient
from stream_car.client.sync import Client
from stream_car.errors import InvalidRequest
from stream_car.local.engine import Engine
from stream_car.memory.calls import MemoryCalls
from stream_car.memory.calls_aio import AsyncMemoryCalls
from stream_car.memory.documents import PACK, require_pack
from stream_car.memory.extraction import Extractor as Extractor, Fact as Fact, QuestionReader as QuestionReader
from stream_car.memory.extraction_guard import SECONDS
from stream_car.memory.frames import FrameExtractor as FrameExtractor
from stream_car.memory.judging import Judge as Judge, Judgement as Judgement
from stream_car.memory.keys import MemoryKey as MemoryKey, owner
from stream_car.memory.llm import ChatModel as ChatModel, LlmExtractor as LlmExtractor, LlmJudge as LlmJudge
from stream_car.memory.packing import estimate_tokens as estimate_tokens
from stream_car.memory.shapes import (
    AddResults as AddResults,
    Forgotten as Forgotten,
    HistoryItem as HistoryItem,
    Memorized as Memorized,
    MemoryItem as MemoryItem,
    SearchResults as SearchResults,
)

FRAMES = FrameExtractor()


class Memory(MemoryCalls):
    """A memory in a data directory of its own, in one that is open already, or in a service."""

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        engine: Engine | Client | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        extractor: Extractor | None = FRAMES,
        judge: Judge | None = None,
        time_limit: float = SECONDS,
    ) -> None:
        """Open a memory.

        Args:
            path: a data directory, which is created if necessary; without one, a temporary folder.
            url, token: use the service there instead.
            engine: use an engine or a client that is open; `close` leaves it open.
            user_id, agent_id, run_id: whose memories these are, for all calls that do not say otherwise.
            extractor: finds keys in texts that are added without one, and in questions; by default, in sentences of
                known frames. `None` for none.
            judge: compares a value with the one that holds for its key; without one, another value supersedes.
            time_limit: seconds that an extractor or a judge may take. If it takes longer, or fails, the text is kept as
                if there were none, and `failures` counts it.

        Raises:
            InvalidRequest: an argument is not valid, or the rules of the data do not include the `memory` pack
                (`rules`).
        """
        if sum(place is not None for place in (path, url, engine)) > 1:
            raise InvalidRequest("path", "Pass `path`, `url` or `engine`, not several of them.")
        whose = owner(user_id, agent_id, run_id)
        self._is_own = engine is None
        calls = engine or (stream_car.connect(url, token=token) if url is not None else _open(path))
        try:
            require_pack(calls.rules())
        except BaseException:
            if self._is_own:
                calls.close()
            raise
        super().__init__(calls, whose, extractor, judge, time_limit)
        self._calls = calls

    def __enter__(self) -> "Memory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the data directory or the connection, unless it was passed as `engine`."""
        if self._is_own:
            self._calls.close()


class MemoryAsync(AsyncMemoryCalls):
    """A memory in a service, for asynchronous programs. Arguments are those of `Memory`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        extractor: Extractor | None = FRAMES,
        judge: Judge | None = None,
        time_limit: float = SECONDS,
    ) -> None:
        self._client = AsyncClient(url, token=token)
        super().__init__(self._client, owner(user_id, agent_id, run_id), extractor, judge, time_limit)

    async def __aenter__(self) -> "MemoryAsync":
        require_pack(await self._client.rules())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


def _open(path: Path | str | None) -> Engine:
    is_new = path is None or not Path(path).exists() or not any(Path(path).iterdir())
    return stream_car.open(path, rules=[PACK] if is_new else ())

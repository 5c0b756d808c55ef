"""Redis and Kafka as back ends of the contract tests. A crash is a client that is gone; kills are tested elsewhere."""

import secrets

from stream_car.adapters.kafka.journal import KafkaJournal
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.scripts import RedisClient
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.ports import AnchorIndex, ChangeLog, Clock, Log, Store
from tests.support.two_hop_folds import SIGNATURES

SHARDS = range(16)


class RedisBackend:
    """One Redis, or a cluster; every test has a namespace of its own."""

    def __init__(self, url: str) -> None:
        self._server = RedisServer(url=url)
        self._namespace = f"test-{secrets.token_hex(6)}"
        self._client: RedisClient | None = None

    async def store(self) -> Store:
        """The store; a second call ends what the first one gave."""
        if self._client is not None:
            await self._client.aclose()
        self._client = await connect(self._server)
        return RedisStore(self._client, self._namespace)

    async def log(self, clock: Clock, partitions: int = 1) -> Log:
        """It has none."""
        raise NotImplementedError

    async def journal(self) -> ChangeLog:
        """It has none."""
        raise NotImplementedError

    async def index(self) -> AnchorIndex:
        """It has none."""
        raise NotImplementedError

    async def close(self) -> None:
        """Forget what was kept."""
        if self._client is not None:
            await RedisStore(self._client, self._namespace).drop(SHARDS)
            await self._client.aclose()


class KafkaBackend:
    """One Kafka; every test has topics of its own."""

    def __init__(self, address: str) -> None:
        self._server = KafkaServer(address=address)
        self._layouts: list[Layout] = []
        self._open: dict[str, tuple[Reader, Sender]] = {}
        self._journal = self._layout(3)

    def _layout(self, partitions: int) -> Layout:
        return Layout(
            prefix=f"test-{secrets.token_hex(6)}", intakes=partitions, frontiers=partitions, single_broker=True
        )

    async def _opened(self, name: str) -> tuple[Reader, Sender]:
        await self._let_go(name)
        self._open[name] = await Reader.open(self._server), Sender(self._server)
        return self._open[name]

    async def _let_go(self, name: str) -> None:
        if name in self._open:
            for end in self._open.pop(name):
                await end.close()

    async def log(self, clock: Clock, partitions: int = 1) -> Log:
        """The documents; the clock is the broker's own."""
        layout = next((one for one in self._layouts if one.intakes == partitions), None)
        if layout is None:
            layout = self._layout(partitions)
            self._layouts.append(layout)
            apply(self._server, layout)
        reader, sender = await self._opened("log")
        return KafkaLog(reader, sender, layout.full_name("documents"))

    async def journal(self) -> ChangeLog:
        """Events of three shards."""
        if self._journal not in self._layouts:
            self._layouts.append(self._journal)
            apply(self._server, self._journal)
        reader, sender = await self._opened("journal")
        topics = {"changes": "changes", "rejected": "documents"}  # the topic of rejected records has one partition
        logs = {stream: KafkaLog(reader, sender, self._journal.full_name(topic)) for stream, topic in topics.items()}
        return KafkaJournal(logs, "generation", SIGNATURES)

    async def store(self) -> Store:
        """It has none."""
        raise NotImplementedError

    async def index(self) -> AnchorIndex:
        """It has none."""
        raise NotImplementedError

    async def close(self) -> None:
        """Delete the topics."""
        for name in list(self._open):
            await self._let_go(name)
        for layout in self._layouts:
            delete(self._server, layout)

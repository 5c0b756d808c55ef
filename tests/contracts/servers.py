"""Redis and Kafka as back ends of the contract tests. A crash is a client that is gone; kills are tested elsewhere."""

import secrets

from stream_car.adapters.redis.connect import Client, RedisServer, connect
from stream_car.adapters.redis.store import RedisStore
from stream_car.ports import AnchorIndex, Clock, Journal, Log, Store

SHARDS = range(16)


class RedisBackend:
    """One Redis, or a cluster; every test has a namespace of its own."""

    def __init__(self, url: str) -> None:
        self._server = RedisServer(url=url)
        self._namespace = f"test-{secrets.token_hex(6)}"
        self._client: Client | None = None

    async def store(self) -> Store:
        """The store; a second call ends what the first one gave."""
        if self._client is not None:
            await self._client.aclose()
        self._client = await connect(self._server)
        return RedisStore(self._client, self._namespace)

    async def log(self, clock: Clock, partitions: int = 1) -> Log:
        """It has none."""
        raise NotImplementedError

    async def journal(self) -> Journal:
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

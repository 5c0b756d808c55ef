"""What a worker and a query worker report over HTTP: probes and metrics, with servers and without."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import httpx

from deploy.local import Redis
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.store import RedisStore
from tests.chaos.installation import PARTITIONS, Installation
from tests.chaos.workers import Worker
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)

ALL = {("intake", str(n)) for n in range(PARTITIONS.intakes)} | {
    ("frontier", str(n)) for n in range(PARTITIONS.frontiers)
}
PATIENCE_S = 60.0
TOKEN = "a-token-of-the-tests"
SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")


class Samples:
    """The metrics of one scrape."""

    def __init__(self, text: str) -> None:
        self.types = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
        self._values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for line in text.splitlines():
            match = SAMPLE.fullmatch(line)
            if match is not None:
                labels = frozenset(re.findall(r'(\w+)="([^"]*)"', match["labels"] or ""))
                self._values[match["name"], labels] = float(match["value"])

    def by_shard(self, name: str, **labels: str) -> dict[tuple[str, str], float]:
        """Return a metric by hop and partition; `labels` are others that it must have."""
        return {
            (dict(given)["hop"], dict(given)["partition"]): value
            for (known, given), value in self._values.items()
            if known == f"stream_car_{name}" and labels.items() <= dict(given).items()
        }

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over all other labels."""
        return sum(
            value
            for (known, given), value in self._values.items()
            if known == f"stream_car_{name}" and labels.items() <= dict(given).items()
        )


async def scrape(client: httpx.AsyncClient) -> Samples:
    response = await client.get("/metrics")
    assert response.status_code == 200
    return Samples(response.text)


async def until_ready(client: httpx.AsyncClient, status: int = 200) -> httpx.Response:
    """Wait until `/readyz` answers so."""
    async with asyncio.timeout(PATIENCE_S):
        while (response := await client.get("/readyz")).status_code != status:
            await asyncio.sleep(0.1)
    return response


async def until_measured(client: httpx.AsyncClient, name: str, *, at_least: float = 0, at_most: float = 1e9) -> Samples:
    """Wait until the sum of a metric over all shards is in a range."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            samples = await scrape(client)
            if set(samples.by_shard(name)) == ALL and at_least <= samples.total(name) <= at_most:
                return samples
            await asyncio.sleep(0.1)


async def url_of(worker: Worker) -> str:
    await worker.assigned()
    [started] = worker.events("started")
    assert started.url is not None
    return started.url


@asynccontextmanager
async def observed(worker: Worker) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the address that the worker reports."""
    async with httpx.AsyncClient(base_url=await url_of(worker), timeout=PATIENCE_S) as client:
        yield client


async def test_a_worker_reports_its_shards_and_the_reference_lists_exactly_its_metrics(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text().partition("\n## Workers")[2]
    async with Installation(kafka, redis, tmp_path).open() as installation:
        await installation.publish(100)
        worker = installation.worker()
        async with observed(worker) as client:
            assert (await client.get("/livez")).text == "alive\n"
            await until_ready(client)
            samples = await until_measured(client, "shard_lag_records", at_most=0)

            assert samples.types == set(re.findall(r"`(stream_car_\w+)", page))
            assert set(samples.by_shard("shard_state", state="working").values()) == {1}
            assert samples.by_shard("shard_claims_total") == dict.fromkeys(ALL, 1)
            assert sum(samples.by_shard("shard_next_offset").values()) > 100
            assert samples.total("partitions") == len(ALL)
            assert samples.total("ready") == 1
            assert (await client.get("/v1/status")).status_code == 404
        assert await worker.stop() == 0


async def test_metrics_answer_while_redis_is_away_and_show_the_lag_and_its_end(
    kafka: str, local_redis: None, tmp_path: Path
) -> None:
    redis = Redis(tmp_path / "redis")
    redis.start()
    try:
        async with Installation(kafka, redis.url, tmp_path).open() as installation:
            await installation.publish(50)
            worker, query_worker = installation.worker(), installation.query_worker()
            async with (
                observed(worker) as client,
                httpx.AsyncClient(base_url=await query_worker.url(), timeout=PATIENCE_S) as questions,
            ):
                await until_ready(client)
                await until_ready(questions)
                await until_measured(client, "shard_lag_records", at_most=0)
                redis.kill()
                await installation.publish(50)

                problem = await until_ready(client, status=503)
                lagging = await until_measured(client, "shard_lag_records", at_least=50)
                await until_ready(questions, status=503)
                unready = await scrape(questions)

                assert problem.json()["code"] == "trouble"
                assert max(lagging.by_shard("shard_lag_seconds").values()) > 0
                assert lagging.total("ready") == unready.total("ready") == 0
                assert {"stream_car_index_repaired_total", "stream_car_lost_history"} <= unready.types
                assert (await client.get("/livez")).status_code == 200

                redis.start()
                await until_ready(client)
                caught_up = await until_measured(client, "shard_lag_records", at_most=0)
                assert set(caught_up.by_shard("shard_lag_seconds").values()) == {0}
                await until_ready(questions)
            await installation.judge()
    finally:
        redis.kill()


async def test_a_worker_that_others_can_reach_needs_a_token_for_all_but_probes(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as installation:
        installation.worker_options = ["--host", "0.0.0.0"]  # noqa: S104  that is what is tested
        open_worker = installation.worker()
        assert await open_worker.ended() == 2
        assert "token is required" in open_worker.output()

        (tmp_path / "tokens").write_text(f"prometheus admin sha256:{sha256(TOKEN.encode()).hexdigest()}\n")
        installation.worker_options = [*installation.worker_options, "--token-file", str(tmp_path / "tokens")]
        worker = installation.worker()
        url = (await url_of(worker)).replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
            assert (await until_ready(client)).status_code == 200
            assert (await client.get("/metrics")).status_code == 401
            named = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
            assert named.status_code == 200


async def test_workers_on_one_machine_listen_side_by_side_and_a_chosen_port_is_used_or_rejected(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as installation:
        first, second = installation.worker(), installation.worker()
        urls = {await url_of(first), await url_of(second)}
        installation.worker_options = ["--port", min(urls).rpartition(":")[2]]
        third = installation.worker()

        assert len(urls) == 2
        assert await third.ended() == 2
        assert "Choose another --port" in third.output()


async def test_a_shard_that_somebody_else_claims_is_counted_and_claimed_again(
    kafka: str, redis: str, tmp_path: Path
) -> None:
    async with Installation(kafka, redis, tmp_path).open() as installation:
        worker = installation.worker()
        async with observed(worker) as client:
            await until_measured(client, "shard_lag_records", at_most=0)
            stranger = await connect(installation.redis)
            await RedisStore(stranger, f"{installation.layout.prefix}.intake").claim(0)
            await stranger.aclose()
            async with asyncio.timeout(PATIENCE_S):
                while (samples := await scrape(client)).total("shard_claims_total") <= len(ALL):
                    await asyncio.sleep(0.1)

            assert samples.by_shard("shard_take_overs_total") == dict.fromkeys(ALL, 0) | {("intake", "0"): 1}
            assert samples.by_shard("shard_claims_total")["intake", "0"] == 2
        await installation.judge()

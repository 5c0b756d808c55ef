"""`worker` and `query-worker`: the processes of an installation over Kafka and Redis."""

import asyncio
import socket
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace
from rich.text import Text

from stream_car.api.json import to_json
from stream_car.cli.console import emit, note, words
from stream_car.cli.logs import log_level_option, write_logs
from stream_car.cli.options import FOLDER, Session, command, require
from stream_car.cli.serve import address_options, listener_options, server_settings
from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.settings import LogLevel, ServerSettings

if TYPE_CHECKING:
    from stream_car.cluster.connections import Hops
    from stream_car.cluster.shard_runner import WorkerEvent
    from stream_car.http.tokens import Tokens

PORTS = range(8378, 8394)  # of workers on one machine; the first free one is used
LOG_LEVEL: LogLevel = "warning"  # of a worker: below it, libraries report each step of theirs under its name
STYLES = {"halted": "bold red", "trouble": "red", "taken": "yellow"}


@command("kafka", "prefix", "namespace", "single_broker", "worker_rules")
@click.argument("hops", type=click.Choice(["intake", "frontier", "all"]), metavar="intake|frontier|all")
@log_level_option(LOG_LEVEL)
@address_options
@click.option(
    "--session-timeout",
    "session_s",
    type=click.FloatRange(1, 1800),
    metavar="SECONDS",
    help="After this silence the other workers take over the shards of a worker.  [default: 2.5, or the least that the "
    "brokers accept, which is 6 unless group.min.session.timeout.ms is lower]",
)
def worker(
    session: Session, /, hops: "Hops", session_s: float | None, log_level: LogLevel | None, **typed: object
) -> None:
    """Apply the rules to documents in Kafka.

    The state is in Redis, which $STREAM_CAR_REDIS names. Start as many workers as you like: they share the partitions,
    and take over those of a worker that ends. Ctrl-C or SIGTERM stops it, with exit code 0. Exit code 3: a shard
    halted and needs a decision, see deploy/runbook.md. Exit code 75: start it again.

    It listens for probes and Prometheus: /livez, /readyz and /metrics. Without --port, it uses the first free port from
    8378 on, and prints it.

    Examples:
      stream-car topics apply --kafka localhost:9092 --single-broker
      STREAM_CAR_REDIS=redis://localhost:6379 stream-car worker all --kafka localhost:9092 --single-broker
      stream-car worker intake        as many as there are partitions; each takes its share
      stream-car worker frontier --rules security
      stream-car worker all --port 9378        curl http://127.0.0.1:9378/metrics
    """
    plan = session.installation()
    from stream_car.cluster.worker import run
    from stream_car.http.tokens import tokens_of

    settings = server_settings(None, **typed)
    write_logs(log_level or LOG_LEVEL, as_json=session.as_json)
    tokens = tokens_of(settings)

    def report(event: "WorkerEvent") -> None:
        if session.as_json:
            emit(to_json(event))
        else:
            note(_draw(event))

    with _listen(settings, tokens, typed["port"] is not None) as listener:
        code = asyncio.run(run(plan, hops, report, listener, settings, tokens=tokens, session_s=session_s))
    require(code == 0, code)


def _listen(settings: ServerSettings, tokens: "Tokens | None", is_chosen: bool) -> socket.socket:
    """Return the socket of a worker: at the chosen port, or at the first free one. Raises as `listen` does."""
    from stream_car.http.server import listen

    for port in () if is_chosen else PORTS:
        try:
            return listen(replace(settings, port=port), tokens)
        except InvalidRequest:
            raise
        except StreamCarError:
            continue  # another worker has it
    return listen(settings if is_chosen else replace(settings, port=0), tokens)


def _draw(event: "WorkerEvent") -> Text:
    place = f"{event.hop} {event.shard}: " if event.hop is not None else ""
    code = f" ({event.code})" if event.code else ""
    detail = event.reason or ", ".join(event.shards)
    url = f", metrics at {event.url}/metrics" if event.url else ""
    return words(f"{place}{event.event}{code}{': ' + detail if detail else ''}{url}", STYLES.get(event.event, "dim"))


@command("kafka", "prefix", "namespace", "single_broker", "worker_rules", name="query-worker")
@listener_options
@click.option(
    "--index",
    type=FOLDER,
    metavar="DIR",
    help="Keep the text index of this process in this directory, and continue with it at the next start.  "
    "[default: a temporary one, built again at every start]",
)
def query_worker(session: Session, /, settings_file: Path | None, index: Path | None, **typed: object) -> None:
    """Serve queries and publications over Kafka and Redis.

    It needs workers (stream-car worker) with the same rules; $STREAM_CAR_REDIS names Redis. /readyz answers 200 when
    the text index has caught up. Run as many as you like. Ctrl-C or SIGTERM stops it.

    Examples:
      STREAM_CAR_REDIS=redis://localhost:6379 stream-car query-worker --kafka localhost:9092 --single-broker
      stream-car query-worker --port 9000 --index /var/lib/stream-car/index
      STREAM_CAR_TOKEN=$(openssl rand -hex 24) stream-car query-worker --host 0.0.0.0
    """
    plan = session.installation()
    from stream_car.cluster.query_worker import run
    from stream_car.http.server import listen
    from stream_car.http.tokens import tokens_of
    from stream_car.integrations.mcp.mcp_endpoint import McpEndpoint

    settings = server_settings(settings_file, **typed)
    if settings.webhooks and index is None:
        raise click.UsageError("Webhooks need --index DIR: it keeps what is still to be sent when this process ends.")
    write_logs(settings.log_level, as_json=session.as_json)
    tokens = tokens_of(settings)

    def on_ready(url: str, generation: str) -> None:
        if session.as_json:
            servers = {"kafka": plan.kafka.address, "redis": plan.redis.place}
            emit(to_json({"url": url, **servers, "generation": generation}))
        else:
            note(f"listening on {url}, over {plan.kafka.address} and {plan.redis.place}")

    folder = nullcontext(index) if index else tempfile.TemporaryDirectory(prefix="stream-car-index-")
    with listen(settings, tokens) as listener, folder as path:
        asyncio.run(
            run(
                plan,
                Path(path),
                listener,
                settings,
                tokens=tokens,
                on_ready=on_ready,
                endpoints={"/mcp": McpEndpoint},
            )
        )
    session.note("stopped")

"""`serve`: a query worker, the service over HTTP on Kafka and Redis."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import click
import msgspec

from stream_car.api.json import line
from stream_car.cli import options, servers
from stream_car.cli.console import emit, err
from stream_car.cli.topics import require_driver
from stream_car.settings import read_settings, read_token, require_known_variables


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """Where the service listens, and over what."""

    url: str
    kafka: str
    redis: str
    generation: str


@click.command(
    epilog=options.examples(
        "STREAM_CAR_REDIS=redis://localhost:6379 stream-car serve --kafka localhost:9092 --single-broker",
        "stream-car serve --port 9000 --index /var/lib/stream-car/index",
        "STREAM_CAR_TOKEN=$(openssl rand -hex 24) stream-car serve --host 0.0.0.0",
    )
)
@click.option("--host", metavar="ADDRESS", help="Where to listen. Beyond 127.0.0.1 a token is needed.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="The port; 0 takes any free one.")
@click.option(
    "--settings",
    "settings_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A TOML file of settings; see docs/reference/settings.md. Options go before it.",
)
@click.option(
    "--index",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep the text index here, for this process alone, and go on with it at the next start.  "
    "[default: a temporary one, built anew at every start]",
)
@servers.installation
@options.as_json
def serve(
    host: str | None,
    port: int | None,
    settings_file: Path | None,
    index: Path | None,
    kafka: str | None,
    prefix: str,
    namespace: str,
    single_broker: bool,
    rules: Sequence[str],
    as_json: bool,
) -> None:
    """Serve publish and query over Kafka and Redis.

    Needs workers (stream-car worker) that go by the same rules; Redis is where $STREAM_CAR_REDIS says. /readyz
    answers 200 when the text index has caught up. Many can run. Ctrl-C or SIGTERM ends it in order.
    """
    require_known_variables()
    require_driver()
    from stream_car.cluster.query_worker import run
    from stream_car.http import server

    given = {name: value for name, value in {"host": host, "port": port}.items() if value is not None}
    settings = msgspec.structs.replace(read_settings(settings_file), **given)
    token = read_token(settings.token_file)
    plan = servers.plan_of(kafka, prefix, namespace, single_broker, rules)

    def ready(url: str, generation: str) -> None:
        if as_json:
            said = Serving(url=url, kafka=plan.kafka.address, redis=plan.redis.place, generation=generation)
            emit(line(said))
        else:
            err().print(f"listening on {url}, over {plan.kafka.address} and {plan.redis.place}", soft_wrap=True)

    listener = server.bound(settings, token)
    with listener, nullcontext(index) if index else _temporary() as folder:
        asyncio.run(run(plan, Path(folder), listener, settings, token=token, ready=ready))
    err().print("stopped", style="dim")


def _temporary() -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix="stream-car-index-")

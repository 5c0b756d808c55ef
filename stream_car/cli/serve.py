"""`serve`: one data directory as a service over HTTP, in one process.

Promise: it prints where it listens and what to try. Ctrl-C or SIGTERM ends it in an orderly way, with exit code 0.
"""

import asyncio
import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from msgspec.structs import replace

from stream_car.api.json import to_json
from stream_car.cli import options
from stream_car.cli.console import emit, note
from stream_car.cli.logs import log_level_option, write_logs
from stream_car.cli.options import FILE, Session, command
from stream_car.settings import ServerSettings, kafka_variable, read_settings, require_known_variables

TRY = """\
Open {url} in a browser, or try:
  stream-car watch --url {url}
  curl {auth}{url}/v1/status
  curl {auth}{url}/v1/documents -H 'Content-Type: application/json' -d '{{"id": "a-1", "type": "advisory", \
"time": "2024-01-31T09:30:00Z", "scope": {{"package": ["lodash"], "cve": ["CVE-2019-10744"]}}, "title": "An advisory"}}'
  curl {auth}{url}/v1/query -H 'Content-Type: application/json' -d '{{"text": "advisory"}}'
  curl {auth}-N '{url}/v1/subscribe?snapshot=true'"""
OVER_KAFKA = "`stream-car serve` works on the files of --data. Over Kafka and Redis, run: stream-car query-worker"

P = ParamSpec("P")
T = TypeVar("T")


def listener_options(command: Callable[P, T]) -> Callable[P, T]:
    """The options of a service over HTTP, as `ServerSettings` names them, and `--settings`."""
    for option in (
        log_level_option(ServerSettings().log_level),
        click.option(
            "--settings",
            "settings_file",
            type=FILE,
            help="A TOML file of settings, see docs/reference/settings.md. Options override it.",
        ),
        click.option(
            "--trusted-proxy",
            "trusted_proxies",
            multiple=True,
            metavar="ADDRESS",
            help="A proxy whose X-Forwarded-For names the clients that limits count; may be repeated.",
        ),
        address_options,
    ):
        command = option(command)
    return command


def address_options(command: Callable[P, T]) -> Callable[P, T]:
    """Where to listen, and the tokens of those who may ask."""
    for option in (
        click.option(
            "--token-file",
            type=click.Path(dir_okay=False),
            help="A file of tokens with roles, see `stream-car token`. It is read again when it changes.  "
            "[default: one token that may do everything, $STREAM_CAR_TOKEN]",
        ),
        click.option(
            "--host-name",
            "host_names",
            multiple=True,
            metavar="NAME",
            help="A name under which clients reach this service, as in their Host header; may be repeated.",
        ),
        click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="The port; 0 means any free one."),
        click.option("--host", metavar="ADDRESS", help="Where to listen. Beyond 127.0.0.1, a token is required."),
    ):
        command = option(command)
    return command


def server_settings(settings_file: Path | None, **typed: object) -> ServerSettings:
    """Return the settings of the file, overridden by the options that are on the command line."""
    require_known_variables()
    given = {name: value for name, value in typed.items() if value not in (None, ())}
    return replace(read_settings(settings_file), **given)


def _reject(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value:
        raise click.UsageError(f"{OVER_KAFKA} {parameter.opts[0]} ...", context)


_kafka_option = partial(click.option, hidden=True, expose_value=False, callback=_reject, help="See query-worker.")


@command("data", "rules", "encoder")
@listener_options
@_kafka_option("--kafka")
@_kafka_option("--prefix")
@_kafka_option("--namespace")
@_kafka_option("--index")
@_kafka_option("--single-broker", is_flag=True)
def serve(session: Session, /, settings_file: Path | None, **typed: object) -> None:
    """Serve a data directory over HTTP.

    One process without any other server. It publishes, answers and sends changes to subscribers. While it runs, other
    commands use the data through --url. Ctrl-C or SIGTERM stops it.

    Examples:
      stream-car serve
      stream-car serve --port 9000 --data ./advisories
      STREAM_CAR_TOKEN=$(openssl rand -hex 24) stream-car serve --host 0.0.0.0
      stream-car serve --host 0.0.0.0 --token-file tokens     several tokens, see: stream-car token
      stream-car serve --settings server.toml
      stream-car serve --encoder ./all-MiniLM-L6-v2     find by meaning too; vectors are made as documents come
    """
    from stream_car.http.server import listen
    from stream_car.http.tokens import tokens_of
    from stream_car.integrations.mcp.mcp_endpoint import McpEndpoint
    from stream_car.local.serve import serve as serve_directory

    variable = kafka_variable()
    if variable is not None and not options.is_typed("data"):
        raise click.UsageError(f"${variable} is set. {OVER_KAFKA}. To serve files all the same, give --data.")
    settings = server_settings(settings_file, encoder=session.encoder, **typed)
    session.encoder = settings.encoder
    write_logs(settings.log_level, as_json=session.as_json)
    tokens = tokens_of(settings)
    with listen(settings, tokens) as listener:
        session.note(f"opening {session.data} ...")
        with session.engine(create=True, rules=session.rules) as engine:

            def on_ready(url: str) -> None:
                status = engine.status()
                if session.as_json:
                    facts = {"data": str(session.data), "generation": status.generation, "documents": status.documents}
                    emit(to_json({"url": url, **facts}))
                    return
                note(f"listening on {url}, {status.documents:,} documents", "bold")
                auth = "-H 'Authorization: Bearer ...' " if tokens is not None else ""
                for line in TRY.format(url=url, auth=auth).splitlines():
                    note(line, "")

            asyncio.run(
                serve_directory(
                    engine.directory,
                    listener,
                    settings,
                    tokens=tokens,
                    on_ready=on_ready,
                    endpoints={"/mcp": McpEndpoint},
                )
            )
    session.note("stopped")


up = copy.copy(serve)
up.name, up.hidden, up.deprecated = "up", True, "Use: stream-car serve"

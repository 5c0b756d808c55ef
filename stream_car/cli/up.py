"""`up`: the engine as a service over HTTP.

Promise: it says where it listens and what to try; it ends in order on Ctrl-C or SIGTERM, with exit code 0.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from stream_car.api.json import line
from stream_car.cli import options
from stream_car.cli.console import emit, err
from stream_car.settings import read_settings, read_token, require_known_variables

TRY = """\
open {url} in a browser, or try:
  stream-car watch --url {url}
  curl {auth}{url}/v1/status
  curl {auth}{url}/v1/documents -H 'Content-Type: application/json' -d '{{"id": "a-1", "type": "advisory", \
"time": "2024-01-31T09:30:00Z", "scope": {{"package": ["lodash"], "cve": ["CVE-2019-10744"]}}, "title": "An advisory"}}'
  curl {auth}{url}/v1/query -H 'Content-Type: application/json' -d '{{"text": "advisory"}}'
  curl {auth}-N '{url}/v1/subscribe?snapshot=true'
"""


class Listening(msgspec.Struct, frozen=True, kw_only=True):
    """Where the service listens, and over what data."""

    url: str
    data: str
    generation: str
    documents: int


@click.command(
    epilog=options.examples(
        "stream-car up",
        "stream-car up --port 9000 --data ./advisories",
        "STREAM_CAR_TOKEN=$(openssl rand -hex 24) stream-car up --host 0.0.0.0",
        "stream-car up --settings server.toml",
        "stream-car up --encoder ./all-MiniLM-L6-v2        find by meaning too; vectors are made as documents come",
    )
)
@click.option("--host", metavar="ADDRESS", help="Where to listen. Beyond 127.0.0.1 a token is needed.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="The port; 0 takes any free one.")
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="A name under which clients may reach it, as in their Host header; may be repeated.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Holds the token that clients must send.  [default: $STREAM_CAR_TOKEN]",
)
@click.option(
    "--settings",
    "settings_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A TOML file of settings; see docs/reference/settings.md. Options go before it.",
)
@options.encoder
@options.reading
def up(
    host: str | None,
    port: int | None,
    host_names: Sequence[str],
    token_file: str | None,
    settings_file: Path | None,
    encoder: str | None,
    data: Path,
    rules: Sequence[str],
    as_json: bool,
) -> None:
    """Serve publish, subscribe and query over HTTP.

    One process without any other server; the data is that of the other commands, which cannot use it
    at the same time. Ctrl-C or SIGTERM ends it in order.
    """
    from stream_car.http import server
    from stream_car.local.serve import until_signalled

    require_known_variables()
    settings = read_settings(settings_file)
    given: dict[str, object] = {"host": host, "port": port, "token_file": token_file, "encoder": encoder}
    given = {name: value for name, value in given.items() if value is not None}
    if host_names:
        given["host_names"] = tuple(host_names)
    settings = msgspec.structs.replace(settings, **given)
    token = read_token(settings.token_file)
    listener = server.bound(settings, token)
    with listener:
        err().print(f"opening {data} ...", style="dim", soft_wrap=True)
        with options.engine_over(data, rules, settings.encoder) as engine:

            def ready(url: str) -> None:
                standing = engine.header()
                if as_json:
                    said = Listening(
                        url=url, data=str(data), generation=engine.generation, documents=standing.documents
                    )
                    emit(line(said))
                    return
                err().print(f"listening on {url}, {standing.documents} documents", style="bold", soft_wrap=True)
                auth = "-H 'Authorization: Bearer ...' " if token is not None else ""
                err().print(TRY.format(url=url, auth=auth), soft_wrap=True)

            asyncio.run(until_signalled(engine, listener, settings, token=token, ready=ready))
    err().print("stopped", style="dim")

"""`token`: make a token for a service.

Promise: the token is shown once and stored nowhere; the file holds its hash.
"""

import os
from pathlib import Path

import click

from stream_car.api.json import to_json
from stream_car.api.operations import ROLES, Role
from stream_car.cli.console import emit, note, show
from stream_car.cli.options import FILE, Session, command
from stream_car.errors import InvalidRequest


@command()
@click.argument("name")
@click.option(
    "--role",
    "roles",
    type=click.Choice(ROLES),
    multiple=True,
    required=True,
    help="What the token is for; may be repeated. `read`: queries and subscriptions. `publish`: documents. `metrics`: "
    "/metrics alone. `admin`: all that, rejected input, replay and rebuild.",
)
@click.option("--file", type=FILE, help="Add the token to this file of tokens.  [default: print the line for the file]")
def token(session: Session, name: str, roles: tuple[Role, ...], file: Path | None) -> None:
    """Make a token for a service, and show it once.

    The file of --token-file has a line for each token: its name, its roles and its hash. A running service reads the
    file again when it changes; delete a line to revoke a token. NAME appears in the logs of the service.

    Examples:
      stream-car token operator --role admin --file tokens
      stream-car token osv-feed --role publish --file tokens
      stream-car token prometheus --role metrics --file tokens
      stream-car token assistant --role read     the line for the file is printed beside the token
    """
    from stream_car.http.tokens import make_token

    text, line = make_token(name, roles)
    if file is not None:
        _add(file, name, line)
    if session.as_json:
        emit(to_json({"name": name, "token": text, "line": line}))
        return
    show(text)
    if file is None:
        note(f"The line for the file of tokens: {line}", "")


def _add(file: Path, name: str, line: str) -> None:
    """Append a line. What exists keeps its owner and its permissions, by which the service may read it."""
    try:
        with open(file, "a+b", opener=_open) as stream:
            stream.seek(0)
            content = stream.read()
            if any(words[:1] == [name.encode()] for words in map(bytes.split, content.splitlines())):
                cure = "Choose another name, or delete that line."
                raise InvalidRequest("name", f"{file} has a token of this name. {cure}")
            separator = b"" if not content or content.endswith(b"\n") else b"\n"
            stream.write(separator + line.encode() + b"\n")
    except OSError as error:
        raise InvalidRequest("file", f"{file} cannot be written: {error.strerror}.") from error


def _open(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

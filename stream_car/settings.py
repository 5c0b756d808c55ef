"""What the environment and a settings file say. Nothing else reads them.

Promise: an unknown name, a wrong kind of value or a secret in a settings file is refused at the start,
with the name and never with the value.
"""

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from stream_car.adapters.kafka.settings import DEFAULT_MECHANISM, KafkaServer
from stream_car.adapters.redis.settings import RedisServer
from stream_car.errors import InvalidRequest

DATA_VARIABLE = "STREAM_CAR_DATA"
DATA_DEFAULT = Path("stream-car-data")
RULES_VARIABLE = "STREAM_CAR_RULES"
TOKEN_VARIABLE = "STREAM_CAR_TOKEN"  # noqa: S105  a name, no secret
URL_VARIABLE = "STREAM_CAR_URL"
ENCODER_VARIABLE = "STREAM_CAR_ENCODER"
PREFIX = "STREAM_CAR_"
_SERVER_SETTINGS = {
    "KAFKA": ("", "USER", "PASSWORD", "PASSWORD_FILE", "MECHANISM", "TLS", "CA", "CERTIFICATE", "KEY"),
    "REDIS": ("", "USER", "PASSWORD", "PASSWORD_FILE", "CA", "CERTIFICATE", "KEY"),
}
SERVERS = frozenset(
    PREFIX + "_".join(filter(None, (server, name))) for server, names in _SERVER_SETTINGS.items() for name in names
)
KNOWN = frozenset({DATA_VARIABLE, RULES_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE, ENCODER_VARIABLE}) | SERVERS
TOKEN_MIN = 16


def data_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the embedded engine keeps its files unless a caller says otherwise."""
    named = environment.get(DATA_VARIABLE)
    return Path(named) if named else DATA_DEFAULT


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `stream-car up` runs. A settings file has these names; what the command line says goes before."""

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8377
    host_names: tuple[str, ...] = ()
    token_file: str | None = None
    encoder: str | None = None
    subscriptions_max: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    changes_kept: Annotated[int, Meta(ge=1000)] = 1_000_000
    heartbeat_s: Annotated[float, Meta(gt=0, le=300)] = 15.0


def read_settings(path: Path | None) -> ServerSettings:
    """The settings of a TOML file. Raises `InvalidRequest` (`settings`) that names what is wrong."""
    if path is None:
        return ServerSettings()
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _wrong(path, f"it cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise _wrong(path, "it is no TOML file in UTF-8") from None
    if "token" in said:
        raise _wrong(path, f"`token` does not belong here: put it into a file, name that as `token_file`, "
                     f"or set ${TOKEN_VARIABLE}")  # fmt: skip
    try:
        return msgspec.convert(said, ServerSettings)
    except msgspec.ValidationError as error:
        raise _wrong(path, str(error)) from None


def read_token(token_file: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The token that clients must send, from a file or else from the environment; `None` where there is none."""
    named, source = environment.get(TOKEN_VARIABLE), f"${TOKEN_VARIABLE}"
    if token_file is not None:
        source = "token_file"
        try:
            named = Path(token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidRequest(
                "settings", f"the file that `token_file` names ({token_file}) cannot be read"
            ) from None
    elif named is None:
        return None
    if not _is_token(named):
        raise InvalidRequest(
            "settings", f"{source} must hold {TOKEN_MIN} or more letters and digits; make one: openssl rand -hex 24"
        )
    return named


def token_to_send(environment: Mapping[str, str] = os.environ) -> str | None:
    """The token that a client sends, if any. Raises `InvalidRequest` (`settings`) where it can be none."""
    named = environment.get(TOKEN_VARIABLE)
    if named is None or _is_token(named):
        return named
    wrong = f"is no token (those have {TOKEN_MIN} or more letters and digits)" if named.strip() else "is empty"
    advice = "set it to the token that the service was started with, or unset it where that has none"
    raise InvalidRequest("settings", f"${TOKEN_VARIABLE} {wrong}; {advice}")


def _is_token(text: str) -> bool:
    return len(text) >= TOKEN_MIN and text.isascii() and text.isprintable() and " " not in text


def require_known_variables(environment: Mapping[str, str] = os.environ) -> None:
    """Refuse a variable that looks like a misspelt setting: it would be ignored."""
    known = {name.removeprefix(PREFIX): name for name in KNOWN}
    for name in sorted(environment):
        rest = name.removeprefix(PREFIX)
        meant = get_close_matches(rest, known, n=1, cutoff=0.6) if name.startswith(PREFIX) else []
        if meant and rest not in known:
            raise InvalidRequest("settings", f"${name} is no setting; is ${known[meant[0]]} meant?")


def kafka_server(address: str | None = None, environment: Mapping[str, str] = os.environ) -> KafkaServer:
    """The Kafka that the environment or a caller names. Raises `InvalidRequest` (`settings`) where neither does."""
    told = _of_server("KAFKA", environment)
    named = address or told.get("")
    if not named:
        raise InvalidRequest("settings", "say where Kafka is: --kafka HOST:PORT, or $STREAM_CAR_KAFKA")
    try:
        return msgspec.convert(
            {
                "address": named,
                "username": told.get("USER"),
                "password": told.get("PASSWORD"),
                "mechanism": told.get("MECHANISM", DEFAULT_MECHANISM),
                "tls": told.get("TLS", "0"),
                "ca": told.get("CA"),
                "certificate": told.get("CERTIFICATE"),
                "key": told.get("KEY"),
            },
            KafkaServer,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise InvalidRequest("settings", f"the environment's settings of Kafka are wrong: {error}") from None


def redis_server(environment: Mapping[str, str] = os.environ) -> RedisServer:
    """The Redis that the environment names. Raises `InvalidRequest` (`settings`) where it names none."""
    told = _of_server("REDIS", environment)
    if "" not in told:
        raise InvalidRequest("settings", "say where Redis is: $STREAM_CAR_REDIS=redis://host:6379")
    return RedisServer(
        url=told[""],
        username=told.get("USER"),
        password=told.get("PASSWORD"),
        ca=told.get("CA"),
        certificate=told.get("CERTIFICATE"),
        key=told.get("KEY"),
    )


def _of_server(server: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What the environment says of a server; a password may lie in a file."""
    told = {}
    for name in _SERVER_SETTINGS[server]:
        variable = PREFIX + "_".join(filter(None, (server, name)))
        if environment.get(variable):
            told[name] = environment[variable]
    if "PASSWORD_FILE" in told:
        try:
            told["PASSWORD"] = Path(told["PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise InvalidRequest(
                "settings", f"the file that ${PREFIX}{server}_PASSWORD_FILE names cannot be read"
            ) from None
    return told


def _wrong(path: Path, why: str) -> InvalidRequest:
    return InvalidRequest("settings", f"the settings in {path.name} cannot be used: {why}")

"""Settings from the environment and from a settings file. Nothing else reads them.

Promise: an unknown name, a wrong type of value, or a secret in a settings file is rejected at the start. The error
names the setting and never shows its value.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from stream_car.adapters.kafka.settings import DEFAULT_MECHANISM, KafkaServer
from stream_car.adapters.redis.settings import RedisServer
from stream_car.api import requests as r
from stream_car.errors import InvalidRequest
from stream_car.subscriptions.events import View
from stream_car.suggest import suggest

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
WEBHOOK_SECRET_VARIABLE = "STREAM_CAR_WEBHOOK_SECRET"  # noqa: S105  a name, no secret
NATIVE_VARIABLE = "STREAM_CAR_NATIVE"  # read by the compiled codec itself
KNOWN = SERVERS | {
    *(DATA_VARIABLE, RULES_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE, ENCODER_VARIABLE, WEBHOOK_SECRET_VARIABLE),
    NATIVE_VARIABLE,
}
TOKEN_MIN = 16
LogLevel = Literal["debug", "info", "warning", "error"]


def data_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the default data directory."""
    directory = environment.get(DATA_VARIABLE)
    return Path(directory) if directory else DATA_DEFAULT


class RecordSelection(r.Subscribe, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a webhook selects: as a subscription, of records unless it says otherwise."""

    view: View = "record"


class WebhookSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook of a service: where events go, the file of its secret, and which events it gets.

    `allow` names addresses and networks that are not public, and may receive messages all the same.
    """

    url: str
    secret_file: str
    select: RecordSelection = RecordSelection()
    allow: tuple[str, ...] = ()


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How `stream-car serve` and `stream-car query-worker` run.

    A settings file uses these names. Options of the command line take precedence.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8377
    host_names: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    token_file: str | None = None
    encoder: str | None = None
    subscriptions_max: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    changes_kept: Annotated[int, Meta(ge=1000)] = 1_000_000
    webhooks: tuple[WebhookSettings, ...] = ()
    heartbeat_s: Annotated[float, Meta(gt=0, le=300)] = 15.0
    log_level: LogLevel = "info"


def read_settings(path: Path | None) -> ServerSettings:
    """Return the settings of a TOML file, or the defaults without a file.

    Raises:
        InvalidRequest: the file cannot be used (`settings`).
    """
    if path is None:
        return ServerSettings()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _invalid(path, f"it cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise _invalid(path, "it is not TOML in UTF-8.") from None
    if "token" in values:
        cure = f"Set ${TOKEN_VARIABLE}, or name a file of tokens as `token_file`."
        raise _invalid(path, f"`token` is not allowed here. {cure}")
    try:
        return msgspec.convert(values, ServerSettings)
    except msgspec.ValidationError as error:
        raise _invalid(path, f"{error}.") from None


def read_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the token of the environment that clients must send, or `None`.

    Raises:
        InvalidRequest: the token is too weak (`settings`).
    """
    token = environment.get(TOKEN_VARIABLE)
    if token is not None and not _is_token(token):
        cure = "Create a token with: openssl rand -hex 32"
        raise _error(f"${TOKEN_VARIABLE} must hold at least {TOKEN_MIN} ASCII characters without spaces. {cure}")
    return token


def token_to_send(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the token that a client sends, if any.

    Raises:
        InvalidRequest: the environment holds a value that cannot be a token (`settings`).
    """
    token = environment.get(TOKEN_VARIABLE)
    if token is None or _is_token(token):
        return token
    problem = f"is not a token: tokens have at least {TOKEN_MIN} characters" if token.strip() else "is empty"
    raise _error(f"${TOKEN_VARIABLE} {problem}. Set it to the token of the service, or unset it if there is none.")


def webhook_secret(file: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the secret that signs messages of a webhook: that of the file, or else of the environment.

    Raises:
        InvalidRequest: there is none, or the file cannot be read (`settings`).
    """
    if file is not None:
        return read_secret_file(file, "--webhook-secret-file")
    secret = environment.get(WEBHOOK_SECRET_VARIABLE)
    if not secret:
        cure = f"Set ${WEBHOOK_SECRET_VARIABLE} or give --webhook-secret-file. Create one: "
        raise _error(f"A webhook needs a secret that signs its messages. {cure}echo whsec_$(openssl rand -base64 32)")
    return secret


def _is_token(text: str) -> bool:
    return len(text) >= TOKEN_MIN and text.isascii() and text.isprintable() and " " not in text


def require_known_variables(environment: Mapping[str, str] = os.environ) -> None:
    """Reject a variable that looks like a misspelt setting, because it would be ignored.

    Raises:
        InvalidRequest: there is such a variable (`settings`).
    """
    known = {name.removeprefix(PREFIX) for name in KNOWN}
    for name in sorted(environment):
        rest = name.removeprefix(PREFIX)
        closest = suggest(rest, known) if name.startswith(PREFIX) and rest not in known else None
        if closest is not None:
            raise _error(f"Unknown variable ${name}. Did you mean ${PREFIX}{closest}?")


def kafka_server(address: str | None = None, environment: Mapping[str, str] = os.environ) -> KafkaServer:
    """Return the Kafka server at an address, or else at the one in the environment.

    Raises:
        InvalidRequest: there is no address, or a setting is wrong (`settings`).
    """
    values = _server_settings("KAFKA", environment)
    address = address or values.get("")
    if not address:
        raise _error("No address of Kafka. Give --kafka HOST:PORT, or set $STREAM_CAR_KAFKA.")
    try:
        return msgspec.convert(
            {
                "address": address,
                "username": values.get("USER"),
                "password": values.get("PASSWORD"),
                "mechanism": values.get("MECHANISM", DEFAULT_MECHANISM),
                "tls": values.get("TLS", "0"),
                "ca": values.get("CA"),
                "certificate": values.get("CERTIFICATE"),
                "key": values.get("KEY"),
            },
            KafkaServer,
            strict=False,
        )
    except msgspec.ValidationError as error:
        raise _error(f"A variable $STREAM_CAR_KAFKA_... has a wrong value: {error}.") from None


def kafka_variable(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of the variable that holds the address of Kafka, if it is set."""
    variable = f"{PREFIX}KAFKA"
    return variable if environment.get(variable) else None


def redis_server(environment: Mapping[str, str] = os.environ) -> RedisServer:
    """Return the Redis server that the environment names.

    Raises:
        InvalidRequest: it names none (`settings`).
    """
    values = _server_settings("REDIS", environment)
    if "" not in values:
        raise _error("No address of Redis. Set it, for example: export STREAM_CAR_REDIS=redis://host:6379")
    return RedisServer(
        url=values[""],
        username=values.get("USER"),
        password=values.get("PASSWORD"),
        ca=values.get("CA"),
        certificate=values.get("CERTIFICATE"),
        key=values.get("KEY"),
    )


def _server_settings(server: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a server by the end of their variable names; a password may come from a file."""
    variables = {name: PREFIX + "_".join(filter(None, (server, name))) for name in _SERVER_SETTINGS[server]}
    values = {name: environment[variable] for name, variable in variables.items() if environment.get(variable)}
    if "PASSWORD_FILE" in values:
        values["PASSWORD"] = read_secret_file(values["PASSWORD_FILE"], f"${variables['PASSWORD_FILE']}")
    return values


def read_secret_file(path: str, setting: str) -> str:
    """Return the secret in a file that a setting names. Raises `InvalidRequest` (`settings`)."""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise _error(f"The file that {setting} names cannot be read. Check its path and permissions.") from None


def _invalid(path: Path, problem: str) -> InvalidRequest:
    return _error(f"The settings in {path.name} cannot be used: {problem}")


def _error(message: str) -> InvalidRequest:
    return InvalidRequest("settings", message)

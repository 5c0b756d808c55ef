"""What commands have in common: their options, how they open the engine, and how they answer."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click
from rich.console import RenderableType

import stream_car
from stream_car.api import messages
from stream_car.api.json import line
from stream_car.cli.console import emit, err, show
from stream_car.cli.hints import COMMANDLINE, advised
from stream_car.cli.widgets import WARN, counted
from stream_car.codec import parse_time
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest
from stream_car.queries.limits import DEPTH_MAX
from stream_car.settings import (
    DATA_DEFAULT,
    DATA_VARIABLE,
    ENCODER_VARIABLE,
    RULES_VARIABLE,
    TOKEN_VARIABLE,
    URL_VARIABLE,
    data_directory,
    token_to_send,
)

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
if TYPE_CHECKING:
    Car = stream_car.Engine | stream_car.Client  # they answer the same calls
DAY_LENGTH = len("2024-01-31")
LOOKED_AT = 1000  # rejections that a hint looks at
NOT_FOUND = 1
SERVED_MAX = {"k": messages.K_MAX, "depth": messages.DEPTH_MAX, "budget": messages.BUDGET_MAX}
UNKNOWN_TYPE = "type_unknown"


def read_time(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Microseconds UTC of an RFC 3339 time, or of a day alone, which means its first instant."""
    if value is None:
        return None
    try:
        return parse_time(f"{value}T00:00:00Z" if len(value) == DAY_LENGTH else value)
    except ValueError as error:
        raise click.BadParameter(f"{error}; a day alone, like 2024-01-31, will do too", ctx, param) from None


def examples(*lines: str) -> str:
    """The end of a command's help: it teaches by example."""
    return "\b\nExamples:\n" + "\n".join(f"  {text}" for text in lines)


def reading(command: Callable[P, R]) -> Callable[P, R]:
    """The options of every command that works on data: `--data`, `--rules`, `--json`."""
    return data(rules(as_json(command)))


def asking(command: Callable[P, R]) -> Callable[P, R]:
    """The options of a command that a service can be asked too: those of `decoded`, and `--url`."""
    return data(rules(url(as_json(command))))


def url(command: Callable[P, R]) -> Callable[P, R]:
    """`--url URL`"""
    return click.option(
        "--url",
        envvar=URL_VARIABLE,
        metavar="URL",
        help="Ask the service there instead (see: stream-car up), which has its own data and rules; "
        f"${TOKEN_VARIABLE} is its token.  [default: ${URL_VARIABLE}, unless --data is given]",
    )(command)


def data(command: Callable[P, R]) -> Callable[P, R]:
    """`--data DIR`"""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=data_directory,
        metavar="DIR",
        help=f"The directory of the log and all that follows from it.  [default: ${DATA_VARIABLE}, or {DATA_DEFAULT}]",
    )(command)


def rules(command: Callable[P, R]) -> Callable[P, R]:
    """`--rules NAME|FILE`, as often as needed"""
    return click.option(
        "--rules",
        multiple=True,
        envvar=RULES_VARIABLE,
        metavar="NAME|FILE",
        help="A shipped rule pack by name, or your own TOML file; may be repeated. New data goes by these from then "
        f"on; `stream-car rebuild` changes them.  [default: ${RULES_VARIABLE}, names apart by spaces, or what the "
        "data goes by, or all shipped packs]",
    )(command)


def as_json(command: Callable[P, R]) -> Callable[P, R]:
    """`--json`"""
    return click.option(
        "--json", "as_json", is_flag=True, help="For programs: one JSON value a line, times as RFC 3339."
    )(command)


def encoder(command: Callable[P, R]) -> Callable[P, R]:
    """`--encoder FOLDER`"""
    return click.option(
        "--encoder",
        envvar=ENCODER_VARIABLE,
        metavar="FOLDER",
        help="Also find by meaning, with this sentence encoder: a folder with an ONNX model (the `dense` extra) or one "
        f"of sentence-transformers (the extra of that name).  [default: ${ENCODER_VARIABLE}, or words alone]",
    )(command)


def as_of(command: Callable[P, R]) -> Callable[P, R]:
    """`--as-of TIME`"""
    return click.option(
        "--as-of",
        callback=read_time,
        metavar="TIME",
        help="Answer as of this time: 2021-12-12 (midnight UTC, when the day begins), or RFC 3339 in full. What "
        "still waits for its time does not count.",
    )(command)


def depth(usual: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`--depth N`"""
    return click.option(
        "--depth",
        type=click.IntRange(1, DEPTH_MAX),
        default=usual,
        show_default=True,
        help="How many anchors relevance may propose.",
    )


def svg(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`--svg FILE`"""
    return click.option(
        "--svg",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help=f"Also draw {what} into this file, as SVG.",
    )


def draw_to(path: Path | None, picture: Callable[[], str]) -> None:
    """Keep a picture where one was asked for. Raises `InvalidRequest` where it cannot be written."""
    if path is None:
        return
    try:
        path.write_text(picture(), encoding="utf-8")
    except OSError as error:
        raise InvalidRequest("svg", f"{path} cannot be written: {error.strerror or error}") from error


def scope(command: Callable[P, R]) -> Callable[P, R]:
    """`KEY=VALUE...`, at least one"""
    return click.argument("parts", nargs=-1, required=True, metavar="KEY=VALUE...", callback=read_parts)(command)


def read_parts(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, str]:
    """The pairs of `KEY=VALUE...`; everything behind the first equals sign is the value."""
    pairs: dict[str, str] = {}
    for text in value:
        key, equals, rest = text.partition("=")
        if not (key and equals and rest):
            raise click.BadParameter(f"{text!r} is not KEY=VALUE, as in package=lodash", ctx, param)
        if key in pairs:
            raise click.BadParameter(f"{key} is given twice; ask once for each value", ctx, param)
        pairs[key] = rest
    return pairs


def opened(path: Path, packs: Sequence[str], url: str | None, encoder: str | None = None) -> "Car":
    """The service at an address, or else the engine over data that exists."""
    return connected(url) or existing(path, packs, encoder)


def require_served(car: "Car", **asked: int | None) -> None:
    """Refuse a number that the engine takes and a service does not."""
    for name, number in asked.items():
        most = SERVED_MAX[name]
        if isinstance(car, stream_car.Client) and number is not None and number > most:
            raise click.BadParameter(f"a service takes at most {most:,}, not {number:,}", param_hint=f"'--{name}'")


def settle(car: "Car", encoder: str | None) -> None:
    """Wait until every vector is made; a service makes its own in its own time."""
    if encoder is not None and isinstance(car, stream_car.Engine):
        with err().status("making vectors"):
            car.settle()


def existing(path: Path, packs: Sequence[str], encoder: str | None = None) -> stream_car.Engine:
    """The engine over data that exists; questions never make a directory."""
    if not path.is_dir():
        raise InvalidRequest("no_data", f"there is nothing at {path} yet; first: stream-car publish FILE --data {path}")
    return engine_over(path, packs, encoder)


def connected(url: str | None, *, with_rules: bool = False) -> "stream_car.Client | None":
    """The service that a command is to ask, if any: an address on the command line, or one in the environment.

    `with_rules` says that the rules of the command line are for the service.
    """
    typed = {name for name in ("url", "data", "rules", "encoder") if is_typed(name)}
    if not url or ("data" in typed and "url" not in typed):
        return None
    if typed & ({"data", "encoder"} if with_rules else {"data", "rules", "encoder"}):
        raise click.UsageError(
            "a service has its own data, rules and encoder: give --url, or --data, --rules and --encoder"
        )
    return stream_car.connect(url, token=token_to_send())


def without_url(command: Callable[P, R]) -> Callable[P, R]:
    """`--url URL` where it is refused: whoever means a service is told what to do instead. See `refuse_url`."""
    return click.option(
        "--url",
        envvar=URL_VARIABLE,
        metavar="URL",
        help=f"Not here: this works on the files of --data. Refused, as is ${URL_VARIABLE} where --data is not given, "
        "lest it be done to the wrong data.",
    )(command)


def refuse_url(url: str | None, why: str) -> None:
    """For commands that work on files alone: none is made of the wrong data where a service was meant."""
    if url and (is_typed("url") or not is_typed("data")):
        raise click.UsageError(why)


def is_typed(name: str) -> bool:
    """Whether an option is on the command line, and not from the environment."""
    return click.get_current_context().get_parameter_source(name) is COMMANDLINE


def engine_over(path: Path, packs: Sequence[str], encoder: str | None = None) -> stream_car.Engine:
    """The engine over a folder, which is made if need be. Raises `InvalidRequest` where it cannot be used."""
    try:
        return stream_car.open(path, domains=packs, encoder=encoder)
    except OSError as error:
        raise InvalidRequest("data", f"{path} cannot hold the data: {error.strerror or error}") from error


def ruleset_of(car: "Car") -> Ruleset:
    """The rules in force there."""
    return car.ruleset if isinstance(car, stream_car.Engine) else Ruleset(car.rules().domains)


def hint_at_rules(engine: "Car", *, is_found: bool) -> None:
    """Where nothing was found: documents may be refused only because these rules do not know their type."""
    if is_found:
        return
    refused = sum(item.code == UNKNOWN_TYPE for item in engine.rejected(limit=LOOKED_AT))
    if refused:
        said = counted(refused, "document has a type", "documents have types")
        err().print(
            advised(
                f"{said} that no rule pack of this data knows. See what other packs would make of them",
                "rebuild --rules ... --dry-run",
                WARN,
            ),
            soft_wrap=True,
        )


def end(*, is_found: bool) -> None:
    """Exit code 1 where nothing was found."""
    if not is_found:
        raise click.exceptions.Exit(NOT_FOUND)


def answer_one(value: T, *, as_json: bool, draw: Callable[[T], RenderableType]) -> None:
    """One value: a line of JSON, or drawn."""
    if as_json:
        emit(line(value))
    else:
        show(draw(value))


def answer_each(values: Iterable[T], *, as_json: bool, draw: Callable[[T], RenderableType], nothing: str) -> None:
    """Many values: JSON Lines, or drawn one beneath the other; `nothing` is said to people where there are none."""
    count = 0
    for value in values:
        answer_one(value, as_json=as_json, draw=draw)
        count += 1
    if not count and not as_json:
        show(nothing)

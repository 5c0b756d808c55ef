"""What commands share: their options, where they work, and how they report.

Promise: a command that only reads never creates a data directory. A command does not know whether it uses a data
directory or a service: both have the same calls and give the same answers.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import click
from rich.console import Group, RenderableType

import stream_car
from stream_car import rule_packs, settings
from stream_car.adapters.kafka.topic_layout import PARTITIONS, PREFIX, Layout
from stream_car.api import arguments, requests
from stream_car.api.calls import Calls
from stream_car.api.json import to_json
from stream_car.cli.console import emit, err, note, show
from stream_car.errors import InvalidRequest
from stream_car.queries.limits import DEPTH_MAX

if TYPE_CHECKING:
    from stream_car.client.sync import Client
    from stream_car.cluster.connections import Plan
    from stream_car.local.engine import Engine

FAILED = 1  # the exit code if nothing was found, or something was rejected
BROKEN = 2  # the exit code if a command cannot be carried out
LIMITS = {"k": requests.K_MAX, "depth": requests.DEPTH_MAX, "budget": requests.BUDGET_MAX}  # of a service

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=click.Command)
FILE = click.Path(path_type=Path, dir_okay=False)
EXISTING_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
FOLDER = click.Path(path_type=Path, file_okay=False)


class Session:
    """Where a command works and how it reports, as its common options say."""

    data: Path = settings.DATA_DEFAULT
    rules: tuple[str, ...] = ()
    url: str | None = None
    encoder: str | None = None
    as_json: bool = False
    verbose: bool = False
    attributes: bool = False
    kafka: str | None = None
    prefix: str = PREFIX
    namespace: str = ""
    intakes: int = PARTITIONS
    frontiers: int = PARTITIONS
    single_broker: bool = False

    def open(self, *, create: bool = False, sends_rules: bool = False) -> "Engine | Client":
        """Connect to the service, or open the data directory, which must exist unless `create`.

        With `sends_rules`, --rules are for a rebuild, and say nothing about the rules that the data has now.
        """
        if not self.url or not self.is_remote:
            return self.engine(create=create, rules=() if sends_rules else self.rules)
        if any(map(is_typed, ("data", "encoder") if sends_rules else ("data", "rules", "encoder"))):
            raise click.UsageError(
                "A service has its own data, rules and encoder. Give --url, or --data, --rules and --encoder."
            )
        return stream_car.connect(self.url, token=settings.token_to_send())

    @property
    def include(self) -> Sequence[requests.Part]:
        """What documents are to be given with."""
        return ("attributes",) if self.attributes else ()

    @property
    def is_remote(self) -> bool:
        """Whether the command works on a service. --data on the command line overrides a URL in the environment."""
        return bool(self.url) and (is_typed("url") or not is_typed("data"))

    def engine(self, *, create: bool, rules: Sequence[str]) -> "Engine":
        """Open the data directory. Raises `InvalidRequest` if it cannot be used."""
        if not create and not self.data.is_dir():
            cure = f"Publish something first: stream-car publish FILE --data {self.data}"
            raise InvalidRequest("no_data", f"There is nothing in {self.data} yet. {cure}")
        try:
            return stream_car.open(self.data, rules=rules, encoder=self.encoder)
        except OSError as error:
            problem = f"{self.data} cannot hold the data: {error.strerror or error}."
            cure = "Check its permissions, or choose another one with --data."
            raise InvalidRequest("data", f"{problem} {cure}") from error

    def settle(self, calls: Calls) -> None:
        """Wait until every vector is made. A service makes its vectors in the background."""
        if self.encoder is not None and isinstance(calls, stream_car.Engine):
            with err().status("making vectors"):
                calls.settle()

    def require_limits(self, **numbers: int | None) -> None:
        """Reject a number that a data directory accepts and a service does not."""
        for name, number in numbers.items():
            if self.is_remote and number is not None and number > LIMITS[name]:
                problem = f"A service accepts at most {LIMITS[name]:,}, not {number:,}."
                raise click.BadParameter(problem, param_hint=f"'--{name}'")

    def require_files(self, advice: str) -> None:
        """Reject --url for a command that works on files: it must not use the wrong data where a service is meant."""
        if self.is_remote:
            raise click.UsageError(advice)

    def layout(self) -> Layout:
        """Return the topics that the options describe."""
        return Layout(
            prefix=self.prefix, intakes=self.intakes, frontiers=self.frontiers, single_broker=self.single_broker
        )

    def installation(self) -> "Plan":
        """Return the servers, topics and rules of a worker. Raises `InvalidRequest` if something is missing."""
        settings.require_known_variables()
        require_drivers()
        from stream_car.cluster.connections import Plan

        return Plan(
            kafka=settings.kafka_server(self.kafka),
            redis=settings.redis_server(),
            ruleset=rule_packs.load(self.rules),
            prefix=self.prefix,
            namespace=self.namespace,
            single_broker=self.single_broker,
        )

    def note(self, text: str) -> None:
        """Print a remark for people; a program reads the log."""
        if not self.as_json:
            note(text)

    def report(self, value: T, draw: Callable[[T], RenderableType]) -> None:
        """Print a value: as a line of JSON, or drawn."""
        if self.as_json:
            emit(to_json(value))
        else:
            show(draw(value))

    def report_all(
        self, values: Sequence[T], draw: Callable[[Sequence[T]], RenderableType], *, if_empty: RenderableType = ""
    ) -> None:
        """Print values: as lines of JSON, or drawn together. `if_empty` is shown to people if there are none."""
        if self.as_json:
            for value in values:
                emit(to_json(value))
        else:
            show(draw(values) if values else if_empty)

    def report_each(
        self, values: Sequence[T], draw: Callable[[T], RenderableType], *, if_empty: RenderableType = ""
    ) -> None:
        """Print values one below the other, as `report_all` does."""
        self.report_all(values, lambda values: Group(*map(draw, values)), if_empty=if_empty)


def require_drivers() -> None:
    """Raise `InvalidRequest` if the drivers of Kafka and Redis are not installed."""
    try:
        import kafka  # noqa: F401
    except ImportError:
        raise InvalidRequest("extra", "This command needs more packages: pip install 'stream-car[servers]'") from None


def is_typed(name: str) -> bool:
    """Return whether an option is on the command line, and not from the environment."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def require(condition: bool, code: int = FAILED) -> None:
    """End the command with an exit code unless the condition holds."""
    if not condition:
        raise click.exceptions.Exit(code)


# The options of a session


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    setattr(context.ensure_object(Session), str(parameter.name), value)


_option = partial(click.Option, expose_value=False, callback=_keep)
_rules = partial(_option, ["--rules"], multiple=True, envvar=settings.RULES_VARIABLE, metavar="NAME|FILE")
_url = partial(_option, ["--url"], envvar=settings.URL_VARIABLE, metavar="URL")
_partitions = partial(
    _option,
    type=click.IntRange(1, 10_000),
    default=PARTITIONS,
    show_default=f"as many as the topics have, or {PARTITIONS}",
)
_COMMON = {
    "data": _option(
        ["--data"],
        type=FOLDER,
        default=settings.data_directory,
        metavar="DIR",
        help=f"The data directory.  [default: ${settings.DATA_VARIABLE}, or {settings.DATA_DEFAULT}]",
    ),
    "rules": _rules(
        help="A shipped rule pack by name, or your own TOML file; may be repeated. New data keeps these rules; "
        f"`stream-car rebuild` changes them.  [default: ${settings.RULES_VARIABLE}, space-separated, or the rules "
        "stored with the data, or all shipped packs]",
    ),
    "url": _url(
        help="Use the service at this address (see: stream-car serve) with its own data and rules. "
        f"${settings.TOKEN_VARIABLE} is its token.  [default: ${settings.URL_VARIABLE}, unless --data is given]",
    ),
    "no_url": _url(
        help=f"Not supported: this command works on the files of --data. It stops if this or ${settings.URL_VARIABLE} "
        "is set and --data is not given, so that it never uses the wrong data.",
    ),
    "encoder": _option(
        ["--encoder"],
        envvar=settings.ENCODER_VARIABLE,
        metavar="FOLDER",
        help="Also find documents by meaning, with this sentence encoder: the folder of an ONNX model (the extra "
        "`dense`) or of a model for sentence-transformers (the extra of that name).  "
        f"[default: ${settings.ENCODER_VARIABLE}, or words alone]",
    ),
    "verbose": _option(
        ["-v", "--verbose"], is_flag=True, help="Also show scores, positions and the details of the certificate."
    ),
    "attributes": _option(
        ["--attributes"], is_flag=True, help="With --json: also give the attributes of each document."
    ),
    "kafka": _option(
        ["--kafka"],
        metavar="HOST:PORT",
        help="The address of Kafka; several are joined by commas.  [default: $STREAM_CAR_KAFKA. User, password and "
        "certificates come from $STREAM_CAR_KAFKA_USER and so on]",
    ),
    "prefix": _option(
        ["--prefix"], default=PREFIX, show_default=True, help="The first part of the names of the topics."
    ),
    "namespace": _option(
        ["--namespace"],
        default="",
        metavar="NAME",
        help="Name of the state in Redis and of the group of workers. Another one builds the state of other rules "
        "beside this one.  [default: the prefix]",
    ),
    "intakes": _partitions(
        ["--intakes"], help="Partitions of the documents. Another number begins another generation."
    ),
    "frontiers": _partitions(
        ["--frontiers"], help="Partitions of placements and changes. Another number begins another generation."
    ),
    "single_broker": _option(
        ["--single-broker"], is_flag=True, help="One copy of each record is enough. For trying out: it can be lost."
    ),
    "worker_rules": _rules(
        help="A shipped rule pack by name, or your own TOML file; may be repeated. It must be the same for all workers "
        f"and query workers.  [default: ${settings.RULES_VARIABLE}, space-separated, or all shipped packs]"
    ),
    "json": _option(["--json", "as_json"], is_flag=True, help="For programs: one JSON value per line."),
}


def command(
    *names: str, name: str | None = None, group: click.Group | None = None
) -> Callable[[Callable[Concatenate[Session, P], None]], click.Command]:
    """Make a command that has these common options and `--json`. It receives its `Session` as the first argument.

    Its help is its docstring, which ends with examples. Without a `name` it is called as the function.
    """

    def make(function: Callable[Concatenate[Session, P], None]) -> click.Command:
        made = with_examples(click.command(name)(click.pass_obj(function)))
        made.params += [_COMMON[option] for option in (*names, "json")]
        if group is not None:
            group.add_command(made)
        return made

    return make


def with_examples(command: C) -> C:
    """Show the examples of a command's docstring last in its help, line by line."""
    command.help, _, lines = cleandoc(command.help or "").partition("\n\nExamples:\n")
    command.epilog = f"\b\nExamples:\n{lines}"
    return command


# Other options and arguments that several commands have


def _read_time(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    try:
        return arguments.time(value, str(parameter.name))
    except InvalidRequest as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _read_values(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each key of `KEY=VALUE...`; everything after the first equals sign is the value."""
    values: dict[str, list[str]] = {}
    for text in texts:
        key, _, value = text.partition("=")
        if not (key and value):
            raise click.BadParameter(f"{text!r} is not KEY=VALUE, for example package=lodash.", context, parameter)
        values.setdefault(key, []).append(value)
    return values


def _read_pairs(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Return the pairs of `KEY=VALUE...`."""
    values = _read_values(context, parameter, texts)
    for key, given in values.items():
        if len(given) > 1:
            raise click.BadParameter(f"{key} is given twice. Ask once for each value.", context, parameter)
    return {key: value for key, [value] in values.items()}


scope = click.argument("scope", nargs=-1, required=True, metavar="KEY=VALUE...", callback=_read_pairs)
within = click.option(
    "--scope",
    "scope",
    multiple=True,
    callback=_read_pairs,
    metavar="KEY=VALUE",
    help="Search only documents in scopes that have this pair; may be repeated.",
)
scopes = click.argument("scope", nargs=-1, metavar="[KEY=VALUE...]", callback=_read_values)
as_of = click.option(
    "--as-of",
    callback=_read_time,
    metavar="TIME",
    help="Answer as of this time: a day, such as 2021-12-12 (midnight UTC, when it begins), or RFC 3339. Documents "
    "that still wait for their time do not count.",
)


since = click.option(
    "--since",
    callback=_read_time,
    metavar="TIME",
    help="Only what took effect then or later, by the time of the document that caused it: a day, or RFC 3339.",
)


types = click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only documents of this type; may be repeated."
)
states = click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    help="Only documents that stand so: in_force, ended, or a word of a rule pack, such as open, fixed or withdrawn; "
    "may be repeated. A document is in force if nothing supersedes it in any scope and its record has not ended.",
)


only = click.option(
    "--only", multiple=True, metavar="OUTCOME,...", help="Only what has become of it one of these, such as withdrawn."
)


def outcomes(only: Sequence[str]) -> list[str]:
    """Return the outcomes that were given to `--only`, each after a comma or an option of its own."""
    return [outcome for outcomes in only for outcome in outcomes.split(",") if outcome]


def limit(default: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`--limit N`"""
    count = click.IntRange(min=1)
    return click.option("--limit", type=count, default=default, show_default=True, help="List at most this many.")


def depth(default: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`--depth N`"""
    return click.option(
        "--depth",
        type=click.IntRange(1, DEPTH_MAX),
        default=default,
        show_default=True,
        help="How many documents relevance may propose as a starting point.",
    )


def svg(content: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`--svg FILE`"""
    return click.option("--svg", type=FILE, help=f"Also draw {content} to this file, as SVG.")


def write_svg(path: Path | None, draw: Callable[[], str]) -> None:
    """Write a picture if a file for it is given. Raises `InvalidRequest` if it cannot be written."""
    write_file(path, draw, "svg")


def write_file(path: Path | None, draw: Callable[[], str], option: str) -> None:
    """Write a file if an option names one. Raises `InvalidRequest` if it cannot be written."""
    if path is None:
        return
    try:
        path.write_text(draw(), encoding="utf-8")
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror or error}. Choose another file with --{option}."
        raise InvalidRequest(option, reason) from error

"""`topics show`, `check` and `apply`: what Kafka must hold before workers start."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click
from msgspec import Struct
from rich.console import RenderableType
from rich.text import Text

from stream_car.adapters.kafka.topic_layout import PARTITIONS, PREFIX, UNLIMITED, Layout, Topic
from stream_car.api.json import line
from stream_car.cli import options, servers
from stream_car.cli.console import emit, show, words
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, Rows, counted
from stream_car.errors import InvalidRequest
from stream_car.settings import kafka_server

if TYPE_CHECKING:
    from stream_car.adapters.kafka.topics import Checked

P = ParamSpec("P")
R = TypeVar("R")
BROKEN = 2
DAY_MS = 24 * 3600 * 1000


class Shown(Struct, frozen=True):
    """A topic as it should be, as programs get it."""

    name: str
    about: str
    key: str
    placed: str
    partitions: int
    replicas: int
    settings: dict[str, str]


@click.group("topics")
def group() -> None:
    """Make and check the topics that workers use."""


def _of_layout(command: Callable[P, R]) -> Callable[P, R]:
    """The options that say which topics are meant."""
    for option in (
        click.option("--prefix", default=PREFIX, show_default=True, help="What the names of the topics begin with."),
        click.option(
            "--intakes",
            type=click.IntRange(1, 10_000),
            default=PARTITIONS,
            show_default=True,
            help="Partitions of the documents. For life: another number is another generation.",
        ),
        click.option(
            "--frontiers",
            type=click.IntRange(1, 10_000),
            default=PARTITIONS,
            show_default=True,
            help="Partitions of placements and changes. For life, too.",
        ),
        click.option(
            "--single-broker", is_flag=True, help="One copy of each record: for trying out, where loss is no matter."
        ),
    ):
        command = option(command)
    return options.as_json(command)


@group.command(
    "show", epilog=options.examples("stream-car topics show", "stream-car topics show --single-broker --json")
)
@_of_layout
def show_topics(prefix: str, intakes: int, frontiers: int, single_broker: bool, as_json: bool) -> None:
    """Show what the topics must be like; asks no server."""
    layout = Layout(prefix=prefix, intakes=intakes, frontiers=frontiers, single_broker=single_broker)
    if as_json:
        for topic in layout.topics():
            emit(line(_shown(layout, topic)))
        return
    names = ("topic", "key", "partitions", "kept", "what it holds")
    show(Rows(names, [_row(layout, topic) for topic in layout.topics()]))
    settings = layout.settings(layout.topics()[0])
    shared = {name: value for name, value in settings.items() if name != "retention.ms"}
    show(words("  ".join(f"{name}={value}" for name, value in shared.items()), FAINT))


@group.command(
    "check",
    epilog=options.examples(
        "stream-car topics check --kafka broker-1:9092",
        "stream-car topics check --kafka localhost:9092 --single-broker --json",
    ),
)
@servers.kafka
@_of_layout
def check_topics(
    kafka: str | None, prefix: str, intakes: int, frontiers: int, single_broker: bool, as_json: bool
) -> None:
    """Say what is wrong with the topics. Exit code 2 where anything is."""
    layout = Layout(prefix=prefix, intakes=intakes, frontiers=frontiers, single_broker=single_broker)
    require_driver()
    from stream_car.adapters.kafka.topics import check

    checked = check(kafka_server(kafka), layout)
    _tell(checked, as_json=as_json)
    if any(one.problems for one in checked):
        raise click.exceptions.Exit(BROKEN)


@group.command(
    "apply",
    epilog=options.examples(
        "stream-car topics apply --kafka broker-1:9092,broker-2:9092",
        "stream-car topics apply --kafka localhost:9092 --single-broker --intakes 4 --frontiers 4",
    ),
)
@servers.kafka
@_of_layout
def apply_topics(
    kafka: str | None, prefix: str, intakes: int, frontiers: int, single_broker: bool, as_json: bool
) -> None:
    """Make the topics that are missing, and check all.

    What exists is never changed, repartitioned or deleted; unsafe settings are refused, by name.
    """
    layout = Layout(prefix=prefix, intakes=intakes, frontiers=frontiers, single_broker=single_broker)
    require_driver()
    from stream_car.adapters.kafka.topics import apply

    _tell(apply(kafka_server(kafka), layout), as_json=as_json)


def require_driver() -> None:
    """Raises `InvalidRequest` where the drivers of the servers are not installed."""
    try:
        import kafka  # noqa: F401
    except ImportError:
        raise InvalidRequest("extra", "this command needs more: pip install 'stream-car[servers]'") from None


def _tell(checked: Sequence["Checked"], *, as_json: bool) -> None:
    options.answer_each(checked, as_json=as_json, draw=_drawn, nothing="")


def _drawn(one: "Checked") -> RenderableType:
    if one.problems:
        return Text("\n").join(Text.assemble(("✘ ", BAD), words(problem)) for problem in one.problems)
    made = "made" if one.made else "in order"
    return Text.assemble(
        ("✔ ", IN_FORCE), words(one.name), words(f"  {made}, {counted(one.partitions, 'partition')}", FAINT)
    )


def _shown(layout: Layout, topic: Topic) -> Shown:
    return Shown(
        layout.named(topic), topic.about, topic.key, topic.placed, topic.partitions, layout.replicas,
        layout.settings(topic),
    )  # fmt: skip


def _row(layout: Layout, topic: Topic) -> tuple[Text, ...]:
    kept = "for ever" if topic.retention_ms == UNLIMITED else f"{topic.retention_ms // DAY_MS} days"
    cells = (layout.named(topic), topic.key, str(topic.partitions), kept, topic.about)
    return tuple(words(cell) for cell in cells)

"""`topics show`, `check` and `apply`: the Kafka topics that workers need."""

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict
from rich.console import RenderableType
from rich.text import Text

from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import UNLIMITED, Layout, Topic
from stream_car.api.json import to_json
from stream_car.cli.console import emit, show, words
from stream_car.cli.options import BROKEN, Session, command, is_typed, require, require_drivers
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, Rows, counted
from stream_car.settings import kafka_server

if TYPE_CHECKING:
    from stream_car.adapters.kafka.topics import TopicCheck

DAY_MS = 24 * 3600 * 1000


@click.group()
def topics() -> None:
    """Create and check the Kafka topics that workers use."""


@command("prefix", "intakes", "frontiers", "single_broker", name="show", group=topics)
def show_topics(session: Session) -> None:
    """Show which topics are needed, and their settings. Contacts no server.

    Examples:
      stream-car topics show
      stream-car topics show --single-broker --json
    """
    layout = session.layout()
    if session.as_json:
        for topic in layout.topics():
            more = {"name": layout.full_name(topic), "replicas": layout.replicas, "settings": layout.settings(topic)}
            emit(to_json(asdict(topic) | more))
        return
    shared = layout.settings(layout.topics()[0])
    rows = [_row(layout.full_name(topic), topic) for topic in layout.topics()]
    table = Rows(("topic", "key", "partitions", "kept", "what it holds"), rows)
    settings = "  ".join(f"{key}={value}" for key, value in shared.items() if key != "retention.ms")
    show(table, words(settings, FAINT))


@command("kafka", "prefix", "intakes", "frontiers", "single_broker", name="check", group=topics)
def check_topics(session: Session) -> None:
    """Check that the topics exist with safe settings. Exit code 2 if not.

    Existing topics keep their numbers of partitions; with --intakes or --frontiers, these are checked too.

    Examples:
      stream-car topics check --kafka broker-1:9092
      stream-car topics check --kafka localhost:9092 --single-broker --json
    """
    require_drivers()
    from stream_car.adapters.kafka.topics import check

    server = kafka_server(session.kafka)
    checked = check(server, _layout(server, session))
    session.report_each(checked, _draw)
    require(not any(topic.problems for topic in checked), BROKEN)


@command("kafka", "prefix", "intakes", "frontiers", "single_broker", name="apply", group=topics)
def apply_topics(session: Session) -> None:
    """Create missing topics, and check all.

    Existing topics are never changed, repartitioned or deleted. If one has unsafe settings, they are listed and the
    exit code is 2.

    Examples:
      stream-car topics apply --kafka broker-1:9092,broker-2:9092
      stream-car topics apply --kafka localhost:9092 --single-broker --intakes 4 --frontiers 4
    """
    require_drivers()
    from stream_car.adapters.kafka.topics import apply

    server = kafka_server(session.kafka)
    session.report_each(apply(server, _layout(server, session)), _draw)


def _layout(server: KafkaServer, session: Session) -> Layout:
    """Return the layout of the options. A number of partitions that is not given is that of existing topics."""
    from stream_car.adapters.kafka.topics import adopt_partitions

    return adopt_partitions(server, session.layout(), [name for name in ("intakes", "frontiers") if not is_typed(name)])


def _row(name: str, topic: Topic) -> list[Text]:
    kept = "for ever" if topic.retention_ms == UNLIMITED else f"{topic.retention_ms // DAY_MS} days"
    return [words(cell) for cell in (name, topic.key, str(topic.partitions), kept, topic.about)]


def _draw(topic: "TopicCheck") -> RenderableType:
    if topic.problems:
        return Text("\n").join(Text.assemble(("✘ ", BAD), words(problem)) for problem in topic.problems)
    state = "created" if topic.created else "ok"
    about = words(f"  {state}, {counted(topic.partitions, 'partition')}", FAINT)
    return Text.assemble(("✔ ", IN_FORCE), words(topic.name), about)

"""Topics on a real Kafka: created once, never changed, rejected if they would break a promise."""

import json
import secrets
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient

from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, check, delete, require
from stream_car.cli import main
from stream_car.errors import StreamCarError, UnsafeSettings
from tests.support.servers import in_one_worker

pytestmark = in_one_worker(__name__)


@pytest.fixture
def server(kafka: str) -> KafkaServer:
    return KafkaServer(address=kafka)


@pytest.fixture
def layout(server: KafkaServer) -> Iterator[Layout]:
    layout = Layout(prefix=f"test-{secrets.token_hex(6)}", intakes=2, frontiers=3, single_broker=True)
    yield layout
    delete(server, layout)


def create(server: KafkaServer, name: str, partitions: int, settings: dict[str, str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    topics = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
    admin.create_topics(topics, wait_for_metadata=True)
    admin.close()


def test_missing_topics_are_created_and_existing_ones_are_left_alone(server: KafkaServer, layout: Layout) -> None:
    missing = check(server, layout)
    first = apply(server, layout)
    second = apply(server, layout)

    assert all("topics apply" in topic.problems[0] for topic in missing)
    assert [(topic.created, topic.partitions, topic.problems) for topic in first] == [
        (True, n, ()) for n in (2, 3, 3, 1, 1)
    ]
    assert [(topic.created, topic.problems) for topic in second] == [(False, ())] * 5
    require(server, layout)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "604800000"),
        ("retention.bytes", "1000000000"),
        ("message.timestamp.type", "CreateTime"),
        ("unclean.leader.election.enable", "true"),
        ("max.message.bytes", "1000"),
    ],
)
def test_a_setting_that_breaks_a_promise_is_rejected_by_name(
    server: KafkaServer, layout: Layout, setting: str, value: str
) -> None:
    (documents, *_) = layout.topics()
    create(server, layout.full_name(documents), 2, layout.settings(documents) | {setting: value})

    with pytest.raises(UnsafeSettings) as caught:
        apply(server, layout)

    (problem,) = caught.value.problems
    assert problem.startswith(f"Set {setting} of topic {layout.full_name(documents)} to ")
    with pytest.raises(UnsafeSettings):
        require(server, layout)


def test_settings_that_promise_more_than_is_needed_are_accepted(server: KafkaServer, layout: Layout) -> None:
    rejected = layout.topics()[-1]
    create(server, layout.full_name(rejected), 1, layout.settings(rejected) | {
        "retention.ms": "-1", "max.message.bytes": "2000000",
    })  # fmt: skip

    assert [topic.problems for topic in apply(server, layout)] == [()] * 5


def test_a_topic_with_another_number_of_partitions_is_rejected_and_left_alone(
    server: KafkaServer, layout: Layout
) -> None:
    (documents, *_) = layout.topics()
    create(server, layout.full_name(documents), 5, layout.settings(documents))

    with pytest.raises(UnsafeSettings, match="5 partitions, not 2"):
        apply(server, layout)

    assert check(server, layout)[0].partitions == 5


def test_three_replicas_need_three_brokers(server: KafkaServer) -> None:
    with pytest.raises(StreamCarError, match="--single-broker"):
        apply(server, Layout(prefix="never-created"))


def test_one_replica_is_rejected_unless_it_is_requested(server: KafkaServer, layout: Layout) -> None:
    apply(server, layout)

    problems = check(server, Layout(prefix=layout.prefix, intakes=2, frontiers=3))[0].problems

    assert any("replicas" in problem for problem in problems)
    assert any(problem.startswith("Set min.insync.replicas") for problem in problems)


def test_topics_are_created_and_checked_from_the_command_line(server: KafkaServer, layout: Layout) -> None:
    options = ["--kafka", server.address, "--prefix", layout.prefix, "--intakes", "2", "--frontiers", "3"]
    run = CliRunner().invoke(main, ["topics", "apply", *options, "--single-broker", "--json"])
    again = CliRunner().invoke(main, ["topics", "check", *options])

    assert run.exit_code == 0
    assert [json.loads(line)["created"] for line in run.stdout.splitlines()] == [True] * 5
    assert again.exit_code == 2
    assert "min.insync.replicas" in again.stdout


def test_a_check_without_numbers_of_partitions_accepts_those_of_the_topics(server: KafkaServer, layout: Layout) -> None:
    options = ["--kafka", server.address, "--prefix", layout.prefix, "--single-broker"]
    CliRunner().invoke(main, ["topics", "apply", *options, "--intakes", "2", "--frontiers", "3"])

    run = {words: CliRunner().invoke(main, ["topics", *words.split(), *options]) for words in (
        "check", "apply", "check --intakes 2 --frontiers 3", "check --intakes 4", "check --frontiers 4",
    )}  # fmt: skip

    assert {words: result.exit_code for words, result in run.items()} == {
        "check": 0, "apply": 0, "check --intakes 2 --frontiers 3": 0, "check --intakes 4": 2, "check --frontiers 4": 2,
    }  # fmt: skip
    assert "has 2 partitions, not 4" in run["check --intakes 4"].stdout
    assert "has 3 partitions, not 4" in run["check --frontiers 4"].stdout


def test_what_exists_decides_how_many_partitions_are_created_beside_it(server: KafkaServer, layout: Layout) -> None:
    changes = layout.topics()[2]
    create(server, layout.full_name(changes), 5, layout.settings(changes))
    words = ["--kafka", server.address, "--prefix", layout.prefix, "--single-broker"]

    created, checked = (CliRunner().invoke(main, ["topics", name, *words]) for name in ("apply", "check"))

    assert (created.exit_code, checked.exit_code) == (0, 0)
    assert [topic.partitions for topic in check(server, layout)][:3] == [8, 5, 5]

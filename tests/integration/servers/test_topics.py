"""Topics on a real Kafka: made once, never changed, refused where they would break a promise."""

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

pytestmark = in_one_worker("kafka")


@pytest.fixture
def server(kafka: str) -> KafkaServer:
    return KafkaServer(address=kafka)


@pytest.fixture
def layout(server: KafkaServer) -> Iterator[Layout]:
    layout = Layout(prefix=f"test-{secrets.token_hex(6)}", intakes=2, frontiers=3, single_broker=True)
    yield layout
    delete(server, layout)


def make(server: KafkaServer, name: str, partitions: int, settings: dict[str, str]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=server.address)
    made = {name: {"num_partitions": partitions, "replication_factor": 1, "configs": settings}}
    admin.create_topics(made, wait_for_metadata=True)
    admin.close()


def test_what_is_missing_is_made_and_what_is_there_is_left(server: KafkaServer, layout: Layout) -> None:
    missing = check(server, layout)
    first = apply(server, layout)
    second = apply(server, layout)

    assert all("topics apply" in one.problems[0] for one in missing)
    assert [(one.made, one.partitions, one.problems) for one in first] == [(True, n, ()) for n in (2, 3, 3, 1)]
    assert [(one.made, one.problems) for one in second] == [(False, ())] * 4
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
def test_a_setting_that_breaks_a_promise_is_refused_by_name(
    server: KafkaServer, layout: Layout, setting: str, value: str
) -> None:
    (documents, *_) = layout.topics()
    make(server, layout.named(documents), 2, layout.settings(documents) | {setting: value})

    with pytest.raises(UnsafeSettings) as refused:
        apply(server, layout)

    (problem,) = refused.value.problems
    assert problem.startswith(f"Set {setting} of topic {layout.named(documents)} to ")
    with pytest.raises(UnsafeSettings):
        require(server, layout)


def test_more_than_is_needed_is_allowed(server: KafkaServer, layout: Layout) -> None:
    rejected = layout.topics()[-1]
    make(server, layout.named(rejected), 1, layout.settings(rejected) | {
        "retention.ms": "-1", "max.message.bytes": "2000000",
    })  # fmt: skip

    assert [one.problems for one in apply(server, layout)] == [()] * 4


def test_a_topic_with_other_partitions_is_left_alone_and_refused(server: KafkaServer, layout: Layout) -> None:
    (documents, *_) = layout.topics()
    make(server, layout.named(documents), 5, layout.settings(documents))

    with pytest.raises(UnsafeSettings, match="5 partitions, not 2"):
        apply(server, layout)

    assert check(server, layout)[0].partitions == 5


def test_three_copies_need_three_brokers(server: KafkaServer) -> None:
    with pytest.raises(StreamCarError, match="--single-broker"):
        apply(server, Layout(prefix="never-made"))


def test_one_copy_is_refused_unless_it_is_said(server: KafkaServer, layout: Layout) -> None:
    apply(server, layout)

    problems = check(server, Layout(prefix=layout.prefix, intakes=2, frontiers=3))[0].problems

    assert any("replicas" in problem for problem in problems)
    assert any(problem.startswith("Set min.insync.replicas") for problem in problems)


def test_from_the_command_line(server: KafkaServer, layout: Layout) -> None:
    words = ["--kafka", server.address, "--prefix", layout.prefix, "--intakes", "2", "--frontiers", "3"]
    run = CliRunner().invoke(main, ["topics", "apply", *words, "--single-broker", "--json"])
    again = CliRunner().invoke(main, ["topics", "check", *words])

    assert run.exit_code == 0
    assert [json.loads(line)["made"] for line in run.stdout.splitlines()] == [True] * 4
    assert again.exit_code == 2
    assert "min.insync.replicas" in again.stdout

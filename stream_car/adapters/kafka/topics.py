"""The topics: what each holds, and the settings without which a promise breaks.

Promise: `apply` makes what is missing and changes nothing that is there: no topic is repartitioned, shrunk
or deleted. `check` names every setting that would lose, reorder or re-time records. What a topic inherits
from its brokers counts as its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import cast

from kafka import KafkaAdminClient
from kafka import errors as driver
from kafka.admin import ConfigResource, ConfigResourceType
from msgspec import Struct
from msgspec.structs import replace

from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import REPLICAS, Layout, Topic
from stream_car.errors import StreamCarError, Unavailable, UnsafeSettings


class Found(Struct, frozen=True):
    """A topic as it is: how many partitions, the least number of replicas of one, and its settings."""

    partitions: int
    replicas: int
    settings: Mapping[str, str]


class Checked(Struct, frozen=True):
    """A topic, whether it was made just now, and what is wrong with it."""

    name: str
    partitions: int
    made: bool
    problems: tuple[str, ...]


def apply(server: KafkaServer, layout: Layout) -> tuple[Checked, ...]:
    """Make what is missing, and check all. Raises `UnsafeSettings` where a topic that exists may not be used."""
    with _admin(server) as admin:
        here = _found(admin, layout)
        missing = [topic for topic in layout.topics() if layout.named(topic) not in here]
        if missing:
            admin.create_topics(
                {
                    layout.named(topic): {
                        "num_partitions": topic.partitions,
                        "replication_factor": layout.replicas,
                        "configs": layout.settings(topic),
                    }
                    for topic in missing
                },
                wait_for_metadata=True,
            )
        checked = tuple(_checked(layout, topic, _found(admin, layout), topic in missing) for topic in layout.topics())
    _refuse(checked)
    return checked


def check(server: KafkaServer, layout: Layout) -> tuple[Checked, ...]:
    """Every topic with what is wrong with it."""
    with _admin(server) as admin:
        here = _found(admin, layout)
    return tuple(_checked(layout, topic, here, was_made=False) for topic in layout.topics())


def require(server: KafkaServer, layout: Layout) -> None:
    """Nothing, if all is well. Raises `UnsafeSettings`: for whatever starts on these topics."""
    _refuse(check(server, layout))


def laid_out(server: KafkaServer, prefix: str, *, single_broker: bool = False) -> Layout:
    """The layout of the topics that exist, safe to start on. Raises `UnsafeSettings`."""
    asked = Layout(prefix=prefix, single_broker=single_broker)
    with _admin(server) as admin:
        here = _found(admin, asked)
    counts = {topic.name: here[asked.named(topic)].partitions for topic in asked.topics() if asked.named(topic) in here}
    layout = replace(asked, intakes=counts.get("documents", 0), frontiers=counts.get("placements", 0))
    _refuse(tuple(_checked(layout, topic, here, was_made=False) for topic in layout.topics()))
    return layout


def delete(server: KafkaServer, layout: Layout) -> None:
    """Delete the topics of this layout that exist, for tests; there is no command for it."""
    with _admin(server) as admin:
        here = _found(admin, layout)
        if here:
            admin.delete_topics(list(here))


def _refuse(checked: Sequence[Checked]) -> None:
    problems = tuple(problem for one in checked for problem in one.problems)
    if problems:
        raise UnsafeSettings(problems)


def _checked(layout: Layout, topic: Topic, here: Mapping[str, Found], was_made: bool) -> Checked:
    name = layout.named(topic)
    found = here.get(name)
    problems = tuple(_problems(layout, topic, name, found))
    return Checked(name, found.partitions if found else 0, was_made, problems)


def _problems(layout: Layout, topic: Topic, name: str, found: Found | None) -> Iterator[str]:
    if found is None:
        yield f"{name} does not exist; `stream-car topics apply` makes it"
        return
    if found.partitions != topic.partitions:
        yield (
            f"{name} has {found.partitions} partitions for life, not {topic.partitions} (--intakes, --frontiers); "
            "say that number, or use another --prefix"
        )
    if found.replicas < layout.replicas:
        yield (
            f"{name} has {found.replicas} replicas, it must have {layout.replicas}; "
            "--single-broker allows 1 where a lost disk may lose documents"
        )
    for setting, wanted in layout.settings(topic).items():
        value = found.settings.get(setting)
        if value is not None and not _is_enough(setting, value, wanted):
            yield f"{setting} of {name} is {value}; it must be {wanted}"


_AT_LEAST = frozenset({"min.insync.replicas", "max.message.bytes"})
_UNLIMITED = frozenset({"retention.ms", "retention.bytes"})


def _is_enough(setting: str, value: str, wanted: str) -> bool:
    if setting in _AT_LEAST:
        return int(value) >= int(wanted)
    if setting in _UNLIMITED and value != wanted:
        return value == "-1" or (wanted != "-1" and int(value) >= int(wanted))
    return value == wanted


def _found(admin: KafkaAdminClient, layout: Layout) -> dict[str, Found]:
    names = [layout.named(topic) for topic in layout.topics()]
    told = cast(Sequence[Mapping[str, object]], admin.describe_topics(names))
    here = [topic for topic in told if topic["error_code"] == 0]
    if not here:
        return {}
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic["name"]) for topic in here]
    settings = cast(
        Mapping[str, Mapping[str, Mapping[str, str]]],
        admin.describe_configs(asked, config_filter="all").get("topic", {}),
    )
    return {str(topic["name"]): _as_it_is(topic, settings.get(str(topic["name"]), {})) for topic in here}


def _as_it_is(topic: Mapping[str, object], settings: Mapping[str, Mapping[str, str]]) -> Found:
    partitions = cast(Sequence[Mapping[str, Sequence[int]]], topic["partitions"])
    replicas = min((len(partition["replica_nodes"]) for partition in partitions), default=0)
    return Found(len(partitions), replicas, {name: told["value"] for name, told in settings.items()})


@contextmanager
def _admin(server: KafkaServer) -> Iterator[KafkaAdminClient]:
    """A connection, and its errors in our words."""
    place = f"Kafka at {server.address}"
    try:
        options = {
            **server.options(),
            "request_timeout_ms": server.timeout_ms,
            "bootstrap_timeout_ms": server.timeout_ms,
        }
        with closing(KafkaAdminClient(**options)) as admin:
            yield admin
    except driver.InvalidReplicationFactorError as error:
        raise StreamCarError(
            f"{place} has too few brokers for {REPLICAS} copies of each record; --single-broker is for trying out"
        ) from error
    except driver.InvalidConfigurationError as error:
        raise StreamCarError(f"{place} refuses a topic: {_reason(error)}") from error
    except (
        driver.AuthenticationFailedError, driver.AuthorizationFailedError,
        driver.TopicAuthorizationFailedError, driver.ClusterAuthorizationFailedError,
    ) as error:  # fmt: skip
        raise StreamCarError(f"{place} refuses this user or password") from error
    except (driver.KafkaError, OSError) as error:
        raise Unavailable(f"{place} cannot be used now: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The sentence of the broker within the error's text."""
    text = str(error)
    said = text.partition("error_message='")[2].partition("', ")[0]
    return said or text or type(error).__name__

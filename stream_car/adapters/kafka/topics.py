"""Creates the topics and their key, and checks the settings without which a promise would break.

Promise: `apply` creates missing topics and changes no existing one: none is repartitioned, shrunk or deleted. `check`
names every setting that would lose, reorder or re-time records. What a topic inherits from its brokers counts as its
own setting.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from secrets import token_bytes
from typing import cast

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition, errors as driver
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import KEYS, REPLICAS, SIGNED, Layout, Topic
from stream_car.errors import StreamCarError, Unavailable, UnsafeSettings
from stream_car.processing.signatures import KEY_BYTES, Signatures, encode_signatures

COUNTED_BY = {"documents": "intakes", "changes": "frontiers", "placements": "frontiers"}  # the last one counts


class ExistingTopic(Struct, frozen=True):
    """A topic as it is on the server. `replicas` is the lowest number of replicas that one of its partitions has."""

    partitions: int
    replicas: int
    settings: Mapping[str, str]


class TopicCheck(Struct, frozen=True):
    """The result of checking a topic: whether it was created just now, and its problems."""

    name: str
    partitions: int
    created: bool
    problems: tuple[str, ...]


def apply(server: KafkaServer, layout: Layout) -> tuple[TopicCheck, ...]:
    """Create missing topics, and check all. Raises `UnsafeSettings` if an existing topic must not be used."""
    with _connect(server) as admin:
        existing = _existing_topics(admin, layout)
        missing = [topic for topic in layout.topics() if layout.full_name(topic) not in existing]
        if missing:
            admin.create_topics(
                {
                    layout.full_name(topic): {
                        "num_partitions": topic.partitions,
                        "replication_factor": layout.replicas,
                        "configs": layout.settings(topic),
                    }
                    for topic in missing
                },
                wait_for_metadata=True,
            )
            existing = _existing_topics(admin, layout)
        results = tuple(_check_topic(layout, topic, existing, topic in missing) for topic in layout.topics())
        _require_safe(results)
        _make_key(server, admin, layout)
    return results


def _make_key(server: KafkaServer, admin: KafkaAdminClient, layout: Layout) -> None:
    """Make the key of this installation, unless it has one. What is in its topics already is older than the key."""
    keys = layout.full_name(KEYS)
    if _end_offsets(admin, keys, 1) != (0,):
        return
    ends = {
        topic.name: _end_offsets(admin, layout.full_name(topic), topic.partitions)
        for topic in layout.topics()
        if topic.name in SIGNED
    }
    value = encode_signatures(Signatures(key=token_bytes(KEY_BYTES), ends=ends))
    with closing(KafkaProducer(**server.options(), acks="all", request_timeout_ms=server.timeout_ms)) as producer:
        producer.send(keys, value=value, partition=0).get(server.timeout_ms / 1000)


def _end_offsets(admin: KafkaAdminClient, topic: str, partitions: int) -> tuple[int, ...]:
    places = [TopicPartition(topic, partition) for partition in range(partitions)]
    offsets = admin.list_partition_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
    return tuple(int(offsets[place].offset) for place in places)


def check(server: KafkaServer, layout: Layout) -> tuple[TopicCheck, ...]:
    """Check every topic of the layout."""
    with _connect(server) as admin:
        existing = _existing_topics(admin, layout)
    return tuple(_check_topic(layout, topic, existing, is_new=False) for topic in layout.topics())


def require(server: KafkaServer, layout: Layout) -> None:
    """Check every topic before a process starts on them. Raises `UnsafeSettings`."""
    _require_safe(check(server, layout))


def read_layout(server: KafkaServer, prefix: str, *, single_broker: bool = False) -> Layout:
    """Return the layout of the existing topics, which are safe to start on. Raises `UnsafeSettings`."""
    layout = adopt_partitions(server, Layout(prefix=prefix, intakes=0, frontiers=0, single_broker=single_broker))
    require(server, layout)
    return layout


def adopt_partitions(server: KafkaServer, layout: Layout, names: Collection[str] = ("intakes", "frontiers")) -> Layout:
    """Return the layout with as many intakes and frontiers, if `names` has them, as existing topics have partitions."""
    with _connect(server) as admin:
        existing = _existing_topics(admin, layout)
    counts = {
        name: existing[layout.full_name(topic)].partitions
        for topic, name in COUNTED_BY.items()
        if name in names and layout.full_name(topic) in existing
    }
    return replace(layout, **counts)


def session_min_s(server: KafkaServer) -> float | None:
    """Return the shortest session timeout in seconds that all brokers accept; `None` if they do not tell this user."""
    with _connect(server) as admin:
        brokers = cast(Sequence[Mapping[str, object]], admin.describe_cluster()["brokers"])
        resources = [ConfigResource(ConfigResourceType.BROKER, str(broker["broker_id"])) for broker in brokers]
        try:
            described = admin.describe_configs(resources, config_filter="all")
        except driver.AuthorizationError:
            return None
    settings = cast(Mapping[str, Mapping[str, Mapping[str, str]]], described.get("broker", {}))
    name = "group.min.session.timeout.ms"
    values = [int(broker[name]["value"]) for broker in settings.values() if name in broker]
    return max(values) / 1000 if values and len(values) == len(resources) else None


def delete(server: KafkaServer, layout: Layout) -> None:
    """Delete the existing topics of this layout. For tests; there is no command for it."""
    with _connect(server) as admin:
        existing = _existing_topics(admin, layout)
        if existing:
            admin.delete_topics(list(existing))


def _require_safe(results: Sequence[TopicCheck]) -> None:
    problems = tuple(problem for result in results for problem in result.problems)
    if problems:
        raise UnsafeSettings(problems)


def _check_topic(layout: Layout, topic: Topic, existing: Mapping[str, ExistingTopic], is_new: bool) -> TopicCheck:
    name = layout.full_name(topic)
    current = existing.get(name)
    problems = tuple(_problems(layout, topic, name, current))
    return TopicCheck(name, current.partitions if current else 0, is_new, problems)


def _problems(layout: Layout, topic: Topic, name: str, current: ExistingTopic | None) -> Iterator[str]:
    if current is None:
        yield f"Topic {name} does not exist: create it with `stream-car topics apply`"
        return
    if current.partitions != topic.partitions:
        yield (
            f"Topic {name} has {current.partitions} partitions, not {topic.partitions}, and the number cannot change: "
            "use it with --intakes or --frontiers, or use another --prefix"
        )
    if current.replicas < layout.replicas:
        yield (
            f"Topic {name} has {current.replicas} replicas but must have {layout.replicas}: "
            "add replicas, or use --single-broker if documents may be lost with a disk"
        )
    for setting, required in layout.settings(topic).items():
        value = current.settings.get(setting)
        if value is not None and not _is_enough(setting, value, required):
            yield f"Set {setting} of topic {name} to {required} (it is {value})"


DENIED = driver.TopicAuthorizationFailedError.errno
_AT_LEAST = frozenset({"min.insync.replicas", "max.message.bytes"})
_UNLIMITED = frozenset({"retention.ms", "retention.bytes"})


def _is_enough(setting: str, value: str, required: str) -> bool:
    if setting in _AT_LEAST:
        return int(value) >= int(required)
    if setting in _UNLIMITED and value != required:
        return value == "-1" or (required != "-1" and int(value) >= int(required))
    return value == required


def _existing_topics(admin: KafkaAdminClient, layout: Layout) -> dict[str, ExistingTopic]:
    names = [layout.full_name(topic) for topic in layout.topics()]
    descriptions = cast(Sequence[Mapping[str, object]], admin.describe_topics(names))
    if denied := [str(topic["name"]) for topic in descriptions if topic["error_code"] == DENIED]:
        cure = "deploy/kafka/acls.sh has the rights of each role."
        raise StreamCarError(f"Kafka denies this user access to {', '.join(sorted(denied))}. {cure}")
    existing = [topic for topic in descriptions if topic["error_code"] == 0]
    if not existing:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic["name"]) for topic in existing]
    settings = cast(
        Mapping[str, Mapping[str, Mapping[str, str]]],
        admin.describe_configs(resources, config_filter="all").get("topic", {}),
    )
    return {str(topic["name"]): _existing_topic(topic, settings.get(str(topic["name"]), {})) for topic in existing}


def _existing_topic(topic: Mapping[str, object], settings: Mapping[str, Mapping[str, str]]) -> ExistingTopic:
    partitions = cast(Sequence[Mapping[str, Sequence[int]]], topic["partitions"])
    replicas = min((len(partition["replica_nodes"]) for partition in partitions), default=0)
    return ExistingTopic(len(partitions), replicas, {name: setting["value"] for name, setting in settings.items()})


@contextmanager
def _connect(server: KafkaServer) -> Iterator[KafkaAdminClient]:
    """Open a connection of kafka-python, and raise its errors as ours."""
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
            f"{place} has too few brokers for {REPLICAS} replicas of each record. Add brokers, or try out Stream-CAR "
            "with --single-broker."
        ) from error
    except driver.InvalidConfigurationError as error:
        raise StreamCarError(f"{place} rejected the settings of a topic: {_reason(error)}") from error
    except (driver.SaslAuthenticationFailedError, driver.AuthorizationError) as error:
        cure = "Check the user, the password and the permissions of the user."
        raise StreamCarError(f"{place} denied access. {cure}") from error
    except (driver.KafkaError, OSError) as error:
        raise Unavailable(f"{place} cannot be used now ({_reason(error)}). Try again later.") from error


def _reason(error: Exception) -> str:
    """Return the broker's own message within the text of an error."""
    text = str(error)
    message = text.partition("error_message='")[2].partition("', ")[0]
    return message or text or type(error).__name__

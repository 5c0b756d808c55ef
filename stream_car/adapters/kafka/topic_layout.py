"""The topics and the settings that they need. Loads no driver. `topics/` describes them for other programs."""

from msgspec import Struct

PREFIX = "streamcar"
KEYS = "keys"
SIGNED = frozenset({"documents", "placements", "changes", "rejected"})  # of documents, what a worker forwarded
PARTITIONS = 8
REPLICAS = 3
IN_SYNC = 2
MONTH_MS = 30 * 24 * 3600 * 1000
MESSAGE_BYTES = 1_048_588  # Kafka's own default
UNLIMITED = -1


class Topic(Struct, frozen=True, kw_only=True):
    """A topic. `about` says what it holds, `key` what its keys are, `placed` how a record's partition is chosen."""

    name: str
    about: str
    key: str
    placed: str
    partitions: int
    retention_ms: int = UNLIMITED
    max_message_bytes: int = MESSAGE_BYTES


class Layout(Struct, frozen=True, kw_only=True):
    """The topics of one installation. The numbers of partitions never change: others make another generation."""

    prefix: str = PREFIX
    intakes: int = PARTITIONS
    frontiers: int = PARTITIONS
    single_broker: bool = False

    @property
    def replicas(self) -> int:
        """The number of copies of each record."""
        return 1 if self.single_broker else REPLICAS

    def topics(self) -> tuple[Topic, ...]:
        """Return the topics, in the order in which a document passes through them, and that of keys."""
        return (
            Topic(
                name="documents",
                about="Documents as publishers sent them. Everything else can be rebuilt from this topic.",
                key="the document's id",
                placed="murmur2 of the key, as in Kafka's own clients; records placed otherwise are forwarded once",
                partitions=self.intakes,
            ),
            Topic(
                name="placements",
                about="Which document joins or leaves which scope: from intake shards to frontier shards.",
                key="the scope's name; marks have none",
                placed="CRC-32 of the scope",
                partitions=self.frontiers,
            ),
            Topic(
                name="changes",
                about="What entered and left the frontier of a scope, and why: for subscribers.",
                key="the scope's name",
                placed="the frontier shard's own partition",
                partitions=self.frontiers,
            ),
            Topic(
                name=KEYS,
                about="The key that signs what workers write for workers. Only they may read it, and query workers.",
                key="none",
                placed="one partition",
                partitions=1,
            ),
            Topic(
                name="rejected",
                about="Records that can never be accepted, with their key, bytes, coordinates and a reason code.",
                key="the rejected record's key",
                placed="one partition",
                partitions=1,
                retention_ms=MONTH_MS,
            ),
        )

    def full_name(self, topic: Topic | str) -> str:
        """Return the full name of a topic."""
        return f"{self.prefix}.{topic if isinstance(topic, str) else topic.name}"

    def settings(self, topic: Topic) -> dict[str, str]:
        """Return the settings without which a promise would break."""
        return {
            "cleanup.policy": "delete",  # compaction leaves holes and deletes older documents
            "retention.ms": str(topic.retention_ms),
            "retention.bytes": str(UNLIMITED),
            "message.timestamp.type": "LogAppendTime",  # the only clock that a fold has
            "min.insync.replicas": str(1 if self.single_broker else IN_SYNC),
            "unclean.leader.election.enable": "false",  # a stale leader would drop what was acknowledged
            "max.message.bytes": str(topic.max_message_bytes),
        }

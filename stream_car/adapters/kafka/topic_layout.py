"""The four topics, and what they must be like. Loads no driver; `topics/` shows the same for readers."""

from msgspec import Struct

PREFIX = "streamcar"
PARTITIONS = 8
REPLICAS = 3
IN_SYNC = 2
MONTH_MS = 30 * 24 * 3600 * 1000
MESSAGE_BYTES = 1_048_588  # Kafka's own default
UNLIMITED = -1


class Topic(Struct, frozen=True, kw_only=True):
    """What a topic holds. `placed` says which records come to lie in one partition."""

    name: str
    about: str
    key: str
    placed: str
    partitions: int
    retention_ms: int = UNLIMITED
    max_message_bytes: int = MESSAGE_BYTES


class Layout(Struct, frozen=True, kw_only=True):
    """The topics of one installation. The numbers of partitions are for life: others are another generation."""

    prefix: str = PREFIX
    intakes: int = PARTITIONS
    frontiers: int = PARTITIONS
    single_broker: bool = False

    @property
    def replicas(self) -> int:
        """How many copies of each record there are."""
        return 1 if self.single_broker else REPLICAS

    def topics(self) -> tuple[Topic, ...]:
        """All four, in the order in which a document passes through them."""
        return (
            Topic(
                name="documents",
                about="What publishers said: the record of acceptance, from which everything else can be rebuilt.",
                key="the document's id",
                placed="murmur2 of the key, as Kafka's own clients place it; others' records are forwarded once",
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
                about="What entered and left the frontier of a scope, and because of what: for subscribers.",
                key="the scope's name",
                placed="the frontier shard's own partition",
                partitions=self.frontiers,
            ),
            Topic(
                name="rejected",
                about="Records that can never be accepted, with their key, bytes, coordinates and a reason code.",
                key="as it came",
                placed="one partition",
                partitions=1,
                retention_ms=MONTH_MS,
            ),
        )

    def named(self, topic: Topic | str) -> str:
        """The topic's full name."""
        return f"{self.prefix}.{topic if isinstance(topic, str) else topic.name}"

    def settings(self, topic: Topic) -> dict[str, str]:
        """The settings without which a promise breaks."""
        return {
            "cleanup.policy": "delete",  # compaction leaves holes and forgets what was said
            "retention.ms": str(topic.retention_ms),
            "retention.bytes": str(UNLIMITED),
            "message.timestamp.type": "LogAppendTime",  # the only clock of a fold
            "min.insync.replicas": str(1 if self.single_broker else IN_SYNC),
            "unclean.leader.election.enable": "false",  # a stale leader would drop what was acknowledged
            "max.message.bytes": str(topic.max_message_bytes),
        }

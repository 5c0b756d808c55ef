"""Writes the files of this folder from the code: `python -m topics.build`. A test checks that they agree."""

import json
from pathlib import Path

import msgspec

from stream_car.adapters.kafka.journal import TYPES
from stream_car.adapters.kafka.topic_layout import KEYS, Layout, Topic
from stream_car.codec.json_scan import DEFAULT_LIMITS, GREATEST
from stream_car.codec.placements import PlacementRecord, WatermarkRecord
from stream_car.core.changes import FrontierChange

FOLDER = Path(__file__).parent
DIALECT = "https://json-schema.org/draft/2020-12/schema"

Json = dict[str, object]


def files() -> dict[str, str]:
    """Return the text of every file by its name."""
    schemas: dict[str, Json] = {
        "documents.schema.json": documents(),
        "placements.schema.json": of_type(PlacementRecord | WatermarkRecord, "A record of placements"),
        "changes.schema.json": of_type(FrontierChange, "A change of a frontier: the data of a CloudEvent"),
        "asyncapi.json": asyncapi(Layout()),
    }
    return {name: json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in schemas.items()}


def of_type(kind: object, title: str) -> Json:
    """Return the schema of a message type. Times are microseconds since 1970, UTC.

    Consumers must accept fields that a later release adds, so the schema is open although Stream-CAR's own reader is
    not.
    """
    schema = msgspec.json.schema(kind)
    for definition in schema["$defs"].values():
        definition.pop("additionalProperties", None)
    return {"$schema": DIALECT, "title": title, **schema}


def documents() -> Json:
    """Return the schema of what a publisher may send.

    The decoder is stricter than a schema can be, for example about sizes in bytes, characters and links.
    """
    name: Json = {"type": "string", "minLength": 1, "maxLength": DEFAULT_LIMITS.id}
    scope_value: Json = {"type": "string", "minLength": 1, "maxLength": DEFAULT_LIMITS.scope_value}
    integer: Json = {"type": "integer", "minimum": -GREATEST, "maximum": GREATEST}
    revision: Json = {"type": "integer", "minimum": 1, "maximum": GREATEST}
    values: Json = {"oneOf": [scope_value, {"type": "array", "items": scope_value, "minItems": 1}]}
    part: Json = {"type": "object", "propertyNames": name, "additionalProperties": values}
    links: Json = {"type": "array", "items": name, "maxItems": DEFAULT_LIMITS.links}
    time: Json = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$"}
    text: Json = {"type": "string"}
    line = text | {"maxLength": DEFAULT_LIMITS.line}
    fields: Json = {
        "id": name | {"description": "The publisher's id. If the record has a key, the key is this id."},
        "type": name | {"description": "One of a rule pack's types."},
        "time": time | {"description": "When it takes effect: RFC 3339, or a day, which means midnight UTC."},
        "order": integer | {"description": "The publisher's own tie-breaker within one time."},
        "revision": revision | {"description": "The number of a correction: a higher one replaces a lower one."},
        "scope": {"oneOf": [part, {"type": "array", "items": part}], "description": "The entities that it is about."},
        "supersedes": links,
        "superseded_by": links,
        "amends": links,
        "attributes": {"type": "object"},
        "title": line,
        "text": text | {"maxLength": DEFAULT_LIMITS.text},
        "source": line,
        "url": line,
        "retracted": {"const": False},
        "v": {"const": 1},
    }
    document: Json = {"type": "object", "required": ["id", "type", "time"], "properties": fields}
    retraction: Json = {
        "type": "object",
        "required": ["id", "retracted"],
        "properties": {"id": name, "revision": revision, "retracted": {"const": True}},
    }
    envelope: Json = {
        "type": "object",
        "required": ["specversion", "data"],
        "properties": {"specversion": {"const": "1.0"}, "data": {"type": "object"}},
    }
    return {
        "$schema": DIALECT,
        "title": "What a publisher sends: a document, its retraction, or either in a CloudEvent",
        "description": "A null value with a key retracts the revision stored then. Unknown fields are attributes.",
        "oneOf": [{"$ref": "#/$defs/document"}, {"$ref": "#/$defs/retraction"}, {"$ref": "#/$defs/envelope"}],
        "$defs": {
            "document": document | {"not": {"required": ["specversion", "data"]}},
            "retraction": retraction,
            "envelope": envelope,
        },
    }


def asyncapi(layout: Layout) -> Json:
    """Return the AsyncAPI 3.0 description, with the settings of the topics in the bindings for Kafka."""
    topics = layout.topics()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Stream-CAR on Kafka",
            "version": "1",
            "description": "Documents in, changes of frontiers out. Made by `python -m topics.build`.",
        },
        "channels": {topic.name: _channel(layout, topic) for topic in topics},
        "operations": {
            "publish": {"action": "receive", "channel": {"$ref": "#/channels/documents"}},
            "subscribe": {"action": "send", "channel": {"$ref": "#/channels/changes"}},
            "reject": {"action": "send", "channel": {"$ref": "#/channels/rejected"}},
        },
    }


def _channel(layout: Layout, topic: Topic) -> Json:
    settings = layout.settings(topic)
    configuration: Json = {
        "cleanup.policy": [settings["cleanup.policy"]],
        **{name: int(settings[name]) for name in ("retention.ms", "retention.bytes", "max.message.bytes")},
    }
    return {
        "address": layout.full_name(topic),
        "description": f"{topic.about} Key: {topic.key}. Partition: {topic.placed}.",
        "messages": {topic.name: _message(topic)},
        "bindings": {
            "kafka": {
                "topic": layout.full_name(topic),
                "partitions": topic.partitions,
                "replicas": layout.replicas,
                "topicConfiguration": configuration,
                "bindingVersion": "0.5.0",
            }
        },
        "x-kafka-settings": settings,
    }


def _message(topic: Topic) -> Json:
    if topic.name == KEYS:
        return {"summary": "Stream-CAR's own. The first record counts.", "contentType": "application/json"}
    if topic.name == "rejected":
        return {"summary": "The bytes as they were received.", "headers": {"type": "object", "properties": _REJECTED}}
    message: Json = {
        "contentType": "application/json",
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": {"$ref": f"./{topic.name}.schema.json"},
        },
    }
    kind = TYPES.get(topic.name)
    if kind is not None:
        message["headers"] = {
            "type": "object",
            "description": "CloudEvents 1.0, binary mode; the id is generation/shard/number.",
            "properties": {
                "ce_specversion": {"const": "1.0"},
                "ce_id": {"type": "string"},
                "ce_source": {"type": "string"},
                "ce_subject": {"type": "string", "description": "The scope."},
                "ce_type": {"const": kind.decode()},
            },
        }
    return message


_REJECTED: Json = {
    "stream-car-code": {"type": "string", "description": "A stable reason code."},
    "stream-car-reason": {"type": "string", "description": "A sentence that says what is wrong."},
    "stream-car-id": {"type": "string", "description": "The document's id, if it could be read."},
    "stream-car-partition": {"type": "string", "description": "The partition of the topic `documents` that holds it."},
    "stream-car-offset": {"type": "string", "description": "The offset in that partition."},
}


if __name__ == "__main__":
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")

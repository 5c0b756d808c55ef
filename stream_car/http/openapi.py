"""The description of the service, OpenAPI 3.1, made from the message types.

Promise: what it says of a message is what the types say; nothing is written twice. In answers every
field is there, and times are texts, as `api.plain` writes them.
"""

from collections.abc import Mapping, Sequence
from typing import get_args, get_origin

import msgspec

from stream_car.api import messages as m
from stream_car.api.json import PAIRS, TIMES
from stream_car.http.bodies import EVENT, EVENTS, JSON, LINES
from stream_car.http.problems import MEDIA_TYPE, TITLES
from stream_car.http.routes import OPERATIONS, Operation
from stream_car.queries import answers as a
from stream_car.subscriptions import events as s

Tree = dict[str, object]
EVENTS_TOLD = (
    ("snapshot-begin", s.SnapshotBegin),
    ("snapshot (view=document)", s.ActiveDocument),
    ("snapshot (view=scope)", s.ScopeState),
    ("snapshot-end", s.SnapshotEnd),
    ("change (view=document)", s.DocumentChange),
    ("change (view=scope)", a.Told),
    ("reset", s.Reset),
)
REF = "#/components/schemas/{name}"
TIME: Tree = {"type": "string", "format": "date-time"}
ANY_BYTES: Tree = {
    "description": "The bytes as text; where they are none, in base64.",
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"base64": {"type": "string", "contentEncoding": "base64"}}},
    ],
}
PLACE: Tree = {
    "type": "object",
    "properties": {"time": TIME, "order": {"type": "integer"}},
    "required": ["time", "order"],
}
DOCUMENT: Tree = {
    "type": "object",
    "description": "A document as its publisher sends it, or a retraction; see docs/concepts.md. "
    "A bad one is refused with a code and kept.",
    "examples": [{"id": "a-1", "type": "advisory", "time": "2024-01-31T09:30:00Z", "scope": {"package": ["lodash"]}}],
}


def describe(version: str) -> Tree:
    """The whole description."""
    requests = {operation.takes for operation in OPERATIONS if operation.method == "POST"}
    answers = [operation.answers for operation in OPERATIONS]
    _, asked = msgspec.json.schema_components(sorted(requests, key=str), ref_template=REF)
    _, told = msgspec.json.schema_components(
        [*answers, *(kind for _, kind in EVENTS_TOLD), m.Receipts, m.Problem], ref_template=REF
    )
    schemas = {**{name: _answered(schema) for name, schema in told.items()}, **asked, "Document": DOCUMENT}
    paths: dict[str, Tree] = {"/v1/documents": {"post": _publish()}}
    paths["/v1/subscribe"] = {"get": _subscribe()}
    for operation in OPERATIONS:
        path = operation.path.replace(":anything", "")
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stream-CAR",
            "version": version,
            "description": "Publish documents, and ask which are in force.",
        },
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _answered(schema: Mapping[str, object]) -> Tree:
    """A schema of an answer: all fields are there; times, places and bytes are as `plain` writes them."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return dict(schema)
    changed = {name: _field(name, said) for name, said in properties.items()}
    return {**schema, "properties": changed, "required": list(changed)}


def _field(name: str, said: object) -> object:
    if not isinstance(said, dict):
        return said
    if name in TIMES:
        return {"anyOf": [TIME, {"type": "null"}]} if "anyOf" in said else TIME
    if name in PAIRS and said.get("type") == "array":
        return PLACE
    if said.get("contentEncoding") == "base64":
        return ANY_BYTES
    return {key: value for key, value in said.items() if key != "default"}


def _operation(operation: Operation) -> Tree:
    said: Tree = {
        "operationId": operation.name,
        "summary": operation.summary.split("\n", 1)[0],
        "responses": _responses(operation.answers, operation.statuses),
    }
    if operation.method == "POST":
        said["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": {"$ref": REF.format(name=operation.takes.__name__)}}},
        }
        return said
    parameters = _parameters(operation.takes)
    if "{id" in operation.path:
        parameters.insert(
            0, {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        )
    if parameters:
        said["parameters"] = parameters
    return said


def _parameters(kind: type[msgspec.Struct]) -> list[object]:
    _, components = msgspec.json.schema_components([kind])
    schema = components[kind.__name__]
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _present(said)}
        for name, said in schema["properties"].items()
    ]


def _present(said: Tree) -> Tree:
    """A parameter is there or not; it is never null."""
    options = said.get("anyOf")
    if not isinstance(options, list):
        return said
    [only] = [option for option in options if option != {"type": "null"}]
    return {**only}


def _publish() -> Tree:
    line: Tree = {"type": "string", "description": "One document a line."}
    document: Tree = {"$ref": REF.format(name="Document")}
    many: Tree = {"type": "array", "items": {"description": "A document; what is none has a receipt that says so."}}
    refused = _problem(422)
    return {
        "operationId": "publish",
        "summary": "Keep documents durably and apply them; a receipt for each, in order.",
        "description": "One refused document answers 422; of many each has its receipt. What is refused is kept.",
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"anyOf": [document, many]}},
                LINES: {"schema": line},
                EVENT: {"schema": document},
                EVENTS: {"schema": many},
            },
        },
        "responses": {**_responses(m.Receipts, (400, 408, 413, 415, 503)), "422": refused},
    }


def _subscribe() -> Tree:
    events = {"type": "string", "description": "Events; the data of each is the JSON of one of the `events` below."}
    told = {name: {"$ref": REF.format(name=kind.__name__)} for name, kind in EVENTS_TOLD}
    header: Tree = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "The cursor of the last event heard; goes before `min_revisions`.",
        "schema": {"type": "string", "maxLength": 200},
    }
    stream = {"description": "The stream.", "content": {"text/event-stream": {"schema": events}}, "x-events": told}
    return {
        "operationId": "subscribe",
        "summary": "What is in force now, then every change of it, as server-sent events.",
        "parameters": [*_parameters(m.Subscribe), header],
        "responses": {**_responses(m.Receipts, (400, 409, 429, 503)), "200": stream},
    }


def _responses(answers: object, statuses: Sequence[int]) -> Tree:
    return {
        "200": {"description": "The answer.", "content": {JSON: {"schema": _schema(answers)}}},
        **{str(status): _problem(status) for status in sorted({*statuses, 401, 421})},
    }


def _problem(status: int) -> Tree:
    return {
        "description": TITLES[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(name="Problem")}}},
    }


def _schema(answers: object) -> Tree:
    if get_origin(answers) is tuple:
        return {"type": "array", "items": _schema(get_args(answers)[0])}
    return {"$ref": REF.format(name=getattr(answers, "__name__", ""))}

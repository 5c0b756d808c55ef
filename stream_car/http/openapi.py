"""The description of the service, OpenAPI 3.1, made from the types of requests and answers.

Promise: the description agrees with the types. Every field of an answer is required, because it is always there.
"""

from collections.abc import Mapping, Sequence
from typing import get_args, get_origin

import msgspec

from stream_car.api import requests as r
from stream_car.api.operations import (
    BODY,
    OPERATIONS,
    PATH_FIELD,
    PUBLISH_PATH,
    PUBLISH_ROLE,
    SUBSCRIBE_PATH,
    SUBSCRIBE_ROLE,
    Operation,
    Role,
)
from stream_car.http.bodies import EVENT, EVENTS, JSON, LINES
from stream_car.http.problems import MEDIA_TYPE, TITLES, Problem
from stream_car.queries.answers import Published
from stream_car.subscriptions import events as e

Tree = dict[str, object]
EVENT_TYPES = get_args(e.Event)
REF = "#/components/schemas/{name}"
SECURITY = "A token with the role that the operation names; `admin` includes the others. See docs/reference/http.md."
DOCUMENT: Tree = {
    "type": "object",
    "description": "A document as its publisher sends it, or a retraction; see docs/concepts.md. A bad one is rejected "
    "with a code and kept.",
    "examples": [{"id": "a-1", "type": "advisory", "time": "2024-01-31T09:30:00Z", "scope": {"package": ["lodash"]}}],
}


def describe(version: str) -> Tree:
    """Return the whole description."""
    requests: list[type[object]] = [op.request for op in OPERATIONS if op.method == "POST"]
    requests.append(r.Subscribe)
    answers = [r.answer_type(operation.request) for operation in OPERATIONS]
    _, request_schemas = msgspec.json.schema_components(requests, ref_template=REF)
    _, answer_schemas = msgspec.json.schema_components([*answers, *EVENT_TYPES, Published, Problem], ref_template=REF)
    schemas = {
        **{name: _complete(schema) for name, schema in answer_schemas.items()},
        **request_schemas,
        "Document": DOCUMENT,
    }
    paths: dict[str, Tree] = {PUBLISH_PATH: {"post": _publish()}, SUBSCRIBE_PATH: _subscribe()}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
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
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": SECURITY}},
        },
    }


def _complete(schema: Mapping[str, object]) -> Tree:
    """Return the schema of an answer: every field is there, so that a reader need not know defaults."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return dict(schema)
    fields = {name: _without_default(field) for name, field in properties.items()}
    return {**schema, "properties": fields, "required": list(fields)}


def _without_default(field: object) -> object:
    return {key: value for key, value in field.items() if key != "default"} if isinstance(field, dict) else field


def _operation(operation: Operation) -> Tree:
    summary, _, details = operation.description.partition("\n")
    tree: Tree = {
        "operationId": operation.name,
        "summary": summary,
        "security": _security(operation.role, needs_token=operation.needs_token),
        "responses": _responses(r.answer_type(operation.request), operation.statuses),
    }
    if details.strip():
        tree["description"] = details.strip()
    if operation.method == "POST":
        tree["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": {"$ref": REF.format(name=operation.request.__name__)}}},
        }
    elif parameters := _parameters(operation.request, in_path=operation.has_path_field):
        tree["parameters"] = parameters
    return tree


def _security(role: Role, *, needs_token: bool = False) -> list[object]:
    """Return who may call an operation: a token with the role, and anybody if the service has no tokens."""
    required: Tree = {"token": [role]}
    return [required] if needs_token else [{}, required]


def _parameters(kind: type[msgspec.Struct], *, in_path: bool = False) -> list[object]:
    _, components = msgspec.json.schema_components([kind])
    schema = components[kind.__name__]
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "path" if in_path and name == PATH_FIELD else "query",
            "required": name in required,
            "schema": _present(field),
        }
        for name, field in schema["properties"].items()
    ]


def _present(field: Tree) -> Tree:
    """A parameter is there or not; it is never null."""
    options = field.get("anyOf")
    if not isinstance(options, list):
        return field
    [only] = [option for option in options if option != {"type": "null"}]
    return {**only}


def _publish() -> Tree:
    line: Tree = {"type": "string", "description": "One document per line."}
    document: Tree = {"$ref": REF.format(name="Document")}
    many: Tree = {"type": "array", "items": {"description": "A document; anything else gets a receipt that says so."}}
    return {
        "operationId": "publish",
        "security": _security(PUBLISH_ROLE),
        "parameters": _parameters(r.PublishOptions),
        "summary": "Store documents durably and apply them; the receipts are in order.",
        "description": "One rejected document answers 422; of many, each has its receipt. Rejected input is kept. "
        "With `strict`, all documents are stored or none: then any problem answers 422, and `problems` lists them.",
        "requestBody": {
            "required": True,
            "content": {
                JSON: {"schema": {"anyOf": [document, many]}},
                LINES: {"schema": line},
                EVENT: {"schema": document},
                EVENTS: {"schema": many},
            },
        },
        "responses": {**_responses(Published, (400, *BODY, 503)), "422": _problem(422)},
    }


def _subscribe() -> Tree:
    stream: Tree = {
        "description": "The stream.",
        "content": {
            "text/event-stream": {
                "schema": {
                    "type": "string",
                    "description": "Events; the data of each is the JSON of the type under `x-events`.",
                }
            }
        },
        "x-events": {str(kind.__struct_config__.tag): {"$ref": REF.format(name=kind.__name__)} for kind in EVENT_TYPES},
    }
    header: Tree = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "The cursor of the last event received; it overrides `after`.",
        "schema": {"type": "string", "maxLength": r.CURSOR_MAX},
    }
    both: Tree = {
        "security": _security(SUBSCRIBE_ROLE),
        "summary": "Stream what is in force now, then every change of it, as server-sent events.",
    }
    statuses = (400, 409, 429, 503)
    body: Tree = {"required": True, "content": {JSON: {"schema": {"$ref": REF.format(name=r.Subscribe.__name__)}}}}
    return {
        "get": {
            "operationId": "subscribe",
            **both,
            "parameters": [*_parameters(r.Subscribe), header],
            "responses": {**_responses(Published, statuses), "200": stream},
        },
        "post": {
            "operationId": "subscribe_to_many",
            **both,
            "description": "The same for a selection that is too long for an address.",
            "parameters": [header],
            "requestBody": body,
            "responses": {**_responses(Published, (*statuses, *BODY)), "200": stream},
        },
    }


def _responses(answer: object, statuses: Sequence[int]) -> Tree:
    return {
        "200": {"description": "The answer.", "content": {JSON: {"schema": _schema(answer)}}},
        **{str(status): _problem(status) for status in sorted({*statuses, 401, 403, 421})},
    }


def _problem(status: int) -> Tree:
    return {
        "description": TITLES[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF.format(name=Problem.__name__)}}},
    }


def _schema(answer: object) -> Tree:
    if get_origin(answer) is tuple:
        return {"type": "array", "items": _schema(get_args(answer)[0])}
    return {"$ref": REF.format(name=getattr(answer, "__name__", ""))}

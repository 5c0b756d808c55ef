"""Decode requests to the service from a JSON body or from URL parameters, and check those that a program builds.

Promise: each text gets one verdict, and the only exception is `InvalidRequest`. If a field is at fault, its name is
the code. Library and service check the same types in the same way: `check_request` writes a request as JSON and decodes
it. Only the limits differ whose `Meta` has another number `IN_LIBRARY`. Cost: about 10 microseconds to decode a small
request, and about 2 to check it.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import index
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from stream_car.codec.expectations import expected, hints_of, must_be, options_of, shown, split_hint
from stream_car.codec.json_scan import Limits, parse
from stream_car.codec.times import from_micros, parse_time
from stream_car.errors import InvalidDocument, InvalidRequest

LIMITS = Limits(document=4 << 20, depth=8, nodes=20_000)

IN_LIBRARY = "in_library"  # the limit of a single program, in `Meta.extra`, where it is not that of the service

S = TypeVar("S", bound=Struct)
_PLACE = re.compile(r" - at `\$\.(.*)`$")
_FIELD = re.compile(r"(required|unknown) field `([^`]*)`")
_STEP = re.compile(r"[^.\[\]]+")
_MISSING = object()


def read_request(body: bytes, request_type: type[S], limits: Limits = LIMITS) -> S:
    """Return the request in a JSON body."""
    try:
        tree = parse(body, limits)
    except InvalidDocument as error:
        raise InvalidRequest(error.code, f"The body cannot be read. {error.reason}") from None
    return _convert(tree, request_type, strict=True)


def read_parameters(parameters: Sequence[tuple[str, str]], request_type: type[S]) -> S:
    """Return the request in the parameters of a URL. A parameter may repeat if it is a tuple in `request_type`."""
    hints = get_type_hints(request_type)
    tree: dict[str, Any] = {}
    for name, value in parameters:
        if name in hints and _is_list(hints[name]):
            tree.setdefault(name, []).append(value)
        elif name in tree:
            raise InvalidRequest(name, f"`{name}` is given twice. Give it once.")
        else:
            tree[name] = value
    return _convert(tree, request_type, strict=False)


def check_request(request: S) -> S:
    """Return a request that a program built, as the service would receive it.

    Raises:
        InvalidRequest: a field has a value that its type does not accept.
    """
    kind = type(request)
    decoder = _library_decoder(kind)
    try:
        accepted = decoder.decode(_encode(request))
    except msgspec.ValidationError as error:
        raise _invalid(str(error), request, decoder.type) from None
    except UnicodeEncodeError:
        raise InvalidRequest("encoding", "A string contains half a surrogate pair. Send whole characters.") from None
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise _not_json(request, decoder.type) from None
    return accepted if decoder.type is kind else kind(**{name: getattr(accepted, name) for name in _names(kind)})


def _plain(value: object) -> object:
    """Return a string or an integer of another class, such as one of NumPy, as JSON has it."""
    return str.__str__(value) if isinstance(value, str) else index(value)  # type: ignore[arg-type]  # or a TypeError


_encode = msgspec.json.Encoder(enc_hook=_plain).encode


def _is_list(hint: Any) -> bool:
    return get_origin(hint) is tuple or any(_is_list(part) for part in get_args(hint) if get_origin(hint) is not tuple)


def _convert(tree: Mapping[str, Any], request_type: type[S], *, strict: bool) -> S:
    times = {
        name: _parse_time(name, tree[name]) for name in _time_fields(request_type) if isinstance(tree.get(name), str)
    }
    try:
        return msgspec.convert({**tree, **times} if times else tree, request_type, strict=strict)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), tree, request_type) from None


@cache
def _time_fields(request_type: type[Struct]) -> tuple[str, ...]:
    return tuple(name for name, hint in get_type_hints(request_type).items() if datetime in get_args(hint))


def _parse_time(name: str, text: str) -> datetime:
    """Return the time in a request, by the grammar of the times in documents."""
    try:
        return from_micros(parse_time(text))
    except ValueError as error:
        raise InvalidRequest(name, f"`{name}` is not a time. {error}") from None


# Limits of a program


def _names(kind: type[Struct]) -> tuple[str, ...]:
    return kind.__struct_fields__


@cache
def _library_decoder(kind: type[Struct]) -> Any:
    """Return the decoder of a type of request with the limits of a program."""
    hints = {name: hint for name, hint in hints_of(kind).items() if name in _names(kind)}
    relaxed = {name: _relaxed(hint) for name, hint in hints.items()}
    if relaxed == hints:
        return msgspec.json.Decoder(kind)
    fields = [
        (field.name, relaxed[field.name], *([] if field.default is msgspec.NODEFAULT else [field.default]))
        for field in msgspec.structs.fields(kind)
    ]
    return msgspec.json.Decoder(
        msgspec.defstruct(kind.__name__, fields, kw_only=True, frozen=True, forbid_unknown_fields=True)
    )


def _relaxed(hint: Any) -> Any:
    """Return a type with the limits `IN_LIBRARY`, where it has such."""
    inner, metas = split_hint(hint)
    options = options_of(inner)
    if len(options) > 1:
        inner = Union[tuple(_relaxed(option) for option in options)]  # noqa: UP007  made of values
    elif get_origin(inner) is tuple:
        inner = tuple[_relaxed(get_args(inner)[0]), ...]  # type: ignore[misc]  # made of values
    for meta in metas:
        inner = Annotated[inner, _relaxed_meta(meta)]
    return inner


def _relaxed_meta(meta: Meta) -> Meta:
    if not meta.extra or IN_LIBRARY not in meta.extra:
        return meta
    names = ("ge", "le", "min_length", "max_length", "pattern", "examples")
    values: dict[str, Any] = {name: getattr(meta, name) for name in names if getattr(meta, name) is not None}
    values.update({name: meta.extra[IN_LIBRARY] for name in ("le", "max_length") if name in values})
    relaxed: Meta = Meta(**values)
    return relaxed


# Sentences


def _invalid(message: str, request: object, kind: type[Struct]) -> InvalidRequest:
    """Return the error that the message of msgspec means: the field, what it must be, and what it was."""
    match = _PLACE.search(message)
    place = match.group(1) if match else ""
    first = _STEP.match(place)
    field = _FIELD.search(message)
    if field is not None:
        problem, name = field.groups()
        inside = f" in `{place}`" if place else ""
        if problem == "unknown":
            return InvalidRequest("field", f"There is no `{name}`{inside or ' here'}. {_allowed_fields(kind, place)}")
        return InvalidRequest("field" if place else name, f"`{name}` is missing{inside}.")
    if first is None:
        return InvalidRequest("field", f"{message}.")
    hint, value = _at(place, request, kind)
    return InvalidRequest(first.group(), must_be(place, expected(hint, value), value))


def _not_json(request: Struct, kind: type[Struct]) -> InvalidRequest:
    """Return the error about the first field that cannot be written as JSON."""
    for name, hint in hints_of(kind).items():
        value = getattr(request, name)
        try:
            _encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            if isinstance(value, list | tuple) and value:
                return InvalidRequest(name, f"`{name}` has a member that cannot be sent: {_member(value, error)}.")
            return InvalidRequest(name, must_be(name, expected(hint, value), value))
    raise AssertionError("Every field can be encoded, but not the request.")


def _member(values: Sequence[object], error: Exception) -> str:
    for value in values:
        try:
            _encode(value)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return shown(value)
    return str(error)


def _at(place: str, request: object, kind: Any) -> tuple[Any, object]:
    """Return the type and the value of what a path such as `min_revisions[0].revision` names."""
    hint, value = kind, request
    for step in _STEP.findall(place):
        if step.isdecimal():
            hint = next(
                get_args(option)[0] for option in map(_bare, options_of(_bare(hint))) if get_origin(option) is tuple
            )
            value = value[int(step)] if isinstance(value, list | tuple) else _MISSING
        else:
            owner = next(option for option in map(_bare, options_of(_bare(hint))) if step in _fields(option))
            hint = hints_of(owner)[step]
            value = value.get(step) if isinstance(value, Mapping) else getattr(value, step, _MISSING)
    return hint, value


def _bare(hint: Any) -> Any:
    return split_hint(hint)[0]


def _fields(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "__struct_fields__", ())


def _allowed_fields(kind: type[Struct], place: str) -> str:
    fields = _fields(next(map(_bare, _structs_at(place, kind))))
    if not fields:
        return "This request has no fields."
    scope = " Give a scope as scope=KEY=VALUE." if "scope" in fields else ""
    return f"The fields are {', '.join(fields)}.{scope}"


def _structs_at(place: str, kind: type[Struct]) -> Sequence[Any]:
    hint, _ = _at(place, {}, kind)
    return [option for option in map(_bare, options_of(_bare(hint))) if _fields(option) or option is kind]

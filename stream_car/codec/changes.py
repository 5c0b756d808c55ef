"""Changes of frontiers as bytes: JSON for topics, and arrays without names for a state that is kept beside its log.

Promise: both forms give back an equal change. The packed one leaves out the scope, which is the key of its emission,
and takes about 40 % of the bytes of JSON. `decode_change` reads both. Cost: one microsecond or two.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from stream_car.core.changes import Cause, Ended, FrontierChange, Member, Run

Kind = Literal["placed", "corrected", "moved", "retracted", "released"]
Why = Ended | Literal["holds"]


class _Cause(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    id: str
    revision: int
    title: str = ""
    source: str = ""
    kind: Kind = "placed"
    url: str = ""


class _Member(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    id: str | None  # `None`: that of the cause
    revision: int
    type: str = ""
    time: int = 0
    order: int = 0
    elsewhere: int = 0
    why: Why = "holds"
    rule: str = ""


class _Run(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    type: str
    start: tuple[int, int]
    end: tuple[int, int]
    count: int
    why: Why
    rule: str
    including: tuple[str, ...] | None
    excluding: tuple[tuple[str, ...], ...]


class _Change(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    seq: int
    offset: int
    cause: _Cause
    entered: tuple[_Member, ...] = ()
    left: tuple[_Member, ...] = ()
    entered_runs: tuple[_Run, ...] = ()
    left_runs: tuple[_Run, ...] = ()


encode_change = msgspec.json.Encoder(order="deterministic").encode
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(_Change).decode
_decode = msgspec.json.Decoder(FrontierChange).decode


def pack_change(change: FrontierChange) -> bytes:
    """Return the packed form of a change. Fields at the end of a list that have their default are left out."""
    cause, name = change.cause, change.cause.id
    head: tuple[object, ...] = cause.id, cause.revision, cause.title, cause.source
    if cause.kind != "placed" or cause.url:
        head += cause.kind, cause.url
    values: tuple[object, ...] = (
        change.seq,
        change.offset,
        head,
        [_pack_member(member, name) for member in change.entered],
        [_pack_member(member, name) for member in change.left],
    )
    if change.entered_runs or change.left_runs:
        values += [_pack_run(run) for run in change.entered_runs], [_pack_run(run) for run in change.left_runs]
    return _pack(values)


def _pack_member(member: Member, cause: str) -> tuple[object, ...]:
    name = member.id if member.id != cause else None
    values = name, member.revision, member.type, member.time
    if member.order or member.elsewhere or member.rule or member.why != "holds":
        return *values, member.order, member.elsewhere, member.why, member.rule
    return values


def _pack_run(run: Run) -> _Run:
    return _Run(run.type, run.start, run.end, run.count, run.why, run.rule, run.including, run.excluding)


def decode_change(key: bytes, value: bytes) -> FrontierChange:
    """Return the change in the value of an emission under this key.

    Raises:
        msgspec.DecodeError: the value is neither form.
    """
    if value.startswith(b"{"):
        return _decode(value)
    packed = _unpack(value)
    cause = packed.cause
    return FrontierChange(
        scope=key.decode(),
        seq=packed.seq,
        cause=Cause(
            id=cause.id,
            revision=cause.revision,
            kind=cause.kind,
            title=cause.title,
            url=cause.url,
            source=cause.source,
        ),
        offset=packed.offset,
        entered=tuple([_member(member, cause.id) for member in packed.entered]),
        left=tuple([_member(member, cause.id) for member in packed.left]),
        entered_runs=tuple([_run(run) for run in packed.entered_runs]),
        left_runs=tuple([_run(run) for run in packed.left_runs]),
    )


def _member(packed: _Member, cause: str) -> Member:
    return Member(
        id=packed.id if packed.id is not None else cause,
        revision=packed.revision,
        type=packed.type,
        time=packed.time,
        order=packed.order,
        elsewhere=packed.elsewhere,
        why=packed.why,
        rule=packed.rule,
    )


def _run(packed: _Run) -> Run:
    return Run(
        type=packed.type,
        start=packed.start,
        end=packed.end,
        count=packed.count,
        why=packed.why,
        rule=packed.rule,
        including=packed.including,
        excluding=packed.excluding,
    )

"""What the integrations pass on: documents in force, each with everything that an answer says about it.

Promise: nothing that is superseded, retracted or not in effect yet is passed on as if it held. The metadata of a
document is JSON and complete: its status, outcome, path, scope and the certificate of the answer. Cost: a question is
one `query`; a repair is one `resolve` and one `check`, however many hits there are.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from stream_car.api.arguments import ScopeArgument
from stream_car.api.calls import Calls
from stream_car.local.engine import Engine
from stream_car.queries import answers as a

_log = logging.getLogger("stream_car")
_locks: WeakKeyDictionary[Engine, Lock] = WeakKeyDictionary()

Metadata = dict[str, object]
Unknown = Literal["drop", "keep"]  # what becomes of a hit that was never published here
OF_THE_DOCUMENT = ("id", "type", "time", "order", "revision", "title", "source", "url", "scope", "attributes")


class Passage(Struct, frozen=True, kw_only=True):
    """A document to pass on, in place of the hit with the number `hit`. If that hit stays, the text is what amends it.

    `about` describes the document, and `verdict` says what holds of it.
    """

    text: str
    about: Metadata
    verdict: Metadata
    score: float = 0.0
    hit: int = 0
    stays: bool = False

    @property
    def id(self) -> str:
        """The id of the document."""
        return str(self.about["id"])

    def metadata(self, own: Mapping[str, object]) -> Metadata:
        """Return the metadata, with what the hit has of its `own`, which is overruled only in what holds."""
        return {**self.about, **own, **self.verdict}


@contextmanager
def taking_turns(calls: Calls) -> Iterator[None]:
    """Lend an engine to one thread at a time, because frameworks call from several. A client needs no turns."""
    if not isinstance(calls, Engine):
        yield
        return
    with _locks.setdefault(calls, Lock()):
        yield


def ask(
    calls: Calls, question: str, *, k: int, as_of: datetime | str | None = None, scope: ScopeArgument | None = None
) -> list[Passage]:
    """Return the documents in force for a question, best first."""
    with taking_turns(calls):
        answer = calls.query(question, k=k, as_of=as_of, scope=scope, include=["attributes"])
    certificate = _plain(answer.certificate)
    ways = {control.document.id: (group, control) for group in reversed(answer.groups) for control in group.controlling}
    return [_document(*ways[evidence.id], certificate) for evidence in answer.results]


def repair(
    calls: Calls, names: Sequence[str], *, as_of: datetime | str | None = None, unknown: Unknown = "drop"
) -> list[Passage]:
    """Return what may be used in place of the hits with these names, in their order.

    A hit in force stays. A superseded one is replaced by what controls it. One that was retracted, or is not in effect
    yet, is dropped. One that was never published here is kept or dropped, as `unknown` says; a drop is logged.
    """
    if not names:
        return []
    different = list(dict.fromkeys(names))
    with taking_turns(calls):
        resolutions = dict(zip(different, calls.resolve(different, as_of=as_of, include=["attributes"]), strict=True))
        anchors = {group.anchor.id for resolution in resolutions.values() for group in resolution.groups}
        certificate = calls.check(sorted(anchors), as_of=as_of).certificate if anchors else None
    whole = {
        group.anchor.id for resolution in resolutions.values() if resolution.via == "id" for group in resolution.groups
    }
    passed: dict[tuple[str, str], Passage] = {}
    for number, name in enumerate(names):
        resolution = resolutions[name]
        if resolution.status == "unknown" and unknown == "keep":
            passed[name, ""] = Passage(
                text="", about={"id": name}, verdict={"status": "unknown"}, hit=number, stays=True
            )
        for group, control in _controlling(resolution):
            id = control.document.id
            passage = _document(group, control, _plain(certificate))
            if id == group.anchor.id and resolution.via in ("id", "chunk"):
                text = "\n\n".join(map(_amendment, control.amendments))
                passed.setdefault((id, name), msgspec.structs.replace(passage, text=text, hit=number, stays=True))
            elif id not in whole:
                passed.setdefault((id, ""), msgspec.structs.replace(passage, hit=number))
    _report(resolutions.values(), unknown)
    return list(passed.values())


def _controlling(resolution: a.Resolution) -> Iterator[tuple[a.Group, a.Controlling]]:
    if resolution.status not in ("retracted", "pending"):
        yield from ((group, control) for group in resolution.groups for control in group.controlling)


def _report(resolutions: Iterable[a.Resolution], unknown: Unknown) -> None:
    """Log which hits were dropped although nothing replaces them."""
    for resolution in resolutions:
        if resolution.status == "unknown" and unknown == "drop":
            cure = "Publish it, or keep such hits with unknown='keep'."
            _log.warning("The hit %r was dropped, because it was never published here. %s", resolution.name, cure)
        elif resolution.status == "superseded" and not any(group.controlling for group in resolution.groups):
            reasons = ", ".join(sorted({reason for group in resolution.groups for reason in group.reasons}))
            _log.warning("The hit %r was dropped: it is superseded (%s).", resolution.name, reasons)


def _document(group: a.Group, control: a.Controlling, certificate: object) -> Passage:
    fields = msgspec.convert(_plain(control.document), Metadata)
    verdict = {key: value for key, value in fields.items() if key not in (*OF_THE_DOCUMENT, "text")}
    way: Metadata = {
        "anchor": group.anchor.id,
        "anchor_status": group.anchor.status,
        "path": _plain(control.path),
        "superseded": _plain(group.superseded),
        "amendments": _plain(control.amendments),
        "amendments_more": control.amendments_more,
        "complete": group.complete,
        "reasons": list(group.reasons),
        "missing": list(group.missing),
        "score": group.score,
        "probability": group.probability,
        "certificate": certificate,
    }
    parts = [_text(control.document), *map(_amendment, control.amendments)]
    return Passage(
        text="\n\n".join(parts),
        about={key: fields[key] for key in OF_THE_DOCUMENT},
        verdict={**verdict, **way},
        score=group.score,
    )


def _plain(value: object) -> object:
    """Return a value as JSON has it: no tuples, times as text."""
    plain: object = msgspec.json.decode(msgspec.json.encode(value))
    return plain


def _text(document: a.Evidence) -> str:
    return "\n\n".join(filter(None, (document.title, document.text)))


def _amendment(amendment: a.Amendment) -> str:
    """Return an amendment as text: who reads a document must read what amends it."""
    return f"Amended by {amendment.document.id}: {_text(amendment.document)}"

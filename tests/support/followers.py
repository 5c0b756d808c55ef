"""Subscribers that keep what they receive, and the check that they have, when caught up, the state of now."""

from collections.abc import Mapping, Sequence
from random import Random

import pytest

from stream_car.codec import encode, encode_mapping
from stream_car.core import definitions, pages
from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_parts
from stream_car.queries.answers import Change
from stream_car.subscriptions import subscription
from stream_car.subscriptions.events import (
    DocumentChange,
    Notice,
    ScopeChange,
    Selection,
    SnapshotDocument,
    SnapshotScope,
    View,
)
from tests.support.streams import remember_the_oracle

Parts = frozenset[tuple[str, str]]


class Follower:
    """What a client keeps: it applies what it receives, and knows nothing else."""

    def __init__(self) -> None:
        self.documents: dict[str, int] = {}
        self.scopes: dict[str, set[tuple[str, int]]] = {}
        self.superseded_by_link: set[str] = set()
        self.seqs: dict[str, int] = {}
        self.cursors: list[tuple[int, ...]] = []

    def receive(self, notice: Notice) -> None:
        """Apply the next event."""
        event = notice.event
        if notice.cursor is not None:
            self.cursors.append(notice.cursor)
        if isinstance(event, SnapshotDocument):
            self.documents[event.id] = event.revision
        elif isinstance(event, DocumentChange):
            if event.in_force and event.selected:
                self.documents[event.id] = event.revision
            else:
                self.documents.pop(event.id, None)
        elif isinstance(event, SnapshotScope):
            assert event.continued == (event.scope in self.scopes), "only a further part of a scope is continued"
            assert self.seqs.get(event.scope, event.seq) == event.seq, "a change was left out between two parts"
            assert len(event.members) <= subscription.MEMBERS_AT_ONCE
            self.seqs[event.scope] = event.seq
            members = self.scopes.setdefault(event.scope, set())
            members.update((member.id, member.revision) for member in event.members)
            if event.superseded:
                self.superseded_by_link.add(event.superseded)
        elif isinstance(event, ScopeChange):
            self._apply(event.change)

    def _apply(self, change: Change) -> None:
        assert change.seq == self.seqs.get(change.scope, change.seq - 1) + 1, "a change came twice or was left out"
        self.seqs[change.scope] = change.seq
        if change.scope.startswith("document="):
            self.superseded_by_link.difference_update(member.id for member in change.entered)
            self.superseded_by_link.update(member.id for member in change.left)
            return
        members = self.scopes.setdefault(change.scope, set())
        members.difference_update((member.id, member.revision) for member in change.left)
        members.update((member.id, member.revision) for member in change.entered)

    def check(self, selection: Selection, corpus: Mapping[str, Document], ruleset: Ruleset, context: object) -> None:
        """Compare what is kept with the definition; `context` is printed if they differ."""
        if selection.view == "document":
            active = definitions.active(corpus, ruleset)
            selected = {d.id: d.revision for d in corpus.values() if _is_selected(d, selection, ruleset)}
            assert self.documents == {name: selected[name] for name in selected.keys() & active}, context
            return
        scopes = {scope for document in corpus.values() for scope in ruleset.scopes(document)}
        for scope in scopes | self.scopes.keys():
            if _has_parts(scope, selection.scope):
                frontier = {(name, corpus[name].revision) for name in definitions.frontier(scope, corpus, ruleset)}
                assert self.scopes.get(scope, set()) == frontier, (context, scope)
        if not selection.scope:
            named = {name for document in corpus.values() for name in document.supersedes}
            named |= {document.id for document in corpus.values() if document.superseded_by}
            assert self.superseded_by_link == named, context


def _is_selected(document: Document, selection: Selection, ruleset: Ruleset) -> bool:
    scopes = ruleset.scopes(document)
    return (
        bool(scopes)
        and (not selection.ids or document.id in selection.ids)
        and (not selection.types or document.type in selection.types)
        and any(_has_parts(scope, selection.scope) for scope in scopes)
    )


def _has_parts(scope: str, parts: Parts) -> bool:
    return parts <= set(scope_parts(scope))


def random_selection(random: Random, views: Sequence[View]) -> Selection:
    """Return what a subscriber selects of a random stream."""
    view = random.choice(views)
    parts: Parts = frozenset()
    if random.random() < 0.4:
        parts = frozenset(random.choice(((("x", "1"),), (("y", "2"),), (("x", "1"), ("y", "1")), (("record", "r1"),))))
    if view == "scope":
        return Selection(view="scope", scope=parts)
    types = frozenset(random.sample("abcd", 2)) if random.random() < 0.3 else frozenset[str]()
    ids = frozenset(f"n{n}" for n in range(5)) if random.random() < 0.3 else frozenset[str]()
    return Selection(ids=ids, types=types, scope=parts)


def encode_statement(statement: Statement) -> bytes:
    """Return the bytes to publish for a document or a retraction."""
    if isinstance(statement, Document):
        return encode(statement)
    revision = {} if statement.revision is None else {"revision": statement.revision}
    return encode_mapping({"id": statement.id, **revision, "retracted": True})


def take_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make steps so small that each of their boundaries is met often."""
    remember_the_oracle(monkeypatch.setattr)
    monkeypatch.setattr(subscription, "EVENTS_AT_ONCE", 3)
    monkeypatch.setattr(subscription, "ITEMS_AT_ONCE", 2)
    monkeypatch.setattr(subscription, "FEW_MAX", 6)
    monkeypatch.setattr(subscription, "MEMBERS_AT_ONCE", 2)


def use_small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages of stored scopes so small that random scopes have several."""
    for name, limit in (("INLINE_MAX", 2), ("PAGE_MAX", 3), ("FOLDER_MAX", 2)):
        monkeypatch.setattr(pages, name, limit)

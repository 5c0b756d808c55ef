"""The core alone, over plain dictionaries, with a small set of rules: what examples of single steps need."""

from collections.abc import Generator
from typing import TypeVar

import msgspec

from stream_car.core import definitions
from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Document, Statement
from stream_car.core.frontier import place
from stream_car.core.revisions import Input, decide, document_key
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.core.stored import LOWEST, Page, Scope, StoredDocument
from stream_car.core.thresholds import no_rule_supersedes, threshold_of
from stream_car.core.timeline import members_between, scope_key, types

T = TypeVar("T")
RULES = Ruleset(
    [
        RulePack(
            name="examples",
            types=("disclosure", "patch", "regression", "note", "price"),
            rules=(
                Rule(name="patched", superseding_type="patch", superseded_type="disclosure", scope_keys=("cve",)),
                Rule(name="reopened", superseding_type="regression", superseded_type="patch", scope_keys=("cve",)),
                Rule(
                    name="noted",
                    effect="amend",
                    superseding_type="note",
                    superseded_type="disclosure",
                    scope_keys=("cve",),
                ),
                Rule(
                    name="repriced",
                    superseding_type="price",
                    superseded_type="price",
                    scope_keys=("product",),
                    differ_on=("amount",),
                ),
            ),
        )
    ]
)


def document(
    name: str,
    type_name: str = "disclosure",
    time: int = 0,
    *,
    cve: str | tuple[str, ...] = (),
    amount: int | None = None,
    revision: int = 1,
    supersedes: tuple[str, ...] = (),
    superseded_by: tuple[str, ...] = (),
) -> Document:
    """A document about vulnerabilities; with an `amount`, the price of the product `tea`."""
    cves = (cve,) if isinstance(cve, str) else cve
    return Document(
        id=name,
        type=type_name,
        time=time,
        revision=revision,
        scope=({"cve": cves} if cves else {}, {"product": ("tea",)} if amount is not None else {}),
        attributes={"amount": amount},
        supersedes=supersedes,
        superseded_by=superseded_by,
    )


class CoreShard:
    """Decides each statement, places its document, and remembers everything under the store's keys."""

    def __init__(self, ruleset: Ruleset = RULES) -> None:
        self.ruleset = ruleset
        self.log: list[Statement] = []
        self.documents: dict[str, StoredDocument] = {}
        self.scopes: dict[str, Scope] = {}
        self.pages: dict[bytes, Page] = {}

    def publish(self, statement: Statement) -> list[FrontierChange]:
        """Apply a statement; return the changes of frontiers."""
        at = Input(len(self.log), append_time=0, digest=msgspec.json.encode(statement, order="sorted"))
        scopes = self.ruleset.scopes(statement) if isinstance(statement, Document) else ()
        stored = self.documents.get(statement.id)
        decision = decide(stored, statement, at=at, ruleset=self.ruleset, scopes=scopes, is_due=True)
        self.log.append(statement)
        if decision.document is not None:
            self.documents[statement.id] = decision.document
        steps = (
            place(self.scopes.setdefault(p.scope, Scope(p.scope)), self.pages, p, self.ruleset)
            for p in decision.placements
        )
        return [change for change, _ in steps if change is not None]

    @property
    def corpus(self) -> dict[str, Document]:
        """What the definitions are asked about."""
        return definitions.current_documents(self.log)

    def frontier(self, name: str) -> set[str]:
        """The members of a scope that reach their threshold."""
        scope = self.scopes[name]
        active: set[str] = set()
        for type_name in types(scope):
            type_rules = self.ruleset.type_rules(name, type_name)
            threshold = threshold_of(scope, self.pages, type_rules, self.ruleset)
            members = members_between(scope, self.pages, type_name, LOWEST, None)
            active.update(member.id for member in members if no_rule_supersedes(member, threshold, type_rules))
        return active

    def stored_values(self) -> dict[bytes, object]:
        """Everything under its key, as a store would return it."""
        values: dict[bytes, object] = {**self.pages}
        values.update((document_key(name), stored) for name, stored in self.documents.items())
        values.update((scope_key(name), scope) for name, scope in self.scopes.items())
        return values


def run_reads(
    reads: Generator[list[bytes], None, T], stored: dict[bytes, object], values: dict[bytes, object]
) -> tuple[T, list[list[bytes]]]:
    """Read every key that is yielded from `stored` into `values`; return the result and the rounds of keys."""
    rounds: list[list[bytes]] = []
    while True:
        try:
            keys = next(reads)
        except StopIteration as stop:
            result: T = stop.value
            return result, rounds
        rounds.append(keys)
        values.update((key, stored.get(key)) for key in keys)

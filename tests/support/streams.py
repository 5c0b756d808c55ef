"""Random streams of statements over random rules: corrections, retractions, links, cycles, several scopes."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Literal, Protocol

from stream_car.core import definitions
from stream_car.core.documents import Document, Retraction, Statement
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset

TYPES = ("a", "b", "c", "d")
KEYS = (("x",), ("y",), ("x", "y"), ("record",))


def with_memory(ruleset: Ruleset) -> Ruleset:
    """Return the same rules, which compute the scopes of a document once, unless the class is compiled."""
    known: dict[int, tuple[Document, tuple[str, ...]]] = {}
    compute = ruleset.scopes

    def scopes(document: Document) -> tuple[str, ...]:
        entry = known.get(id(document))
        if entry is None:
            entry = known[id(document)] = (document, compute(document))
        return entry[1]

    with suppress(AttributeError):
        ruleset.scopes = scopes  # type: ignore[method-assign]
    return ruleset


class Relation(Protocol):
    """A relation between two documents."""

    def __call__(self, *, later: Document, earlier: Document, ruleset: Ruleset) -> object: ...


def remembered(function: Relation) -> Relation:
    """Return the same function of two documents, computed once per pair."""
    known: dict[tuple[int, int, int], tuple[object, ...]] = {}

    def relation(*, later: Document, earlier: Document, ruleset: Ruleset) -> object:
        key = (id(later), id(earlier), id(ruleset))
        if key not in known:
            known[key] = (function(later=later, earlier=earlier, ruleset=ruleset), later, earlier, ruleset)
        return known[key][0]

    return relation


def random_rules(random: Random, *, amending: float = 0.1) -> Ruleset:
    """Return two to six rules over four types. `differ_on` agrees per superseded type and key set."""
    differ = {(kind, keys): random.random() < 0.4 for kind in TYPES for keys in KEYS}
    rules: dict[tuple[str, str, tuple[str, ...]], Rule] = {}
    for _ in range(random.randint(2, 7)):
        new, old, keys = random.choice(TYPES), random.choice(TYPES), random.choice(KEYS)
        on = ("v",) if differ[old, keys] and random.random() < 0.7 else ()
        effect: Literal["amend", "supersede"] = "amend" if random.random() < amending else "supersede"
        name = f"{new}>{old} by {'+'.join(keys)}"
        rules[new, old, keys] = Rule(
            name=name,
            superseding_type=new,
            superseded_type=old,
            scope_keys=keys,
            differ_on=on,
            effect=effect,
            follows=new < old if effect == "amend" else None,
        )
    return with_memory(Ruleset([RulePack(name="random", types=TYPES, rules=tuple(rules.values()))]))


def random_document(random: Random, ids: int, *, links: float = 0.15, times: int = 12) -> Document:
    """Return a document of a small world, so that scopes, times and names collide often."""
    maps = []
    for _ in range(random.choice((0, 1, 1, 1, 2))):
        part = {}
        for key in ("x", "y", "record"):
            if random.random() < (0.75 if key != "record" else 0.25):
                part[key] = tuple(sorted(random.sample("12", random.choice((1, 1, 2)))))
        if key == "record" and "record" in part:
            part["record"] = tuple(f"r{value}" for value in part["record"])
        maps.append(part)
    name = f"n{random.randrange(ids)}"
    targets = [f"n{n}" for n in range(ids) if f"n{n}" != name] + ["r1", "r2", "n99"]

    def some_targets() -> tuple[str, ...]:
        return tuple(random.sample(targets, random.choice((1, 1, 2)))) if random.random() < links else ()

    return Document(
        id=name,
        revision=random.choice((1, 1, 1, 2, 3)),
        type=random.choice(TYPES),
        time=random.randrange(times),
        order=random.choice((0, 0, 0, 1)),
        scope=tuple(maps),
        supersedes=some_targets(),
        superseded_by=some_targets() if random.random() < 0.5 else (),
        amends=some_targets() if random.random() < 0.3 else (),
        attributes={"v": random.choice((1, 2, 3))} if random.random() < 0.9 else {},
        title=f"t{random.randrange(1000)}",
    )


def random_stream(random: Random, steps: int, *, links: float = 0.15) -> list[Statement]:
    """Return documents, repeats, corrections and retractions over few ids."""
    stream: list[Statement] = []
    ids = random.choice((4, 8, 14, 20))
    for _ in range(steps):
        what = random.random()
        if stream and what < 0.1:
            stream.append(random.choice(stream))
        elif what < 0.2:
            revision = random.choice((None, 1, 2, 3))
            stream.append(Retraction(id=f"n{random.randrange(ids)}", revision=revision))
        else:
            stream.append(random_document(random, ids, links=links))
    return stream


def remember_the_oracle(set_attribute: Callable[[object, str, object], None]) -> None:
    """Make the definitions affordable over many steps, without changing what they decide."""
    set_attribute(definitions, "voids", remembered(definitions.voids))
    plain = definitions._voids_in
    by_scope: dict[str, Relation] = {}

    def in_scope(scope: str) -> Relation:
        def relation(*, later: Document, earlier: Document, ruleset: Ruleset) -> object:
            return plain(scope, later, earlier, ruleset)

        return remembered(relation)

    def voids_in(scope: str, later: Document, earlier: Document, ruleset: Ruleset) -> object:
        if scope not in by_scope:
            by_scope[scope] = in_scope(scope)
        return by_scope[scope](later=later, earlier=earlier, ruleset=ruleset)

    set_attribute(definitions, "_voids_in", voids_in)

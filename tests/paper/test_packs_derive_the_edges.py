"""The shipped packs, all loaded, derive exactly the supersessions that the benchmark data call true."""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from stream_car.codec import decode
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.rule_packs import load
from tests.support.repository import DATA

SETS = [
    "cvepatchqa",
    "cvepatchqa_freeform",
    "fda",
    "finsuperqa",
    "finsuperqa_contaminated",
    "ghsa",
    "legalprecedentqa",
    "legalprecedentqa_freeform",
]


def documents(path: Path) -> list[Document]:
    return [d for d in map(decode, path.read_bytes().splitlines()) if isinstance(d, Document)]


def derived(corpus: Iterable[Document], rules: Ruleset) -> set[tuple[str, str]]:
    """Return the pairs (old, new) that rules connect, scope by scope. No rule of these data has `differ_on`."""
    members: dict[str, list[Document]] = defaultdict(list)
    for document in corpus:
        for scope in rules.scopes(document):
            members[scope].append(document)
    return {
        (old.id, new.id)
        for scope, documents in members.items()
        for new in documents
        if (kinds := {clause.type for clause in rules.type_rules(scope, new.type).supersedes})
        for old in documents
        if old.type in kinds and old.precedence < new.precedence
    }


@pytest.mark.skipif(not DATA.is_dir(), reason="the benchmark data are not beside the repository (shared/data)")
@pytest.mark.parametrize("name", SETS)
def test_the_rules_derive_exactly_the_true_edges(name: str) -> None:
    rows = [json.loads(line) for line in (DATA / name / "edges.jsonl").read_text(encoding="utf-8").splitlines()]
    true = {(row["old"], row["new"]) for row in rows}

    assert true
    assert derived(documents(DATA / name / "documents.jsonl"), load()) == true

"""A document that the engine fails on, on every back end that runs in this process."""

from collections.abc import Sequence

import pytest

from stream_car.core.documents import Statement
from stream_car.core.revisions import Decision, Input, decide
from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.processing import fold

POISON = "poison"


def fail_on_poison(patched: pytest.MonkeyPatch) -> None:
    """Let every fold fail on the document `poison`, until the patch is undone."""

    def decide_or_fail(
        old: StoredDocument | None,
        statement: Statement,
        *,
        at: Input,
        ruleset: Ruleset,
        scopes: Sequence[str],
        is_due: bool,
    ) -> Decision:
        if statement.id == POISON:
            raise ZeroDivisionError("division by zero")
        return decide(old, statement, at=at, ruleset=ruleset, scopes=scopes, is_due=is_due)

    patched.setattr(fold, "decide", decide_or_fail)

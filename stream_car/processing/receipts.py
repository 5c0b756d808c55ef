"""What a publisher is told of one record, from what the fold made of it."""

from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.processing.effects import Effects
from stream_car.processing.misspelt import misspelt
from stream_car.queries.answers import Receipt


def receipt_of(offset: int, said: Statement | None, effects: Effects, ruleset: Ruleset) -> Receipt:
    """The receipt; `said` is `None` where the record could not be read."""
    document = said if isinstance(said, Document) else None
    refused = effects.rejection
    taken = document if effects.outcome in ("accepted", "pending") else None
    return Receipt(
        offset=offset,
        outcome=effects.outcome,
        id=said.id if said is not None else (refused.id if refused is not None else None),
        revision=said.revision if said is not None else None,
        type=document.type if document is not None else None,
        code=refused.code if refused is not None else None,
        reason=refused.reason if refused is not None else None,
        scopes=effects.scopes,
        lacking=ruleset.lacking(taken) if taken is not None and not effects.scopes else (),
        misspelt=misspelt(taken, ruleset) if taken is not None else (),
    )

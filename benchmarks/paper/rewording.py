"""Questions in other words, for the tables that use them.

Promise: pure. Words are filled in from the scope of the gold anchor, as the paper's templates do.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from benchmarks.paper.sets import Question
from stream_car.core.documents import Document


def structured_questions(questions: Sequence[Question], documents: Mapping[str, Document]) -> list[Question]:
    """Return Table 5's structured questions: `Is {package} still affected by {CVE}?`"""
    reworded = []
    for question in questions:
        scope = _scope(documents[question.anchor[0]])
        text = f"Is {scope.get('package', '')} still affected by {scope.get('cve', '')}?"
        reworded.append(replace(question, text=text))
    return reworded


def questions_with_hints(questions: Sequence[Question], documents: Mapping[str, Document], kind: str) -> list[Question]:
    """Return Table 8's questions with a hint: the product before the question, or a party's name after it."""
    return [
        replace(question, text=_add_hint(question.text, _scope(documents[question.anchor[0]]), kind))
        for question in questions
    ]


def _add_hint(text: str, scope: Mapping[str, str], kind: str) -> str:
    if kind == "product":
        return f"{scope.get('product', '')}: {text}"
    return f"{text} ({scope.get('case', '').partition('_')[0].title()})"


def _scope(document: Document) -> dict[str, str]:
    """Return the first value of each scope key."""
    return {key: values[0] for part in document.scope for key, values in part.items()}

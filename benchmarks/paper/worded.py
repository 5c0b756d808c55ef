"""Questions in other words, for the tables that ask so.

Promise: pure. The words are filled in from the scope of the gold anchor, as the paper's templates are.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from benchmarks.paper.sets import Question
from stream_car.core.documents import Document


def templated(questions: Sequence[Question], documents: Mapping[str, Document]) -> list[Question]:
    """Table 5's structured questions: `Is {package} still affected by {CVE}?`"""
    found = []
    for one in questions:
        said = _said(documents[one.anchor[0]])
        found.append(replace(one, text=f"Is {said.get('package', '')} still affected by {said.get('cve', '')}?"))
    return found


def hinted(questions: Sequence[Question], documents: Mapping[str, Document], kind: str) -> list[Question]:
    """Table 8's questions with a hint: the product before the question, or one party's name behind it."""
    return [replace(one, text=_hint(one.text, _said(documents[one.anchor[0]]), kind)) for one in questions]


def _hint(text: str, said: Mapping[str, str], kind: str) -> str:
    if kind == "product":
        return f"{said.get('product', '')}: {text}"
    return f"{text} ({said.get('case', '').partition('_')[0].title()})"


def _said(document: Document) -> dict[str, str]:
    return {key: values[0] for part in document.scope for key, values in part.items()}

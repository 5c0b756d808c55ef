"""What a language model says of the documents that it is handed (the paper's Table 12).

Promise: the model sees the question and the listed texts, and nothing else; what it says is read off its first
words, as it is asked to put them, so that nobody has to judge. Every question's matter has been mended, so
`patched` is right and `not patched` a confident error.
"""

from collections.abc import Sequence
from typing import Literal

from benchmarks.paper.lab import Stand
from benchmarks.paper.measures import Share, inclusion, share
from benchmarks.paper.models import Writing

Verdict = Literal["patched", "not patched", "uncertain"]
VERDICTS: tuple[Verdict, ...] = ("patched", "not patched", "uncertain")
TEXT_MAX = 2000  # characters of a document that the model is handed

ASK = """Answer from these documents only.

{documents}

Question: {question}
Is it patched, and which version fixes it? Begin with one of: PATCHED, NOT PATCHED, UNCERTAIN. Then explain."""


def verdict(said: str) -> Verdict:
    """What a text begins with; one that begins otherwise claims nothing."""
    words = said.upper().replace("*", " ").replace("-", " ").split()[:2]
    if not words or words[0].strip(".,:;!") not in ("PATCHED", "NOT"):
        return "uncertain"
    if words[0] != "NOT":
        return "patched"
    return "not patched" if words[-1].strip(".,:;!") == "PATCHED" else "uncertain"


def prompt(question: str, texts: Sequence[str]) -> str:
    """What the model is asked."""
    numbered = (f"[{number}] {text[:TEXT_MAX]}" for number, text in enumerate(texts, 1))
    return ASK.format(documents="\n\n".join(numbered), question=question)


def read(stand: Stand, system: str, write: Writing) -> tuple[Share, dict[Verdict, Share]]:
    """How often a system hands over the gold, and what the model makes of what it hands over."""
    documents, questions = stand.material.documents, stand.material.questions
    handed, said = [], []
    for one in stand.lab.track(questions, f"{stand.material.collection.title}: {system}, read"):
        top = stand.systems[system].rank(one, stand.lab.k)
        handed.append(inclusion(one.gold, top))
        said.append(verdict(write(prompt(one.text, [documents[name].text for name in top]))))
    return share(handed), {kind: share([one == kind for one in said]) for kind in VERDICTS}

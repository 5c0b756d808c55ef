"""What a language model concludes from the documents that it gets (the paper's Table 12).

Promise: the model sees the question and the texts, and nothing else. Its verdict is read from its first words, which
the prompt prescribes, so no person has to judge. In this set every vulnerability has a patch, so `patched` is right and
`not patched` is a confident error.
"""

from collections.abc import Sequence
from typing import Literal

from benchmarks.paper.lab import OpenSet
from benchmarks.paper.measures import Share, inclusion, share
from benchmarks.paper.models import Generator

Verdict = Literal["patched", "not patched", "uncertain"]
VERDICTS: tuple[Verdict, ...] = ("patched", "not patched", "uncertain")
TEXT_MAX = 2000  # characters of each document in the prompt

PROMPT = """Answer from these documents only.

{documents}

Question: {question}
Is it patched, and which version fixes it? Begin with one of: PATCHED, NOT PATCHED, UNCERTAIN. Then explain."""


def parse_verdict(text: str) -> Verdict:
    """Read the verdict at the beginning of a text; without one it is `uncertain`."""
    words = text.upper().replace("*", " ").replace("-", " ").split()[:2]
    if not words or words[0].strip(".,:;!") not in ("PATCHED", "NOT"):
        return "uncertain"
    if words[0] != "NOT":
        return "patched"
    return "not patched" if words[-1].strip(".,:;!") == "PATCHED" else "uncertain"


def prompt(question: str, texts: Sequence[str]) -> str:
    """Return the prompt for a question about these texts."""
    numbered = (f"[{number}] {text[:TEXT_MAX]}" for number, text in enumerate(texts, 1))
    return PROMPT.format(documents="\n\n".join(numbered), question=question)


def measure_verdicts(open_set: OpenSet, system: str, generate: Generator) -> tuple[Share, dict[Verdict, Share]]:
    """Measure how often a system returns the gold, and what the model concludes from what the system returns."""
    documents, questions = open_set.material.documents, open_set.material.questions
    included, verdicts = [], []
    for question in open_set.lab.track(questions, f"{open_set.material.collection.title}: {system}, read"):
        top = open_set.systems[system].rank(question, open_set.lab.k)
        included.append(inclusion(question.gold, top))
        text = generate(prompt(question.text, [documents[name].text for name in top]))
        verdicts.append(parse_verdict(text))
    return share(included), {kind: share([verdict == kind for verdict in verdicts]) for kind in VERDICTS}

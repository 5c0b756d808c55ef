"""Every set of the paper in miniature, under the names of the real ones, so that its tables can be run in the gate.

What controls shares no word with the question, and what it voids has most of them; the other documents are
of the same types about other matters.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

Row = Mapping[str, object]
FILLING = "notice of the usual kind about other things entirely, number"


class Small:
    """A set as it grows, case by case."""

    def __init__(self, first: str, text: str, keys: Sequence[str]) -> None:
        self.first = first
        self.text = text
        self.keys = keys
        self.documents: list[Row] = []
        self.queries: list[Row] = []
        self.edges: list[Row] = []
        self.answers: list[Row] = []

    def add(self, hop: str, name: str, question: str, later: Sequence[str] = (), answer: str = "") -> "Small":
        """A case: a first document with most of the question's words, and what voided it, one after the other."""
        chain = [f"{hop}-{name}-{at}" for at in range(len(later) + 1)]
        texts = [self.text.format(name=name), *(f"Form {len(self.documents) + at}: done." for at in range(len(later)))]
        for at, (kind, text) in enumerate(zip((self.first, *later), texts, strict=True)):
            scope = {key: [f"CVE-2024-{name}" if key == "cve" else name] for key in self.keys}
            time = f"2024-0{at + 1}-01T00:00:00Z"
            self.documents.append({"id": chain[at], "type": kind, "time": time, "scope": scope, "text": text})
        self.edges += [{"old": old, "new": new, "query": f"q-{chain[0]}"} for old, new in pairwise(chain)]
        self.queries.append(
            {"id": f"q-{chain[0]}", "text": question, "gold": chain[-1:], "anchor": chain[:1], "hop": hop}
        )
        if answer:
            self.answers.append({"id": f"q-{chain[0]}", "answer": answer, "chain": chain})
        return self

    def write(self, folder: Path) -> None:
        """The set as files, with other matters beside it."""
        for at in range(8):
            scope = {key: [f"CVE-2020-100{at}" if key == "cve" else f"other{at}"] for key in self.keys}
            self.documents.append(
                {
                    "id": f"other-{at}",
                    "type": self.first,
                    "time": "2023-01-01T00:00:00Z",
                    "scope": scope,
                    "text": f"{FILLING} {at}",
                }
            )
        folder.mkdir(parents=True)
        files = {"documents": self.documents, "queries.dev": self.queries, "edges": self.edges, "answers": self.answers}
        for name, rows in files.items():
            if rows:
                (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def finance() -> Small:
    """Four hops; a lifted blackout leaves no answer but that of the lift."""
    small = Small("pre_clearance_approved", "Desk cleared trades of {name} this quarter.", ("employee", "ticker"))
    ask = "Are the trades of {} cleared this quarter?".format
    small.add("T0", "EMP001-Ash", ask("EMP001-Ash"), (), "active")
    small.add("T1", "EMP002-Bay", ask("EMP002-Bay"), ("blackout_announced",), "non_compliant")
    small.add("T2", "EMP003-Cob", ask("EMP003-Cob"), ("blackout_announced", "blackout_lifted"), "non_compliant")
    return small.add("T3", "EMP004-Dov", ask("EMP004-Dov"), ("blackout_announced", "emergency_exception"), "compliant")


def flaws(first: str, last: str, keys: Sequence[str]) -> Small:
    """Vulnerabilities, one mended and one not."""
    small = Small(first, "A remote attacker overflows a buffer of {name}.", keys)
    small.add("T1", "10001", "Is a buffer of 10001 still open to a remote attacker?", (last,), "patched")
    return small.add("T0", "10002", "Is a buffer of 10002 still open to a remote attacker?", (), "vulnerable")


def rulings() -> Small:
    """A ruling that was overruled and one that was not."""
    small = Small("ruling_issued", "The court held in {name} that standing needs injury.", ("case", "question"))
    small.add(
        "T1", "nelson", "Does standing need injury, as the court held in nelson?", ("ruling_overruled",), "overruled"
    )
    return small.add("T0", "perez", "Does standing need injury, as the court held in perez?", (), "good_law")


def drugs() -> Small:
    """A label with a recall, and one without."""
    small = Small("drug_label", "Indicated against fever in {name}.", ("drug",))
    small.add("", "adults", "Is the drug indicated against fever in adults approved?", ("drug_recall",))
    return small.add("", "children", "Is the drug indicated against fever in children approved?")


def write_every(data: Path) -> Path:
    """All sets; the directory in which they are."""
    finance().write(data / "finsuperqa")
    finance().write(data / "finsuperqa_contaminated")
    flaws("advisory", "release_note", ("package", "cve")).write(data / "ghsa")
    drugs().write(data / "fda")
    for folder in ("cvepatchqa", "cvepatchqa_freeform"):
        flaws("cve_disclosed", "patch_released", ("product", "cve")).write(data / folder)
    for folder in ("legalprecedentqa", "legalprecedentqa_freeform"):
        rulings().write(data / folder)
    return data

"""How well memories find their keys without a model, beside the goals: `python -m benchmarks.memory [FOLDER]`.

FOLDER has the sets `factconsolidation`, `evolving` and `chain_binding`; by default it is `../shared/data/memory`. What
is not there is left out, and the last lines say so.
"""

import json
import re
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.memory.walks import Facts, answer
from stream_car.memory import Memory

DEFAULT = Path(__file__).parents[3] / "shared" / "data" / "memory"
SINGLE_HOP_GOALS = {"6k": 99, "32k": 97, "64k": 97, "262k": 96}  # percent
MULTI_HOP_GOAL = 80  # percent, at 6k
NOT_MEASURED = (
    "memops and memorycheck (`tests/integration/test_memory.py` replays them)",
    "the figures that need an embedder or a language model",
)
Line = dict[str, object]
Row = tuple[str, str, str]  # what, goal, measured


def lines(path: Path) -> list[Line]:
    """Return the lines of a set; none if it is not there."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def holds(value: object, text: str) -> bool:
    """Return whether a text has a value, as a whole."""
    return re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", text) is not None


def plain(text: object) -> str:
    """Return a text as the measure of the set compares it: lower case, without articles and punctuation."""
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", re.sub(r"[^\w\s]", "", str(text).lower())).split())


def share(count: int, total: int) -> str:
    """Return a share in percent, with its numbers."""
    return f"{100 * count / total:.1f} % ({count}/{total})"


def memorize(*texts: object) -> tuple[list[str], int]:
    """Add texts to a memory of their own. Return what is in force then, and how many memories were retired."""
    with Memory() as memory:
        retired = sum(len(added["retired"]) for text in texts for added in memory.add(str(text))["results"])
        return [item["memory"] for item in memory.get_all()["results"]], retired


def fact_consolidation(folder: Path) -> Iterator[Row]:
    """Ask about single facts and chains of them. The greater serial wins, so a value that returns holds again."""
    every = lines(folder / "questions.jsonl")
    size, questions = folder.name, [line for line in every if line["hop"] == "sh"]
    times: list[float] = []
    with Memory() as memory:
        for fact in lines(folder / "facts.jsonl"):
            start = time.process_time()
            memory.add(str(fact["text"]), reaffirm=True)
            times.append(time.process_time() - start)
        right = 0
        for question in questions:
            results = memory.search(str(question["text"]), limit=1)["results"]
            golds = _values(question["answers"])
            right += any(str(gold).lower() in results[0]["memory"].lower() for gold in golds) if results else 0
        facts: dict[str, dict[str, str]] = {}
        for item in memory.get_all(limit=10**6)["results"]:
            subject, _, relation = item["key"].rpartition("::")
            facts.setdefault(subject.casefold(), {})[relation] = item["object"]
    goal = SINGLE_HOP_GOALS.get(size)
    yield f"single hop {size}: gold in the first fact", f">= {goal} %" if goal else "", share(right, len(questions))
    yield from multi_hop(size, facts, [line for line in every if line["hop"] == "mh"])
    yield f"add {size}: processor time, median", "<= 2 ms", f"{1000 * statistics.median(times):.2f} ms"


def multi_hop(size: str, facts: Facts, questions: list[Line]) -> Iterator[Row]:
    """Ask the questions about chains of facts, by a walk over the keys of a memory."""
    ends = [(answer(str(line["text"]), facts)[0], _values(line["answers"])) for line in questions]
    within = sum(any(plain(gold) in plain(end) for gold in golds) for end, golds in ends)
    exact = sum(any(plain(gold) == plain(end) for gold in golds) for end, golds in ends)
    if questions:
        goal = f">= {MULTI_HOP_GOAL} %" if size == "6k" else ""
        yield f"multi hop {size}: gold in the value at the end of a walk over keys", goal, share(within, len(questions))
        yield f"multi hop {size}: exactly the gold", "", share(exact, len(questions))


def evolving(folder: Path) -> Iterator[Row]:
    """Add pairs of sentences, of which the second does or does not supersede the first."""
    scenarios, clean, stale = lines(folder / "scenarios.jsonl"), 0, 0
    for pair in scenarios:
        texts, retired = memorize(pair["a"], pair["b"])
        clean += retired == 1 and texts == [pair["b"]]
    if scenarios:
        with Memory() as memory:
            for text in [pair[side] for side in ("a", "b") for pair in scenarios]:
                memory.add(str(text))
            for pair in scenarios:
                results = memory.search(str(pair["question"]), limit=1)["results"]
                stale += not results or results[0]["memory"] == pair["a"]
        yield "scenarios: clean supersession", ">= 95 %", share(clean, len(scenarios))
        yield "scenarios: stale or empty first answer", "0 %", share(stale, len(scenarios))
    look_alikes = lines(folder / "lookalikes.jsonl")
    if look_alikes:
        false = sum(memorize(pair["a"], pair["b"])[1] > 0 for pair in look_alikes)
        yield "look-alikes: superseded", "0", f"{false}/{len(look_alikes)}"
    yield from prose(lines(folder / "prose.jsonl"))


def prose(pairs: list[Line]) -> Iterator[Row]:
    """Add pairs of messy sentences. A clean one leaves the stale value in no memory of the first sentence's words."""
    changes, others = [[pair for pair in pairs if pair["supersedes"] is kind] for kind in (True, False)]
    clean = 0
    for pair in changes:
        texts, retired = memorize(pair["a"], pair["b"])
        former = [text for text in texts if holds(pair["stale"], text) and text in str(pair["a"]).rstrip(".")]
        kept = all(any(holds(value, text) for text in texts) for value in _values(pair.get("keeps")))
        clean += retired > 0 and not former and str(pair["a"]) not in texts and kept
    if pairs:
        false = sum(memorize(pair["a"], pair["b"])[1] > 0 for pair in others)
        yield "prose: clean supersession", ">= 70 %", share(clean, len(changes))
        yield "prose: false supersession", "<= 2 %", share(false, len(others))


def chain_binding(folder: Path) -> Iterator[Row]:
    """Add chains of corrections, pairs about two things, and sentences that state nothing."""
    chains, negatives, sentences = (lines(folder / f"{name}.jsonl") for name in ("chains", "negatives", "prose"))
    if chains:
        ends = [(memorize(*_values(chain["turns"]))[0], chain["final"]) for chain in chains]
        bound = sum(len(texts) == 1 and holds(final, texts[0]) for texts, final in ends)
        yield "chains bound", ">= 14/15", f"{bound}/{len(chains)}"
    if negatives:
        false = sum(memorize(pair["a"], pair["b"])[1] > 0 for pair in negatives)
        yield "chains: false", "0", f"{false}/{len(negatives)}"
    if sentences:
        with Memory() as memory:
            added = [item for line in sentences for item in memory.add(str(line["text"]))["results"]]
        keyed = sum(not item["key"].startswith("note ") for item in added)
        retired = sum(len(item["retired"]) for item in added)
        yield "sentences without a fact: keyed, retired", "few, 0", f"{keyed}/{len(sentences)}, {retired}"


def _values(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def main(folder: Path) -> int:
    """Print a table, and what it leaves out. Return 1 if there is no data."""
    sizes = [folder / "factconsolidation" / size for size in SINGLE_HOP_GOALS]
    rows = [row for size in sizes if (size / "facts.jsonl").is_file() for row in fact_consolidation(size)]
    rows += [*evolving(folder / "evolving"), *chain_binding(folder / "chain_binding")]
    if not rows:
        print(f"No sets in {folder}. Name the folder that has `evolving`, `chain_binding` and `factconsolidation`.")
        return 1
    print("| what | goal | measured |\n| --- | --- | --- |")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    absent = [f"single hop {size.name} (no data)" for size in sizes if not size.is_dir()]
    absent += [f"{name} (no data)" for name in ("evolving", "chain_binding") if not (folder / name).is_dir()]
    print("\nLeft out: " + "; ".join([*absent, *NOT_MEASURED]) + ".")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT))

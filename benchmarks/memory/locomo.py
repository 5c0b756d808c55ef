"""LoCoMo, if the user has it: are the turns that a question rests on among those that are found?

Its licence does not allow to ship it. `STREAM_CAR_LOCOMO` names the folder that has `locomo10.json`.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from stream_car.memory import Memory
from stream_car.ranking.lexical import bm25

VARIABLE, FILE = "STREAM_CAR_LOCOMO", "locomo10.json"
K = 25


def report() -> Iterator[str]:
    """Yield what was measured, or why nothing was."""
    folder = os.environ.get(VARIABLE)
    path = Path(folder, FILE) if folder else None
    if path is None or not path.is_file():
        yield f"LoCoMo is left out: set {VARIABLE} to the folder that has {FILE}."
        return
    counts: dict[str, list[tuple[bool, bool]]] = {"BM25": [], "Stream-CAR": []}
    for sample in json.loads(path.read_text("utf-8")):
        turns = dict(_turns(sample["conversation"]))
        words = bm25(turns)
        with Memory(extractor=None) as memory:
            for name, text in turns.items():
                memory.add(text, metadata={"turn": name})
            for question in sample["qa"]:
                evidence = {name for name in question.get("evidence", ()) if name in turns}
                if evidence:
                    results = memory.search(str(question["question"]), limit=K)["results"]
                    ours = {str(item["metadata"]["turn"]) for item in results}
                    theirs = set(words.rank(str(question["question"]), K))
                    for system, turns_found in (("BM25", theirs), ("Stream-CAR", ours)):
                        counts[system].append((bool(evidence & turns_found), evidence <= turns_found))
    for system, hits in counts.items():
        n = len(hits)
        either, all_of = (sum(hit[at] for hit in hits) / (n or 1) for at in (0, 1))
        yield f"LoCoMo, {system}: recall@{K} of evidence {either:.3f} (any), {all_of:.3f} (all), n = {n}"


def _turns(conversation: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the turns of all sessions, by their ids."""
    for turns in conversation.values():
        for turn in turns if isinstance(turns, list) else ():
            yield turn["dia_id"], f"{turn['speaker']}: {turn['text']}"

"""A benchmark set small enough to judge by eye: two vulnerabilities, one of them fixed."""

import json
from pathlib import Path

DOCUMENTS = [
    {
        "id": "flaw-1",
        "type": "cve_disclosed",
        "time": "2024-01-01T00:00:00Z",
        "scope": {"product": ["samba"], "cve": ["CVE-2024-00001"]},
        "text": "CVE-2024-00001 lets a remote attacker overflow a buffer in samba.",
    },
    {
        "id": "fix-1",
        "type": "patch_released",
        "time": "2024-02-01T00:00:00Z",
        "scope": {"product": ["samba"], "cve": ["CVE-2024-00001"]},
        "text": "Version 7 is a maintenance release.",
    },
    {
        "id": "flaw-2",
        "type": "cve_disclosed",
        "time": "2024-01-05T00:00:00Z",
        "scope": {"product": ["nginx"], "cve": ["CVE-2024-00002"]},
        "text": "CVE-2024-00002 permits path traversal in nginx.",
    },
]
QUERIES = [
    {
        "id": "fixed",
        "text": "Is samba still affected by CVE-2024-00001?",
        "gold": ["fix-1"],
        "anchor": ["flaw-1"],
        "hop": "T1",
    },
    {
        "id": "open",
        "text": "Is nginx still affected by CVE-2024-00002?",
        "gold": ["flaw-2"],
        "anchor": ["flaw-2"],
        "hop": "T0",
    },
]
EDGES = [{"old": "flaw-1", "new": "fix-1", "rule": "fix", "query": "fixed"}]
ANSWERS = [
    {"id": "fixed", "answer": "patched", "chain": ["flaw-1", "fix-1"]},
    {"id": "open", "answer": "vulnerable", "chain": ["flaw-2"]},
]


def written(data: Path, folder: str = "cvepatchqa") -> Path:
    """The set as files, under the name of one that is known; the directory of all sets."""
    (data / folder).mkdir(parents=True)
    for name, rows in (
        ("documents", DOCUMENTS),
        ("queries.dev", QUERIES),
        ("edges", EDGES),
        ("answers", ANSWERS),
    ):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (data / folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return data

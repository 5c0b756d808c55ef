"""The input of the golden fixtures: all shipped packs and one more, and every kind of input.

Promise: the same bytes each time; nothing here depends on a clock.
"""

import json
from pathlib import Path

import stream_car
from stream_car import rule_packs
from stream_car.core.rules import Ruleset

DEMO = Path(stream_car.__file__).parent / "demo" / "feed.jsonl"
MENUS = """name = "menus"

[types]
menu = "What a canteen serves."
menu_cancelled = "It does not."
menu_note = "What is to be read with it."

[keys.canteen]
fold = "lower"

[keys.day]

[[rules]]
name = "cancelled-voids-menu"
superseding = "menu_cancelled"
superseded = "menu"
scope = ["canteen", "day"]

[[rules]]
name = "later-menu"
superseding = "menu"
superseded = "menu"
scope = ["canteen", "day"]
differ_on = ["dishes"]

[[rules]]
name = "note-amends-menu"
superseding = "menu_note"
superseded = "menu"
scope = ["canteen", "day"]
effect = "amend"
"""
CROWD = 700  # members of one scope: more than a header, and than one page, can hold
FAR = "2900-01-01T00:00:00Z"


PACKS = ("compliance", "facts", "incident", "legal", "medical", "security", "standards")


def ruleset() -> Ruleset:
    """Return the packs that were shipped when the data was written, and the one above."""
    return rule_packs.load_texts(PACKS, {"menus": MENUS})


def _menu(name: str, day: int, kind: str = "menu", **more: object) -> dict[str, object]:
    scope: object = {"canteen": ["North, Hall=1"], "day": [f"d{day}"]}
    return {"id": name, "type": kind, "time": f"2024-03-{day + 1:02}T08:00:00Z", "scope": scope, **more}


def _inputs() -> list[dict[str, object]]:
    crowd: list[dict[str, object]] = [
        {
            "id": f"crowd-{number}",
            "type": "advisory",
            "time": f"2024-01-{number % 28 + 1:02}T00:00:00Z",
            "order": number,
            "scope": {"cve": ["CVE-2024-0001"], "package": ["crowded"]},
            "title": f"Advisory number {number} of a crowd",
        }
        for number in range(CROWD)
    ]
    linked = [
        _menu("linked-1", 1, title="Soup", attributes={"dishes": ["soup"]}),
        _menu("linked-2", 2, title="Stew", supersedes=["linked-1"], dishes=["stew"]),
        _menu("linked-3", 3, title="Pie", superseded_by=["nowhere"], dishes=["pie"]),
        _menu("linked-4", 4, title="A word on soup", kind="menu_note", amends=["linked-2"]),
        _menu("ring-1", 5, supersedes=["ring-2"]),
        _menu("ring-2", 6, supersedes=["ring-1"]),
        _menu("edition-1", 7, scope={"record": ["weekly"], "canteen": ["South"]}),
        _menu("by-record", 8, supersedes=["weekly"]),
    ]
    ruled = [
        _menu("menu-a", 10, title="Fish", dishes=["fish"]),
        _menu("menu-b", 10, order=1, title="Fish again", dishes=["fish"]),
        _menu("menu-c", 10, order=2, title="Beans", dishes=["beans"]),
        _menu("menu-d", 11, title="Rice", dishes=["rice"]),
        _menu("menu-d-off", 11, "menu_cancelled", order=1, title="Kitchen closed"),
        _menu("menu-d-note", 11, "menu_note", order=1, title="Bring your own"),
        _menu("menu-far", 12, time=FAR, title="A feast to come"),
    ]
    corrected: list[dict[str, object]] = [
        _menu("menu-b", 10, order=1, revision=2, title="Fish, corrected", dishes=["fish", "chips"]),
        _menu("menu-e", 13, title="Gone"),
        {"id": "menu-e", "retracted": True},
        _menu("menu-moved", 14, title="Moved"),
        _menu("menu-moved", 15, revision=2, title="Moved indeed"),
        {"id": "never-said", "retracted": True, "revision": 3},
        {"id": "crowd-7", "retracted": True},
        {**crowd[8], "revision": 2, "time": "2024-02-01T00:00:00Z"},
    ]
    rejected: list[dict[str, object]] = [
        _menu("menu-a", 10, title="Another text under the same revision"),
        {"id": "untyped", "type": "no-such-type", "time": FAR},
        {"id": "timeless", "type": "menu"},
    ]
    fix: dict[str, object] = {
        "id": "crowd-fix",
        "type": "release_note",
        "time": "2024-01-15T00:00:00Z",
        "scope": {"cve": ["CVE-2024-0001"], "package": ["crowded"]},
        "title": "A release that ends half of them",
    }
    again: list[dict[str, object]] = [crowd[0], _menu("menu-b", 10, order=1, title="Fish again", dishes=["fish"])]
    far = {**crowd[1], "id": "crowd-far", "time": FAR}
    return [*crowd, *linked, *ruled, *corrected, *rejected, fix, *again, far]


def inputs() -> list[bytes]:
    """Return everything that is published, in order."""
    documents = [json.dumps(fields, separators=(",", ":")).encode() for fields in _inputs()]
    return [*DEMO.read_bytes().splitlines(), *documents, b"no JSON", b'{"id": "\xff"}', b"[]"]

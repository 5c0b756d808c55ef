"""Rule packs, both shipped and user-written; `docs/rules.md` describes the format.

Promise: what loads is free of contradictions, and what does not load reports everything that is wrong with it at
once. Rules are data: no expressions, no code. Cost: reading a few small files.
"""

from stream_car.rule_packs.loader import load, load_texts, read_pack, shipped_names, with_shipped_words
from stream_car.rule_packs.report import Report, RuleConnection, derived_for, examine_pack, invent_documents

__all__ = [
    "Report",
    "RuleConnection",
    "derived_for",
    "examine_pack",
    "invent_documents",
    "load",
    "load_texts",
    "read_pack",
    "shipped_names",
    "with_shipped_words",
]

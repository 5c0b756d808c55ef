"""Rule packs, both shipped and user-written; `docs/rules.md` describes the format.

Promise: what loads is free of contradictions, and what does not load reports everything that is wrong with it at
once. Rules are data: no expressions, no code. Cost: reading a few small files.
"""

from stream_car.rule_packs.loader import load, load_sent, read_pack, shipped
from stream_car.rule_packs.report import Connection, Report, examine, invent

__all__ = ["Connection", "Report", "examine", "invent", "load", "load_sent", "read_pack", "shipped"]

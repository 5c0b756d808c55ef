"""Typed values in a sentence: numbers with units, versions, paths, endpoints, identifiers, times, names.

Promise: a value is what a reader would put in a field of a form. A word that only looks like prose is none.
"""

import re

from msgspec import Struct

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
_UNITS = {
    "duration": "ms|milliseconds?|s|secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?|months?|years?",
    "size": "bytes?|[KMGT]i?B|kilobytes?|megabytes?|gigabytes?|terabytes?",
    "share": "%|percent",
    "money": "euros?|dollars?|pounds?|EUR|USD|GBP|CHF",
    "weight": "tons?|tonnes?|kg|kilos?|grams?|mg",
    "length": "km|kilomet(?:er|re)s?|met(?:er|re)s?|cm|mm|miles?|feet",
    "temperature": "degrees|°C|°F",
}
UNIT_KINDS = [(kind, re.compile(rf"(?:\s|-|\d|^)(?:{units})$", re.IGNORECASE)) for kind, units in _UNITS.items()]
_UNIT = "|".join(_UNITS.values())
_OPERATOR = r"(?:[<>=~!^]=?|\^|~>|v)?"
_PATTERNS: dict[str, str] = {
    "url": r"[a-z][a-z0-9+]*://[^\s,;]*[\w/]",
    "network": r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:[:/]\d+)?(?![\w.]*\d)",
    "email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}",
    "endpoint": r"(?:(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+)?/\.?[\w{}:<>*-]+(?:[/.][\w{}:<>*-]+)*/?(?!\w)",
    "quoted": r"(?<!\w)(?:'[^']+'|\"[^\"]+\"|`[^`]+`|“[^”]+”)(?!\w)",
    "handle": r"(?<![\w&])[#@][A-Za-z][\w-]*",
    "clock": r"\b(?:\d{1,2}:\d\d(?:\s*(?:am|pm|UTC))?|\d{1,2}\s*(?:am|pm))\b",
    "weekday": rf"\b(?:{_DAYS})s?\b",
    "time": (
        rf"\b(?:(?:{_MONTHS})\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?|\d{{1,2}}\s+(?:{_MONTHS})(?:\s+\d{{4}})?"
        rf"|\d{{4}}-\d\d-\d\d|\d{{1,2}}(?:st|nd|rd|th))\b"
    ),
    "version": (
        rf"(?:(?<=[=:@])|(?<![\w.=@:])){_OPERATOR}\d+(?:\.\d+)+(?:[-+.]?[a-z]+[\w.-]*\w|-\w+)?(?![\w/])"
        r"|(?<=[=:@])\^?v?\d[\w.-]*\w|(?<=[=:@])v?\d+(?![\w.])|(?<![\w.])v\d+(?:\.\d+)*(?![\w/])|[<>~^]=?\s?\d+(?:\.\d+)*"
    ),
    "number": (
        rf"(?<![\w.=@:/-])(?:[$€£]\s?)?-?\d+(?:[,_]\d+)*(?:\.\d+)?(?:-\d+)*(?:[kKM](?!\w))?(?:[\s-]?(?:{_UNIT})(?!\w))?(?![\w/])(?!\.\d)"
        rf"|\b(?:{NUMBERS})\b(?:\s(?:{_UNIT})\b)?|(?<=every )(?:hour|day|week|month|year)\b"
        r"|\b(?:an?|half an)\s(?:hour|minute|day|week|month|year)\b"
    ),
    "path": (
        r"(?<![\w/])(?:[\w.-]+/)+[\w.-]*\w"
        r"|(?<![\w/])[\w-]+\.(?:py|js|ts|go|rs|rb|java|c|h|cpp|toml|yaml|yml|json|ini|cfg|conf|config|env|txt|xml|md|sql|sh"
        r"|properties|lock|gradle|mod|html|css|csv|log)(?!\w)"
    ),
    "identifier": (
        r"(?<![\w.])[A-Za-z_][\w.]*\([^()]*\)|(?<![\w.])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+(?!\w)"
        r"|(?<!\w)[A-Z][A-Za-z0-9]*(?:-[A-Z0-9][A-Za-z0-9]*)+(?!\w)"
        r"|(?<![\w.])_?[a-z]+(?:[A-Z][a-z0-9]+)+(?!\w)|(?<![\w.])(?:[A-Z][a-z0-9]+){2,}(?!\w)"
        r"|(?<![\w.])[a-z_]\w*(?:\.[a-z_]\w*)+(?!\w)"
        r"|(?<![\w-])[a-z]+(?:-[a-z]+)*-\d+[a-z]?(?!\w)|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b"
        r"|(?<![\w.-])(?:[A-Z]{2,}\d+[A-Za-z0-9]*|\d{1,3}[A-Z]|[A-Z]\d{1,3})(?![\w-])"
    ),
    "level": r"\b(?:true|false|enabled|disabled|True|False|null)\b"
    r"|(?:(?<=is )|(?<=are )|(?<=to )|^)(?:on|off)\b(?=$| in | for | on )",
    "acronym": r"(?<![\w.])[A-Z][A-Z0-9]+(?![\w.-]\w)",
    "name": r"(?<![\w.-])[A-Z][\w'’]*[a-z]\w*(?:[ -](?:(?:de|van|von|of|the) )?[A-Z][\w'’]*)*(?!\w)",
}
_ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))


class TypedValue(Struct, frozen=True):
    """A typed value at a place of a sentence, from `start` to `end`."""

    type: str  # a key of `_PATTERNS`
    text: str
    start: int
    end: int

    @property
    def kind(self) -> str:
        """What another value must share to stand in its place: the type, and of a number what it counts."""
        if self.type == "number":
            return next((kind for kind, pattern in UNIT_KINDS if pattern.search(self.text)), "number")
        if self.type == "path" and re.fullmatch(r"[A-Z][a-z]+/[A-Z]\w+", self.text):
            return "name"  # of a time zone
        return "name" if self.type in ("acronym", "identifier", "quoted") else self.type


def clean(value: TypedValue) -> str:
    """Return a value without its quotes."""
    return value.text.strip("'\"`“”").lstrip("=")


def values_in(text: str) -> list[TypedValue]:
    """Return the typed values of a text, in order."""
    matches = _ANY.finditer(text)
    return [
        TypedValue(match.lastgroup, match.group(), match.start(), match.end()) for match in matches if match.lastgroup
    ]

"""Noun phrases as subjects of keys: the same thing in other words gets the same subject."""

import re

from stream_car.memory.keys import IS, MemoryKey, comparable

_DROPPED = frozenset(["the", "our", "official", "current", "new", "latest", "updated", "present", "actual"])
_REJECTED = frozenset(
    [
        "i",
        "it",
        "there",
        "that",
        "this",
        "these",
        "those",
        "which",
        "who",
        "what",
        "here",
        "such",
        "he",
        "she",
        "they",
        "you",
        "his",
        "her",
        "their",
        "its",
        "everything",
        "nothing",
        "everyone",
        "anything",
        "something",
        "someone",
        "nobody",
        "each",
        "every",
        "all",
        "none",
        "others",
        "most",
        "many",
        "few",
        "several",
        "both",
        "no",
        "some",
        "any",
        "a",
        "an",
        "old",
        "former",
        "previous",
        "first",
        "last",
        "only",
        "next",
        "one",
        "ones",
        "best",
        "worst",
        "typical",
        "average",
        "which",
        "when",
        "where",
        "why",
        "how",
        "as",
    ]
)
_QUANTIFIERS = frozenset(["all", "each", "every", "any"])  # which may stand inside: "the base class of all importers"
_TRANSIENT = frozenset(  # of which there is one after another
    [
        "bug",
        "error",
        "problem",
        "issue",
        "mistake",
        "fix",
        "crash",
        "failure",
        "question",
        "answer",
        "difference",
        "reason",
        "point",
        "thing",
        "idea",
    ]
)
_HEADS = frozenset(["setting", "value", "variable", "option", "parameter"])  # "the X setting" is X
_WORDS_MAX = 12


def subject_words(text: str, *, is_we_allowed: bool = False) -> list[str] | None:
    """Return the words of a noun phrase in one order, or `None` if it names nothing for certain.

    "The deadline for X", "X's deadline" and "the X deadline" have the same words.
    """
    text = text.strip()
    if re.search(r"[,;?!]", text.rstrip(",")) or "::" in text:
        match = re.fullmatch(r"(?:In|For|On|At|in|for|on|at) ([^,;?!]+), ([^,;?!]+)", text)
        if match is None:
            return None
        text = f"{match[2]} for {match[1]}"
    match = re.fullmatch(r"(?:In|For|On|in|for|on) (.+?) (the .+)", text)
    text = f"{match[2]} for {match[1]}" if match is not None else text
    parts = re.split(r" (?:of|for|on|in|at) ", re.sub(r"['’]s?(?= )", "", comparable(text)))
    words = [word for part in reversed(parts) for word in part.split() if word not in _DROPPED]
    first = parts[0].split()[:1]
    if not words or len(words) > _WORDS_MAX or (words[0] in ("my", "your") and len(words) == 1):
        return None
    if first and first[0] == "we":
        return words if is_we_allowed and len(words) == 1 else None
    if is_we_allowed or not first or first[0] not in ("a", "an"):
        words = [word for word in words if word not in ("a", "an")]
        first = [] if first and first[0] in ("a", "an") else first
    if len(words) == 1 and words[0] in _TRANSIENT:
        return None
    if _REJECTED.difference(_QUANTIFIERS).intersection(words) or "we" in words or (first and first[0] in _REJECTED):
        return None
    if len(words) > 1 and words[-1] in _HEADS and re.search(r"[_.\d]", words[-2]):
        words = words[:-1]
    return words


def subject_key(words: list[str], kind: str, scope: str = "") -> MemoryKey:
    """Return the key of what a thing is. Another kind of value answers another question, so it has another key."""
    place = [word for word in comparable(scope).split()[1:] if word not in _DROPPED]
    relation = words[-1] if len(words) > 1 else IS
    relation = "chief executive" if relation == "ceo" else relation  # as the relations of the vocabulary are called
    subject = " ".join([*place, *(words[:-1] or words)])
    return MemoryKey(subject, relation if kind == "name" else f"{relation} ({kind})")

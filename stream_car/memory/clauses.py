"""Sentences as clauses: each with a verb of its own, and the subject of the clause before it if it has none."""

import re
from collections.abc import Iterator

from stream_car.memory.values import NUMBERS, values_in
from stream_car.memory.vocabulary import (
    ADDING,
    DIVISION,
    PLURAL,
    ROLE,
    STRONG,
    THIRD_PERSON,
)

_VALUE = rf"(?:[$€£]?\d[\w.:,]*|(?:{NUMBERS}))(?: (?!(?:and|by|for|on|in|at|as|under|during)\b)\w+)?"
_APART = r"(?:by|for|on|in|at|as|under|during|over) (?!average)[^,;\d]+?"
SHARED = re.compile(  # "is 21 degrees by day and 17 by night": two values of two parts
    rf"(?P<head>.+? )(?P<v>{_VALUE}) (?P<m>{_APART}),? and (?:at )?(?P<v2>{_VALUE}) (?P<m2>{_APART})"
)
VERB_LIKE = re.compile(rf"[a-z]+[^\Ws]s (?:(?:on|at|to|for|in|about|up to) )?(?:the |an? |\d|(?:{NUMBERS}) )")
PARTICIPLE = re.compile(r"(?:[a-z]{2,}ed|fed|sent|kept|held|run|made|sold|paid|built|written|led) (?!by )")
FRONTED = re.compile(  # "When the cart is empty, the": what stands before the comma belongs to the clause after it
    r"(?:In|Inside|Within|At|On|For|Under|When|Whenever|While|Once|During|After|Before|With|Since|Because|As) [^,]+,"
)
_SPLIT = re.compile(
    r"\s*;\s+|,\s+so\s+(?!(?:that|far|much|many|long|do|does|is|are)\b)|\s+so\s+(?=(?:the|my|our|[A-Z][a-z]+)\b)|,?\s+(?:and|but|while|whereas)\s+|,\s+(?=(?:the|my|our|[A-Z])\w*)"
)
_PRICE = re.compile(r"[a-z]+ (?:is|are|costs?) (?:still )?[\d$€£]")
_OWN_SUBJECT = re.compile(r"(?:the |my |our |[Nn]obody |[Ee]very(?:one|body) |[A-Z])")


def clauses_of(sentence: str) -> Iterator[str]:
    """Split where a clause with a verb of its own begins. One without a subject gets that of the clause before it."""
    start, subject = 0, _left(sentence)
    fronted = FRONTED.match(sentence)
    for match in _SPLIT.finditer(sentence, fronted.end() if fronted is not None else 0):
        rest = sentence[match.end() :]
        words = rest.split()
        head = _SPLIT.split(rest, maxsplit=1)[0]
        before = sentence[start : match.start()]
        is_apart = ";" in match.group()
        if (
            not is_apart
            and _left(before) is None
            and not _has_role(before)
            and " left" not in before
            and not _PLAIN_PAST.search(before)
        ):
            continue
        if words and subject is not None and len(head.split()) > 1 and _is_verb(words):
            yield before
            be = " is" if PARTICIPLE.match(rest) and re.search(r" (?:is|are) ", before) else ""
            yield from clauses_of(f"{subject}{be} {rest}")
            return
        is_own = _OWN_SUBJECT.match(rest) or match.group().startswith((", and ", ", so ", ";")) or _PRICE.match(rest)
        if is_own and (_left(head) is not None or _has_role(head)):
            yield before
            start, subject = match.end(), _left(head)
    yield sentence[start:]


def parts_of(clause: str) -> list[str]:
    """Return a clause once for each of two values that it gives to two parts of its subject."""
    match = SHARED.fullmatch(clause)
    if match is None or _left(clause) is None:
        return [clause]
    return [f"{match['head']}{match['v']} {match['m']}", f"{match['head']}{match['v2']} {match['m2']}"]


def _is_verb(words: list[str]) -> bool:
    """Return whether a clause that has no subject begins here."""
    if words[0] in THIRD_PERSON:
        return True
    return any(form.match(" ".join(words)) for form in (VERB_LIKE, PARTICIPLE))


_PLAIN_PAST = re.compile(r"\b\w+ed\b")


def _has_role(clause: str) -> bool:
    if DIVISION.fullmatch(clause) is not None:
        return True
    return any(pattern.fullmatch(clause) for _, pattern in ROLE) or bool(re.search(r"\b(?:merges|works)\b", clause))


def _left(clause: str) -> str | None:
    """Return what stands before the verb of a clause."""
    split = verb_of(clause)
    return clause[: split[0]].rstrip() if split is not None else None


def verb_of(clause: str) -> tuple[int, int, bool] | None:
    """Return where the verb of a clause begins and ends, and whether it is one of the known verbs."""
    words = list(re.finditer(r"[^\s,]+", clause))
    for index, match in enumerate(words[1:], start=1):
        word, before = match.group(), words[index - 1].group()
        is_plural = before.lower() == "we" or any(
            re.search(r"[^'’]s$", other.group()) for other in words[: min(index, 2)]
        )
        if (word in THIRD_PERSON or (word in PLURAL and is_plural)) and before.lower() not in ("the", "our", "my"):
            return match.start(), match.end(), True
    first = next((value.start for value in values_in(clause) if value.type in STRONG), len(clause))
    others = [
        match
        for match in words[1:]
        if re.fullmatch(r"[a-z]{3,}[^s\W]s", match.group()) and match.end() < first and match.group() not in ADDING
    ]
    if len(others) == 1 and words[0].group() + " " != clause[: others[0].start()].replace("the", "").strip():
        return others[0].start(), others[0].end(), False
    return None

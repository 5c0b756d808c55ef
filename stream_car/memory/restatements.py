"""Which sentence a new one restates with another value: both are equal but for it, whatever their verb.

Promise: what differs is one run of at most four words, where one value stands: a typed value of the same kind, or
words after a predicate that has one object. Questions, plans, additions and what happened once restate nothing, and
neither does a sentence about another subject.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from stream_car.memory.values import TypedValue, values_in
from stream_car.memory.vocabulary import WHEN

SPAN_MAX = 4  # words that may differ
SHARED_MIN = 3  # words that must not
_WORD = re.compile(r"[^\s=:@]+|[=:@]+")
_DOUBT = re.compile(
    r"\?|\b(?:would|could|might|(?:may|should) be|maybe|perhaps|probably|plan(?:s|ned|ning)?|will|"
    r"going to|consider\w*|think\w*|guess|propos\w+|suggest\w*|wants? to|wanted|hop(?:e|es|ing)|wish\w*|tentative|"
    r"draft|was|were|had|did|used to|formerly|ago|yesterday|last|no longer|also|too|as well|additionally|another|"
    r"either|or|other|besides|sometimes|often)\b",
    re.IGNORECASE,
)
_ONCE = re.compile(  # simple past: it happened, and another time it happened otherwise
    r"\b(?:took|ran|went|gave|got|sent|saw|met|came|left|lost|won|bought|sold|began|became|wrote|said|ate|spent|paid|fell|"
    r"rose|grew|broke|chose|found)\b"
    r"|(?<!\S)(?P<before>\S*) (?P<past>[a-z]{3,}ed)\b(?! (?:in|at|on|to|by|with|as|under|from|via|for|after)\b)"
)
_NOT_PAST = re.compile(  # before a participle: "is throttled", "for malformed input"
    r"(?:is|are|be|been|being|gets?|stays?|keeps?|an?|the|our|its|their|very|each|every|all|any|no|not|for|of|in|on|with|by|"
    r"to|from|as|when|if|unless|once|and|[a-z]+ly)"
)
_NO_SUBJECT = re.compile(
    r"(?:he|she|it(?! is .* that )|they|this|that|these|those|there|here|one|some|most|many|few|several|"
    r"an? (?:\w+ )?(?:of (?:mine|ours)|friend|colleague|cousin|neighbou?r))\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(  # predicates that are true of several objects at once
    r"\b(?:includ\w+|contain\w*|support\w*|list\w*|cover\w*|lik\w+|lov\w+|know\w*|speak\w*|mention\w*|fix\w*|block\w*|"
    r"test\w*|affect\w*|link\w*|refer\w*|export\w*|import\w*|defin\w+|break\w*|clos\w+|depend\w*|duplicat\w+|report\w*|"
    r"read|reads|writes?|accept\w*|requir\w+|needs?|has|have|owns?|review\w*|offer\w*|provid\w+|see|sees|seen|used|"
    r"may [a-z]+|shared|known|added|visit\w*|play\w*|work\w*|stud(?:y|ies|ied)|grants?|allows?|any|some|each|one)\s"
    r"(?:(?!\bis\b|\bare\b)\S+\s){0,2}$"
)
_COMPARED = re.compile(r"\b(?:than|over|above|below|under|exceeding|up to|at most|at least|within|beyond|every)\s$")
_COUNTED = re.compile(
    r"\b(?:fix|clos|block|mention|link|refer|report|duplicat|resolv|see|support|list)\w*\s(?:\S+\s)?$"
)
_BE_NEXT = re.compile(r"\s(?:then|and|or|is|are|has|have|goes|does)\b")
_VERB_NEXT = re.compile(r"\s(?:then|and(?! you)|or|is|are|has|have|goes|does|[a-z]{2,}[^\Wsui]s)\b")
_NUMBER = re.compile(r"\d[\d.,]*[a-zA-Z%]{0,4}")
_CLEFT = re.compile(r"\s(?:is|are) (?:what|the|how|where)\b")
_LAST = re.compile(
    r"\W*$|\W*\s[(\[]|\s(?:in|on|at|to|from|by|with|as|under|via|for|per|through|when|if|unless|and you)\b"
)
_ORDER = re.compile(
    r"(?:^|, )(?:please )?(?:ask|call|use|send|run|import|see|open|pass|set|query|fetch|read|try|visit|get|hit|add)\s"
    r"(?:\S+\s){0,4}$",
    re.IGNORECASE,
)
_OF_PRONOUN = re.compile(r"\b(?:we|you|I|may|can|must|should|shall)\s(?:[a-z]+ly )?[a-z]+\s")
_PLACED = re.compile(r"^(?:\S+\s+){2,}\S*(?:\b(?:in|on|at|to|from|by|with|as|under|via|for|after|every)|[:=])\s$")
_AT_VERB = re.compile(
    r"\b(?:is|are|equals?|stands?|goes|go|to|[a-z]{2,}[^\Wsui]s|[a-z]+(?:ies|oes|[cgz]es|shes|ches|sses|xes))\s"
)
_TIMED = re.compile(
    r"(?:\b(?:is|are|(?:start|end|close|open|begin|expire|happen|fall|rotate|run|execute|reset)s?|due|takes place|"
    r"kicks off|rebuilt|renewed|scheduled) "
    r"(?:due |set |scheduled |planned )?(?:at|on|for|by|from|until|every)?(?: the)?|:) ?$"
)
_DOES = re.compile(r"^(?:Raising|Calling|Setting|Running|Passing|Sending|Using|Returning) $")
_ONE_OBJECT = re.compile(
    r"\b(?:named|called|(?:is|are) (?:[a-z]+ly )?(?:(?:issu|stor|host|serv|export|process|handl|manag|maintain|render|"
    r"produc|hash|encrypt|sign|deploy|locat|own|fund|pinn?|power|publish|generat|comput|calculat|format|cach|logg?|"
    r"schedul|measur|deliver|shipp|packag|compil|pars|validat|represent|mount|rout|monitor|trigger|configur|archiv|queu|"
    r"index|label|pric|capp|limit|protect|review)ed|done|made|written|kept|sent|run|built|rebuilt|held|led|paid|set|"
    r"drawn|hidden|found) (?:by|with|in|on|at|to|from|as|under|via|through|into|behind|after)"
    r"|defaults? to|runs? (?:on|under|behind)|rel(?:ies|y) on (?:the [a-z]+)?|happens? (?:with|in|on|at|via|through)|"
    r"lands? (?:in|on|under)|li(?:ves?|es?) (?:in|on|under|at)|resides? (?:in|on)|sits? (?:in|on|behind|under)|"
    r"points? (?:to|at)|resolves? to|goes? through|keys on|raises|rounds(?: half)?|sorts? by|"
    r"starts? (?:from|with)|ends? (?:in|with)|begins? (?:with|in)|comes? (?:from|as)|builds? (?:with|on)|"
    r"(?:returns?|carries|carry|sends?|gives?|shows?|stores?|keeps?) (?:its|the|their|all) [a-z]+ (?:under|as|in|by|at)"
    r"(?: the [a-z]+)?)(?: (?:the|an?|our))?\s$"
)
_ONE_PERSON = re.compile(
    r"\s(?:is|are) (?:(?:still )?on call|responsible|in charge|the (?:\w+ )?(?:lead|owner|head|chair|contact|manager|"
    r"maintainer|admin\w*|deputy|author|editor|president))\b"
    r"|\s(?:leads|runs|chairs|heads|manages|maintains|approves|moderates|looks after|takes care of|signs off)"
    r"(?: on)? (?:the|our|all) "
)
_NEGATION = re.compile(r"\b(?:not|never|no|none)\b")
_LABEL = re.compile(  # "License type: ", but not "To do: ", which heads many
    r"(?!(?:to[ -]?do|note|nb|fyi|ps|re|reminder|idea|question|answer|warning|tip|bug|fix|issue|task|update|"
    r"correction)\b)"
    r"(?:[\w-]+ ){0,4}[\w-]*[^\Ws]: ",
    re.IGNORECASE,
)
_OPPOSITES = [{"on", "off"}, {"up", "down"}, {"open", "closed"}, {"public", "private"}, {"yes", "no"}]
_ENDING = 4  # letters at the end that two opposites share: ascending, descending


class _Place(Struct, frozen=True):
    """The part of a sentence, from `start` to `end`, in which it differs from another."""

    sentence: str
    start: int
    end: int

    @property
    def head(self) -> str:
        return self.sentence[: self.start]

    @property
    def words(self) -> str:
        return _bare(self.sentence[self.start : self.end])

    @property
    def tail(self) -> str:
        return self.sentence[self.end :]

    @property
    def values(self) -> list[TypedValue]:
        """The typed values here. Names have no type, and `2gb` is a number."""
        here = [value for value in values_in(self.sentence) if value.start < self.end and value.end > self.start]
        typed = [value for value in here if value.type not in ("name", "acronym")]
        number = _NUMBER.fullmatch(self.words)
        if typed or number is None:
            return typed
        return [TypedValue("number", self.words, self.start, self.start + len(self.words))]

    def around(self, value: TypedValue) -> tuple[str, str]:
        """What stands here before and after a value."""
        before, after = max(value.start, self.start), min(value.end, self.end)
        return _bare(self.sentence[self.start : before]), _bare(self.sentence[after : self.end])


def restated_values(new: str, old: str) -> tuple[str, str] | None:
    """Return the value of a sentence and that of an older one, if it says the same with another value in one place."""
    if _DOUBT.search(new) or _DOUBT.search(old) or _NO_SUBJECT.match(new):
        return None
    places = _difference(new, old)
    if places is None or _happened(places[0].head + places[0].tail) or not _are_values(*places):
        return None
    return places[0].words, places[1].words


def _are_values(place: _Place, former: _Place) -> bool:
    if _LABEL.fullmatch(place.head):
        return True
    if len(place.values) == len(former.values) == 1:
        [value], [old_value] = place.values, former.values
        is_all = place.around(value) == former.around(old_value)
        return is_all and value.kind == old_value.kind and _is_value(place, value)
    return not place.values and not former.values and _is_object(place, [place.words.lower(), former.words.lower()])


def _difference(new: str, old: str) -> tuple[_Place, _Place] | None:
    """Return where two sentences differ, if that is one run of few words in each and they share enough others."""
    words, olds = list(_WORD.finditer(new)), list(_WORD.finditer(old))
    texts, old_texts = [word[0] for word in words], [word[0] for word in olds]
    before = _shared(texts, old_texts)
    after = _shared(texts[before:][::-1], old_texts[before:][::-1])
    is_assigned = before > 0 and texts[before - 1] in ("=", "==", ":")
    if before + after < SHARED_MIN - is_assigned:
        return None
    if not all(1 <= len(runs) - before - after <= SPAN_MAX for runs in (words, olds)):
        return None
    place, former = (
        _Place(text, runs[before].start(), runs[len(runs) - after - 1].end())
        for text, runs in ((new, words), (old, olds))
    )
    return place, former


def _shared(words: Sequence[str], others: Sequence[str]) -> int:
    pairs = enumerate(zip(words, others, strict=False))
    return next((at for at, (word, other) in pairs if word != other), min(len(words), len(others)))


def _happened(text: str) -> bool:
    return any(not match["past"] or not _NOT_PAST.fullmatch(match["before"].lower()) for match in _ONCE.finditer(text))


def _is_value(place: _Place, value: TypedValue) -> bool:
    """Return whether a typed value is the value of a statement, not a part of the name of what it is about."""
    head, tail = place.head, place.sentence[max(value.end, place.end) :]
    if not head:
        return _CLEFT.match(tail) is not None
    if (_COUNTED if value.type == "number" else _SEVERAL).search(head):
        return False
    if (value.type in WHEN and _TIMED.search(head) is None) or (head.endswith(" raises ") and not _bare(tail)):
        return False  # one does many things at different times, and code may raise several errors
    is_number = value.type == "number"
    is_after_verb = any(pattern.search(head) for pattern in (_AT_VERB, _PLACED, _OF_PRONOUN))
    is_last = _LAST.match(tail) is not None and (len(head.split()) > 1 or head[-1] in "=:@")
    if is_after_verb or (not is_number and (_ORDER.search(head) or is_last)) or head[-1] in "=:@":
        return (_BE_NEXT if is_number else _VERB_NEXT).match(tail) is None
    return _COMPARED.search(head) is not None or _DOES.match(head) is not None


def _is_object(place: _Place, words: Sequence[str]) -> bool:
    """Return whether words without a type are what only one thing can be at a time."""
    head = place.head
    if not head:
        return place.words.istitle() and _ONE_PERSON.match(place.tail) is not None
    if any(_NEGATION.search(text) for text in words) or _SEVERAL.search(head):
        return False
    if head.endswith((" is ", " are ", ": ", "= ", "=")):
        are_alike = all(word.isalpha() and len(word) > _ENDING for word in words)
        return set(words) in _OPPOSITES or (are_alike and words[0][-_ENDING:] == words[1][-_ENDING:])
    return _ONE_OBJECT.search(head) is not None


def _bare(text: str) -> str:
    return text.strip(".,;:!'\"`“”()")

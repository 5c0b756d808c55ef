"""Sentences as templates: the key is all that stands around a value, so only the same sentence has the same key.

Promise: of two sentences with the same key, nothing but one value of one kind differs, in a place where values stand.
"""

import re

from stream_car.memory.keys import IS, MemoryKey, comparable
from stream_car.memory.subjects import subject_key, subject_words
from stream_car.memory.values import TypedValue, clean, values_in
from stream_car.memory.vocabulary import (
    ADDING,
    AFTER_FIRST,
    MANY,
    NOT_FREE,
    PER,
    STRONG,
)

KINDS = (
    "function|class|helper|method|decorator|constant|module|task|exception|command|hook|script|job|component|package|"
    "library|table|column|struct|interface|macro|type|trait|enum|variable|flag|procedure|subroutine|routine|mixin|middleware|"
    "handler|worker|service class|query|view|target|fixture|plugin|operator|utility|predicate|factory|event|signal|"
    "callback|coroutine|routine|listener|subscriber|resolver|reducer|selector|provider|adapter|filter|validator|serializer|parser|formatter|"
    "mutation|step|builder|wrapper|iterator|generator|trigger|migration|role|metric|pipeline|workflow|model|schema|route|"
    "endpoint|header|cookie|parameter|field|property|attribute|template|package|namespace"
)
NAMED = re.compile(
    rf"[Tt]he (?P<kind>(?:[\w-]+ )?(?:{KINDS})) (?P<v>(?!(?:of|for|that|which|to|in|on|with|from|is|are|at|by)\b)"
    r"[^ (]+(?:\([^)]*\))?(?: [\w-]+)??)(?P<place> (?:of|in|from) (?:the )?(?:\w+ )?[\w./]+)?? (?P<p>(?:is|[a-z]+s) .*)"
)
USE_TO = re.compile(
    r"(?:[Cc]all|[Uu]se|[Ii]nvoke|[Rr]un|[Ii]mport) (?P<v>(?:[A-Z]+ |make |npm run |just )?[^ (]+(?:\([^)]*\))?)"
    r" (?P<p>(?:to|for|when|whenever) .+)"
)
TO_USE = re.compile(
    r"(?P<p>(?:[Tt]o|[Ff]or|[Ww]hen) .+?),? (?:please )?(?:you )?(?:call|use|invoke|run|import|send|issue) "
    r"(?P<v>(?:[A-Z]+ |make |npm run |just )?[^ (]+(?:\([^)]*\))?)"
)
DOING = re.compile(
    r"is (?:(?:raised|thrown|called|used|invoked|fired|the) )|runs (?:once|when|after|before|whenever|if|on) "
)
CHOICE = re.compile(
    r"(?P<np>.+?) (?:uses|use|runs|has|follows|is on|are on|runs on|applies|runs in|is in|keeps) (?:the|a|an)"
    r" (?P<v>['\"]?[\w.+-]+['\"]?) (?P<head>algorithm|strategy|scheduler|driver|backend|codec|format|protocol|engine|"
    r"policy|method|scheme|theme|plan|dialect|license|tier|mode|profile|layout|encoding|locale|branch|cipher|adapter|template)"
)
COMMAND = re.compile(
    r"[Tt]he (?P<np>(?:command|shortcut) to .+?) is (?P<v>[\w.+/-]+(?: [\w.+/-]+){1,3})"
    rf"|[Tt]he (?P<kind>{KINDS}) (?:that|which) (?P<does>[a-z]+s .+?) is (?P<name>(?:[A-Z]+ )?\S*[A-Z_.(\d/]\S*)"
)
NO_SUBJECT = re.compile(  # what a sentence begins with that is about nothing that lasts
    r"(?:(?:[Ww]e|I) have an?|(?:[Ee]ach|[Aa]ll|[Bb]oth|[Hh]alf|[Pp]art) of|[Oo]ne|"
    r"[Ss]ome|[Mm]ost|[Mm]any|[Ff]ew|[Ss]everal|"
    r"[Oo]thers?|[Aa]nother|[Ii]t|[Tt]here|[Hh]ere|[Hh]e|[Ss]he|[Tt]hey|"
    r"[Yy]ou|I|[Tt]h(?:is|at|ese|ose)|[Ww]h\w+|[Ee]ither|[Nn]either|[Nn]o|[Nn]one|[Nn]othing|[Ss]ome\w+|[Ff]ormer|"
    r"[Tt]he (?:one|first|second|third|last|next|only|old|former|previous|other|bug|error|problem|issue|fix|question|"
    r"answer|idea|point|difference|reason|mistake|ticket|commit|patch))\b(?<!Whoever)"
)
SIMPLE_PAST = re.compile(
    r"\b(?:took|ran|did|went|gave|got|made|sent|saw|met|came|left|lost|won|bought|sold|began|became|wrote|said|ate|drank|"
    r"spent|paid|fell|rose|grew|broke|chose|found|read|had|was|were)\b"
    r"|(?<!is )(?<!are )(?<!be )(?<!get )(?<!gets )(?<!\ba )(?<!\ban )(?<!he )"
    r"(?<!our )(?<!ach )(?<!very )(?<!^A )(?<!^An )"
    r"\b(?!(?:need|feed|speed|seed|shed|bed|red)\b)[a-z]{3,}ed"
    r"(?! (?:in|at|on|to|by|with|as|under|from|via|for|after)\b) "
)
TEMPLATE_VERB = re.compile(
    r"^(?:[Ii]mport|[Cc]all|[Uu]se|[Rr]un|[Ss]end|[Pp]ass|[Pp]ut|[Oo]pen|[Ii]nclude|[Ii]nvoke|[Rr]equest|[Ff]etch|[Rr]ead)\b"
    r"|(?<=\w )(?:is|are|can|must|has|have|gets?|goes|go|comes|come|[a-z]{2,}[^\W\ds]s)\b(?! of\b)"
)
PROPERTY = frozenset(
    [
        "is",
        "are",
        "has",
        "needs",
        "requires",
        "takes",
        "accepts",
        "uses",
        "calls",
        "raises",
        "throws",
        "fails",
        "supports",
        "expects",
        "imports",
        "extends",
        "inherits",
        "depends",
        "lives",
        "belongs",
        "runs",
        "costs",
        "lasts",
    ]
)
Finding = tuple[MemoryKey, str]
CODE = ("identifier", "path", "endpoint", "url", "quoted", "version", "handle", "network", "email")


def of_named(clause: str) -> Finding | None:
    """Read what a named thing of code does: another name for the same doing supersedes the name."""
    match = NAMED.fullmatch(clause)
    kind = match["kind"] if match is not None else ""
    place = (match["place"] or "") if match is not None else ""
    match = match or USE_TO.fullmatch(clause) or TO_USE.fullmatch(clause)
    if match is not None:
        name, doing = match["v"], match["p"]
    else:
        values = values_in(clause)
        if not values or values[0].type != "identifier":
            return None
        prefix = re.fullmatch(r"(?:[Tt]he (?P<kind>(?:[\w-]+ ){1,2}))?", clause[: values[0].start])
        if prefix is None or (prefix["kind"] and re.search(r"[_(]|[a-z][A-Z]", values[0].text) is None):
            return None
        kind = (prefix["kind"] or "").strip()
        name, doing = values[0].text, clause[values[0].end :].strip()
        if not re.match(r"[a-z]+s ", doing):
            return None
    values = values_in(name.partition("(")[0])
    if kind and re.search(r"[A-Z_.(\d/-]", name) is None:
        return None  # "the job queue runs"
    is_name = bool(kind) or (bool(values_in(name)) and values_in(name)[0].type in ("identifier", "path", "endpoint"))
    if not is_name or (not kind and not values and "(" not in name) or not _is_doing(doing, is_code=bool(kind)):
        return None
    value = name.partition("(")[0].strip("`'\"")
    return MemoryKey(comparable(f"{kind}{place} {doing}".strip()).replace("::", ":"), "name"), value


_DEFINITE = ("the", "our", "my", "after", "when", "before", "once", "on")
_GENERIC = ("returns", "gives", "yields", "shows", "prints", "works", "exists")


def _is_doing(doing: str, *, is_code: bool) -> bool:
    """Return whether words say what only one thing does, not a property that many have."""
    words, values = doing.split(), values_in(doing)
    is_short = (
        len(words) < 4
        and len(words[1:])
        and not (words[1] in _DEFINITE or (is_code and words[1] not in ("a", "an") and words[0] not in _GENERIC))
    )
    if len(words) < 3 or is_short or re.search(r"\d", doing):
        return False
    if words[0] in PROPERTY and DOING.match(doing) is None:
        return False
    if not (words[0].endswith("s") or words[0].lower() in ("to", "for", "when", "whenever")):
        return False
    return not any(value.type in ("identifier", "endpoint", "quoted") for value in values)


def of_choice(clause: str) -> Finding | None:
    """Read "the balancer uses the round-robin algorithm", and "the command to build is make all"."""
    match = CHOICE.fullmatch(clause)
    words = subject_words(match["np"]) if match is not None else None
    if match is not None and words:
        value = match["v"].strip("'\"")
        is_value = value.lower() not in NOT_FREE and not value.endswith(("ing", "ed", "er", "est"))
        return (subject_key([*words, match["head"]], "name"), value) if is_value else None
    match = COMMAND.fullmatch(clause)
    if match is not None and match["kind"]:
        return MemoryKey(comparable(f"{match['kind']} {match['does']}").replace("::", ":"), "name"), match["name"]
    words = subject_words(match["np"]) if match is not None else None
    return (MemoryKey(" ".join(words), IS), match["v"]) if match is not None and words else None


def of_subject(clause: str) -> Finding | None:
    """Read what a version, an endpoint or a quoted name is for: "Java 17 compiles the billing module"."""
    first = next((value for value in values_in(clause) if value.type in (*CODE, "number")), None)
    if (
        first is None
        or first.type == "identifier"
        or not re.fullmatch(r"(?:[Tt]he )?(?:[\w-]+ ){0,3}", clause[: first.start])
    ):
        return None
    name, doing = clause[: first.start].strip(), clause[first.end :]
    is_runtime = first.type == "version" or bool(re.fullmatch(r"[A-Z]\w+", name))
    serves = _SERVES.fullmatch(doing) is not None and doing.split()[0] not in PROPERTY - {"is"}
    does = (is_runtime and _RUNS.fullmatch(doing) is not None) or (serves and (first.type != "number" or is_runtime))
    if not does or any(value.type in (*STRONG, "identifier") for value in values_in(doing)):
        return None
    return MemoryKey(comparable(f"{name} {doing}").replace("::", ":"), f"<{first.type}>"), clean(first)


_RUNS = re.compile(
    r" (?:compiles|builds|powers|carries|runs|drives|serves|hosts|is (?:in|installed|used|deployed|running|live) ).*\w"
)
_SERVES = re.compile(r" (?:is (?:the|what|where|how)|[a-z]+s (?:the|our|my)) .*\w")


def of_template(clause: str) -> Finding | None:
    """Read a clause with one typed value, whatever its verb."""
    values = [
        value for value in values_in(clause) if value.type not in ("name", "acronym") and not PER.match(value.text)
    ]
    pinned = [value for value in values if _is_pinned(clause, value)]
    if len(pinned) == 1:
        return _around(clause, pinned[0])
    verb = TEMPLATE_VERB.search(clause)
    after = [value for value in values if verb is not None and value.start >= verb.end()]
    if verb is None or len(after) != 1 or NO_SUBJECT.match(clause) or verb[0].split()[0] in ADDING:
        return None
    [value] = after
    before = clause[: value.start]
    is_order = verb.start() == 0
    if MANY.match(before[verb.start() :]) or (SIMPLE_PAST.search(before) if not is_order else value.type not in CODE):
        return None
    if value.type in CODE:
        return _around(clause, value)
    is_fixed = value.type == "number" and AFTER_FIRST.search(before) is not None and value.kind != "duration"
    return _around(clause, value) if value.type in STRONG and not is_fixed else None


def _around(clause: str, value: TypedValue) -> Finding | None:
    before, rest = clause[: value.start], clause[value.end :]
    if len((before + rest).split()) < 3:
        return None
    return MemoryKey(comparable(f"{before}<{value.type}>{rest}").replace("::", ":"), f"<{value.kind}>"), clean(value)


def _is_pinned(clause: str, value: TypedValue) -> bool:
    before = clause[: value.start]
    if value.type == "version":
        return before[-1:] in ("=", "@", ":") or before in ("Version ", "version ")
    return value.type == "number" and before in ("At most ", "Up to ", "At least ")

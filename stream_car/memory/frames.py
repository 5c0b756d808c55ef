"""The default extractor: sentences in known frames, of which one typed value is the object. No model.

Promise: two sentences get the same key only if they state the same relation of the vocabulary, or are equal but for
typed values of the same kind in places where values stand. Questions, plans, hopes, additions ("also") and what was
once get none. What has no key is kept beside everything else, so a doubt costs a stale value and never a true one.
"""

import re
from collections.abc import Iterator, Sequence

from stream_car.memory.extraction import Fact
from stream_car.memory.keys import MemoryKey, comparable, note_key
from stream_car.memory.relations import keys_in_question, stated
from stream_car.memory.subjects import subject_key, subject_words
from stream_car.memory.values import TypedValue, values_in
from stream_car.memory.vocabulary import (
    ADDING,
    AFTER_FIRST,
    AS_BEFORE,
    BELONGS,
    BYTES_MAX,
    CLAUSE_MAX,
    CONTEXT,
    COPULA,
    FIRST_PERSON,
    FREE,
    IN_DOUBT,
    LEAD,
    MOVE,
    NAMED,
    NEGATION,
    NOT_FREE,
    NOW,
    OPAQUE,
    PAST,
    PERSONAL,
    PLACED,
    PLURAL,
    PROPERTY,
    REASON,
    ROLE,
    SCOPED_FIRST,
    SENTENCE_END,
    SEVERAL,
    SLOT,
    STRONG,
    TEXT_MAX,
    THIRD_PERSON,
    TO_USE,
    USE_TO,
    WE_MOVE,
    WE_USE,
    WHEN,
)


class FrameExtractor:
    """Finds facts by the frames of sentences, and keys in questions. It has no state and no settings."""

    def extract(self, text: str) -> Sequence[Fact]:
        """Return the facts of a text. If some of its sentences have none, they are notes beside the others."""
        if len(text) > TEXT_MAX:
            return ()
        sentences = [sentence.strip() for sentence in SENTENCE_END.split(text) if sentence and sentence.strip()]
        whole = stated(text.strip()) if len(sentences) > 1 and "\n" not in text and ". " not in text else None
        if whole is not None:
            return [Fact(whole[0], whole[1], text.strip())]
        facts = [fact for sentence in sentences for fact in _of_sentence(sentence)]
        return facts if any(not fact.is_note for fact in facts) else ()

    def keys_in_question(self, question: str) -> Sequence[MemoryKey]:
        """Return the keys that a question asks for."""
        question = " ".join(question.split())
        if len(question) > CLAUSE_MAX:
            return ()
        keys = keys_in_question(question)
        match = re.fullmatch(r"(?:what|which|who|where|when)(?: is|'s| are) (?P<np>.+?)\s*\?*", question, re.IGNORECASE)
        words = subject_words(match["np"]) if match is not None else None
        return keys or ([subject_key(words, kind) for kind in ("name", "number", "duration", "time")] if words else [])


def _of_sentence(sentence: str) -> list[Fact]:
    stated_fact = stated(sentence) if not sentence.endswith("?") else None
    if stated_fact is not None:
        return [Fact(stated_fact[0], stated_fact[1], sentence)]
    plain = " ".join(sentence.split()).rstrip(".!;, ")
    plain = LEAD.sub("", plain, count=1) if LEAD.match(plain) else plain
    if len(plain) > CLAUSE_MAX:
        return [_note(sentence)]
    before = PAST.fullmatch(plain)
    past = _is(before["np"], before["v"]) if before is not None else None
    if past is not None:
        return [Fact(*past, sentence, is_past=True)]
    if sentence.endswith("?") or not plain or IN_DOUBT.search(OPAQUE.sub("", plain)):
        return [_note(sentence)]
    reason = REASON.match(plain)
    if reason is not None and not any(map(_finding, _clauses(reason["why"]))):
        plain = plain[reason.end() :]
    clauses = list(_clauses(plain))
    if len(clauses) == 1:
        fact = _of_clause(clauses[0], sentence)
        return [fact or _note(sentence)]
    facts = [(clause, _of_clause(clause, clause)) for clause in clauses]
    if not any(fact is not None for _, fact in facts):
        return [_note(sentence)]
    return [fact or _note(clause) for clause, fact in facts]


def _finding(clause: str) -> bool:
    return _of_clause(clause, clause) is not None


def _note(text: str) -> Fact:
    return Fact(note_key(text), text, text, is_note=True)


_SPLIT = re.compile(
    r"\s*;\s+|,?\s+so\s+(?=(?:the|my|our)\b)|,?\s+(?:and|but|while|whereas)\s+|,\s+(?=(?:the|my|our|[A-Z])\w*)"
)
_OWN_SUBJECT = re.compile(r"(?:the |my |our |[Nn]obody |[A-Z])")


def _clauses(sentence: str) -> Iterator[str]:
    """Split where a clause with a verb of its own begins. One without a subject gets that of the clause before it."""
    start, subject = 0, _left(sentence)
    for match in _SPLIT.finditer(sentence):
        rest = sentence[match.end() :]
        words = rest.split()
        head = _SPLIT.split(rest, maxsplit=1)[0]
        before = sentence[start : match.start()]
        if _left(before) is None and not _has_role(before) and " left" not in before and not _PLAIN_PAST.search(before):
            continue
        if words and words[0] in THIRD_PERSON and subject is not None and len(head.split()) > 1:
            yield before
            sentence = f"{sentence[: match.end()]}{subject} {rest}"
            yield from _clauses(f"{subject} {rest}")
            return
        is_own = _OWN_SUBJECT.match(rest) or match.group().startswith(", and ")
        if is_own and (_left(head) is not None or _has_role(head)):
            yield before
            start, subject = match.end(), _left(head)
    yield sentence[start:]


_PLAIN_PAST = re.compile(r"\b\w+ed\b")


def _has_role(clause: str) -> bool:
    return any(pattern.fullmatch(clause) for _, pattern in ROLE) or bool(re.search(r"\b(?:merges|works)\b", clause))


def _left(clause: str) -> str | None:
    """Return what stands before the verb of a clause."""
    split = _verb(clause)
    return clause[: split[0]].rstrip() if split is not None else None


def _verb(clause: str) -> tuple[int, int, bool] | None:
    """Return where the verb of a clause begins and ends, and whether it is one of the known verbs."""
    words = list(re.finditer(r"[^\s,]+", clause))
    for index, match in enumerate(words[1:], start=1):
        word, before = match.group(), words[index - 1].group()
        is_plural = before.lower() == "we" or any(other.group().endswith("s") for other in words[: min(index, 2)])
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


def _of_clause(clause: str, text: str) -> Fact | None:
    clause = AS_BEFORE.sub("", NOW.sub("", clause).strip(" ,."))
    clause = re.sub(r"(?<=\w)=(?=[^=])", " = ", clause).replace("`", "").replace("e're ", "e are ")
    clause = SCOPED_FIRST.sub(lambda match: f"{match['rest']} {match['at'].lower()} {match['place']}", clause)
    if not clause or len(clause) > CLAUSE_MAX or not clause.isprintable():
        return None
    named = _of_named(clause)
    if named is None and not NEGATION.search(clause):
        named = _of_change(clause) or _of_person(clause) or _of_role(clause) or _of_copula(clause)
        named = named or _of_frame(clause) or _of_subject(clause)
    if named is None:
        return None
    key, value = named
    if not value or max(len(part.encode()) for part in (key.subject, key.relation)) > BYTES_MAX:
        return None
    return Fact(key, value, text)


Finding = tuple[MemoryKey, str]


def _of_change(clause: str) -> Finding | None:
    """Read "the deadline moved to May 1", "we switched the store to X" and "we use X for the store"."""
    for pattern in (WE_MOVE, WE_USE, MOVE):
        match = pattern.fullmatch(clause)
        if match is not None:
            return _is(match["np"], match["v"])
    return None


def _of_person(clause: str) -> Finding | None:
    for relation, pattern in FIRST_PERSON:
        match = pattern.fullmatch(clause)
        if match is not None:
            value = match["v"]
            is_value = relation in ("timezone", "age") or _whole(value) is not None
            return (MemoryKey("my", relation), value) if is_value else None
    return None


def _of_role(clause: str) -> Finding | None:
    match = BELONGS.fullmatch(clause)
    roles = [("owner", match)] if match is not None else [(role, pattern.fullmatch(clause)) for role, pattern in ROLE]
    for role, match in roles:
        if match is None:
            continue
        words, who = subject_words(match["np"]), match["who"]
        if words and len(words) <= 6 and not values_in(" ".join(words)) and who.split()[0] not in ("The", "It", "This"):
            return MemoryKey(" ".join(words), role), who
    return None


def _of_copula(clause: str) -> Finding | None:
    match = COPULA.fullmatch(clause)
    return _is(match["np"], match["v"]) if match is not None else None


def _is(np: str, rest: str) -> Finding | None:
    """Return the fact that something is a value, which a place may follow: "is 30 seconds in deploy.yaml"."""
    words = subject_words(np)
    if not words:
        return None
    scoped = re.fullmatch(r"(?P<v>.+?)(?P<scope> (?:in|for|on) (?:the |our )?[\w./-]+(?: [\w-]+){0,3})?", rest)
    value = _whole(rest) or (_whole(scoped["v"]) if scoped is not None else None)
    if value is None:
        free = rest.split()
        is_free = words[-1] in FREE and len(free) <= 3 and not NOT_FREE.intersection(word.lower() for word in free)
        is_free = is_free and re.fullmatch(r"[\w .#+&'-]+", rest) is not None and not rest.endswith(("ing", "ly", "ed"))
        return (subject_key(words, "name"), rest) if is_free else None
    scope = scoped["scope"] if scoped is not None and scoped["scope"] and value.end <= len(scoped["v"]) else ""
    kind = value.kind
    if (PERSONAL.search(" ".join(words)) and kind != "name") or words[-1] in SEVERAL:
        return None
    return subject_key(words, kind, scope), _clean(value)


def _whole(text: str) -> TypedValue | None:
    """Return the typed value that a text is, with nothing else."""
    text = re.sub(r"^(?:the |a |an |about |at |port |version )(?!hour|day|week|minute)", "", text.strip())
    values = values_in(text)
    if len(values) == 1 and values[0].start == 0 and values[0].end == len(text):
        return values[0]
    if (
        values
        and all(value.type in ("name", "acronym") for value in values)
        and not re.search(r"\b[a-z]{2,}\b|,", text)
    ):
        return TypedValue("name", text, 0, len(text))
    return None


def _of_named(clause: str) -> Finding | None:
    """Read what a named thing of code does: another name for the same doing supersedes the name."""
    match = NAMED.fullmatch(clause)
    kind = match["kind"] if match is not None else ""
    match = match or USE_TO.fullmatch(clause) or TO_USE.fullmatch(clause)
    if match is not None:
        name, doing = match["v"], match["p"]
    else:
        values = values_in(clause)
        if not values or values[0].type != "identifier" or values[0].start != 0:
            return None
        name, doing = clause[: values[0].end], clause[values[0].end :].strip()
        if not re.match(r"[a-z]+s ", doing):
            return None
    words = doing.split()
    values = values_in(name.partition("(")[0])
    is_name = bool(kind) or (bool(values_in(name)) and values_in(name)[0].type in ("identifier", "path"))
    if not is_name or len(words) < 4 or (not kind and not values and "(" not in name):
        return None
    if words[0] in PROPERTY and not re.match(r"is (?:(?:raised|thrown|called|used|invoked|fired|the) )", doing):
        return None
    if not (words[0].endswith("s") or words[0].lower() in ("to", "for", "when", "whenever")) or re.search(r"\d", doing):
        return None
    if any(
        value.type in ("number", "version", "quoted", "time") and value.text[0].isdigit() for value in values_in(doing)
    ):
        return None
    return MemoryKey(comparable(f"{kind} {doing}".strip()).replace("::", ":"), "name"), name.partition("(")[0].strip(
        "`'\""
    )


def _of_frame(clause: str) -> Finding | None:
    """Read a clause with a known verb: its typed values are the object, everything else is the key."""
    verb = _verb(clause)
    if verb is None:
        return None
    start, end, is_known = verb
    words = subject_words(clause[:start], is_we_allowed=True)
    chosen = _chosen(clause, end, is_known=is_known) if words and clause[start:end] not in ADDING else []
    if not chosen:
        return None
    if re.match(r"ha(?:s|ve) an? ", clause[start:]) and any(value.type in WHEN for value in chosen):
        return None
    predicate, at = "", start
    for value in chosen:
        predicate, at = f"{predicate}{clause[at : value.start]}<{value.kind}>", value.end
    relation = comparable(predicate + clause[at:]).replace("::", ":")
    return MemoryKey(" ".join(words or ()), relation), ", ".join(_clean(value) for value in chosen)


_SUBJECT_DOES = re.compile(r" (?:(?:is (?:the|what)|[a-z]+s (?:the|our)) .+ .+|(?:compiles|builds|powers|carries) .+)")


def _of_subject(clause: str) -> Finding | None:
    """Read what a version, an endpoint or a quoted name is for: "Java 17 compiles the billing module"."""
    first = next(
        (value for value in values_in(clause) if value.type in ("version", "endpoint", "quoted", "number")), None
    )
    if first is None or not re.fullmatch(r"(?:[Tt]he )?(?:[\w-]+ ){0,3}", clause[: first.start]):
        return None
    name, doing = clause[: first.start].strip(), clause[first.end :]
    is_runtime = first.type != "number" or (
        re.fullmatch(r"[A-Z]\w+", name) and re.match(r" (?:is|compiles|builds|powers)", doing)
    )
    if not is_runtime or not _SUBJECT_DOES.fullmatch(doing) or any(v.type in STRONG for v in values_in(doing)):
        return None
    if doing.split()[0] in PROPERTY - {"is"}:
        return None
    return MemoryKey(comparable(f"{name} {doing}").replace("::", ":"), f"<{first.type}>"), _clean(first)


def _chosen(clause: str, verb_end: int, *, is_known: bool) -> list[TypedValue]:
    """Return the values of a predicate that another sentence may replace."""
    after = [value for value in values_in(clause) if value.start >= verb_end]
    slots = list(SLOT.finditer(clause, verb_end))
    if len(slots) == 1 and not any(value.text[0].isdigit() for value in after):
        group = slots[0].lastgroup or "v"
        return [TypedValue("name", slots[0][group], *slots[0].span(group))]
    strong = [value for value in after if value.type in STRONG]
    for kind in STRONG:
        same = [value for value in strong if value.type == kind]
        if same and kind != "number":
            return same[:1] if len(same) == 1 else []
        if same:
            first, *others = same
            others = [value for value in others if not AFTER_FIRST.search(clause[: value.start])]
            return [first, *others] if is_known else same if len(same) == 1 else []
    weak = [value for value in after if value.type in ("identifier", "path") and not _is_context(clause, value)]
    before = values_in(clause[:verb_end])
    if len(weak) == 1 and not any(value.type in (*STRONG, "identifier", "path", "acronym") for value in before):
        return weak
    names = [value for value in after if value.type in ("name", "acronym")]
    rest = clause[verb_end:]
    if (
        len(names) == 1
        and is_known
        and re.fullmatch(r" (?:in |on |at |to |from |under )", rest[: names[0].start - verb_end])
    ):
        return names if names[0].end == len(clause) else []
    return []


def _is_context(clause: str, value: TypedValue) -> bool:
    before = clause[: value.start]
    return value.type == "path" and CONTEXT.search(before) is not None and PLACED.search(before) is None


def _clean(value: TypedValue) -> str:
    return value.text.strip("'\"`“”").lstrip("=")

"""The default extractor: sentences in known frames, of which one typed value is the object. No model.

Promise: two sentences get the same key only if they state the same relation of the vocabulary, or are equal but for
typed values of the same kind in places where values stand. Questions, plans, hopes, additions ("also") and what was
once get none. What has no key is kept beside everything else, so a doubt costs a stale value and never a true one.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from stream_car.memory.clauses import clauses_of, parts_of, verb_of
from stream_car.memory.corrections import Plain, plain
from stream_car.memory.extraction import Fact
from stream_car.memory.keys import IS, MemoryKey, comparable, note_key
from stream_car.memory.relations import NOT_SUBJECTS, keys_in_question, stated
from stream_car.memory.subjects import subject_key, subject_words
from stream_car.memory.templates import Finding, of_choice, of_named, of_subject, of_template
from stream_car.memory.values import TypedValue, clean, values_in
from stream_car.memory.vocabulary import (
    ADDING,
    AFTER_FIRST,
    AS_BEFORE,
    BELONGS,
    BYTES_MAX,
    CLAUSE_MAX,
    CONDITION,
    CONTEXT,
    COPULA,
    DIVISION,
    FIRST_PERSON,
    FREE,
    GAPPED,
    IN_DOUBT,
    LEAD,
    MANY,
    MAY,
    MOVED,
    NEGATION,
    NOT_FREE,
    NOW,
    OPAQUE,
    OR_MORE,
    ORDERS,
    PASSIVE,
    PAST,
    PER,
    PERSONAL,
    PLACED,
    REASON,
    REVERSED,
    ROLE,
    SCOPED_FIRST,
    SENTENCE_END,
    SEVERAL,
    SLOT,
    STRONG,
    TEXT_MAX,
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
    words = " ".join(sentence.split()).rstrip(".!;, ")
    words = LEAD.sub("", words, count=1) if LEAD.match(words) else words
    if len(words) > CLAUSE_MAX:
        return [_note(sentence)]
    before = PAST.fullmatch(words)
    past = _is(before["np"], before["v"]) if before is not None else None
    if past is not None:
        return [Fact(*past, sentence, is_past=True)]
    if sentence.endswith("?") or not words:
        return [_note(sentence)]
    reason = REASON.match(words)
    if reason is not None and not any(map(_finding, clauses_of(reason["why"]))):
        words = words[reason.end() :]
    words = GAPPED.sub(r"\g<0> \g<verb>", words) if not re.search(r"\bof$", words) else words
    is_whole = of_named(_stated_in(words).text) is not None
    clauses = [words] if is_whole else [part for clause in clauses_of(words) for part in parts_of(clause)]
    if CONDITION.match(words) or (not is_whole and any(map(_is_doubtful, clauses))):
        return [_note(sentence)]
    if len(clauses) == 1:
        fact = _of_clause(clauses[0], sentence)
        return [fact or _note(sentence)]
    facts = [(clause, _of_clause(clause, clause)) for clause in clauses]
    divided = [_of_division(clause) if fact is None else None for clause, fact in facts]
    if sum(fact is not None for fact in divided) > 1:
        facts = [(clause, fact or division) for (clause, fact), division in zip(facts, divided, strict=True)]
    if not any(fact is not None for _, fact in facts):
        return [_note(sentence)]
    return [fact or _note(clause) for clause, fact in facts]


def _is_doubtful(clause: str) -> bool:
    return IN_DOUBT.search(OPAQUE.sub("", _stated_in(clause).text)) is not None


def _of_division(clause: str) -> Fact | None:
    """Read a clause that divides work among people, as "Ana tests the app, Bo tests the site" does."""
    match = DIVISION.fullmatch(_stated_in(clause).text)
    words = subject_words(match["np"]) if match is not None else None
    if match is None or not words or values_in(" ".join(words)):
        return None
    return Fact(MemoryKey(" ".join(words), match["verb"]), match["who"], clause)


def _finding(clause: str) -> bool:
    return _of_clause(clause, clause) is not None


def _note(text: str) -> Fact:
    return Fact(note_key(text), text, text, is_note=True)


def _stated_in(clause: str) -> Plain:
    """Return what a clause states of the present, in the order of words that the frames have."""
    clause = AS_BEFORE.sub("", NOW.sub("", clause).strip(" ,."))
    clause = re.sub(r"(?<=\w)=(?=[^=>])", " = ", clause).replace("`", "").replace("e're ", "e are ")
    clause = MAY.sub("can ", OR_MORE.sub("", clause))
    for form, order in ORDERS:
        clause = form.sub(order, clause)
    clause = SCOPED_FIRST.sub(lambda match: f"{match['rest']} {match['at'].lower()} {match['place']}", clause)
    return plain(clause)


def _of_clause(clause: str, text: str) -> Fact | None:
    statement = _stated_in(clause)
    clause = statement.text
    if not clause or len(clause) > CLAUSE_MAX or not clause.isprintable():
        return None
    named = of_named(clause)
    if named is None and not NEGATION.search(clause):
        named = _of_use(clause) or _of_person(clause) or _of_role(clause)
        named = named or _of_copula(clause, is_set=statement.is_change)
        named = named or of_choice(clause) or _of_frame(clause) or of_subject(clause) or of_template(clause)
    if named is None:
        return None
    key, value = named
    is_moved = statement.is_change and not statement.former and MOVED.search(text) is not None
    if is_moved and key.relation == IS and key.subject not in FREE:
        return None  # "the team moved to X": a place, a tool, a day?
    if not value or max(len(part.encode()) for part in (key.subject, key.relation)) > BYTES_MAX:
        return None
    return Fact(key, value, text, is_change=statement.is_change, former=statement.former)


def _of_use(clause: str) -> Finding | None:
    """Read "we use X for the store"."""
    match = WE_USE.fullmatch(clause)
    return _is(match["np"], match["v"]) if match is not None else None


def _of_person(clause: str) -> Finding | None:
    for relation, pattern in FIRST_PERSON:
        match = pattern.fullmatch(clause)
        if match is not None:
            value = match["v"]
            is_value = relation in ("timezone", "age", "diet") or _whole(value) is not None
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


def _of_copula(clause: str, *, is_set: bool) -> Finding | None:
    match = REVERSED.fullmatch(clause)
    if match is not None and match["v"].lower() not in NOT_SUBJECTS and _whole(match["v"]) is not None:
        return _is(match["np"], match["v"])
    match = COPULA.fullmatch(clause)
    return (
        _is(
            match["np"],
            match["v"],
            is_set=is_set or any(word in clause for word in (" set to ", " = ", " named ", " called ")),
        )
        if match is not None
        else None
    )


def _is(np: str, rest: str, *, is_set: bool = False) -> Finding | None:
    """Return the fact that something is a value, which a place may follow: "is 30 seconds in deploy.yaml"."""
    words = subject_words(np)
    if not words:
        return None
    scoped = re.fullmatch(
        r"(?P<v>.+?)(?P<scope> (?:in|for|on|by|at|during|as|under) (?:the |our |an? )?[\w./-]+(?: [\w-]+){0,3})?", rest
    )
    value = _whole(rest) or (_whole(scoped["v"]) if scoped is not None else None)
    if value is None and is_set and scoped is not None and is_word(scoped["v"]):
        value = TypedValue("name", scoped["v"], 0, len(scoped["v"]))
    if value is None:
        free = rest.split()
        is_free = words[-1] in FREE and len(free) <= 3 and not NOT_FREE.intersection(word.lower() for word in free)
        is_free = (
            is_free
            and re.fullmatch(r"[\w .#+&'-]+", rest) is not None
            and (rest in ("warning", "enabled", "disabled") or not rest.endswith(("ing", "ly", "ed")))
        )
        return (subject_key(words, "name"), rest) if is_free else None
    scope = scoped["scope"] if scoped is not None and scoped["scope"] and value.end <= len(scoped["v"]) else ""
    kind = value.kind
    if (PERSONAL.search(" ".join(words)) and kind != "name") or words[-1] in SEVERAL:
        return None
    return subject_key(words, kind, scope), clean(value)


def is_word(text: str) -> bool:
    """Return whether a text is one word that a setting may have as its value."""
    return re.fullmatch(r"[\w.+-]+", text) is not None and text.lower() not in NOT_FREE


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


def _of_frame(clause: str) -> Finding | None:
    """Read a clause with a known verb: its typed values are the object, everything else is the key."""
    verb = verb_of(clause)
    if verb is None:
        return None
    start, end, is_known = verb
    words = subject_words(clause[:start], is_we_allowed=True)
    chosen = (
        _chosen(clause, end, is_known=is_known)
        if words and (clause[start:end] not in ADDING or " at " in clause)
        else []
    )
    if clause[start:end] in ADDING and any(value.type != "version" for value in chosen):
        return None
    if not chosen or (words and "and" in words and re.search(r"\d", clause[:start])):
        return None
    if re.match(r"ha(?:s|ve) an? ", clause[start:]) and any(value.type in WHEN for value in chosen):
        return None
    predicate, at = "", start
    for value in chosen:
        predicate, at = f"{predicate}{clause[at : value.start]}<{value.kind}>", value.end
    relation = comparable(predicate + clause[at:]).replace("::", ":")
    return MemoryKey(" ".join(words or ()), relation), ", ".join(clean(value) for value in chosen)


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
            return same if len(same) == 1 or is_known or _is_list(clause, same) else []
        if same:
            first, *others = [value for value in same if not PER.match(value.text)] or same
            others = [value for value in others if not AFTER_FIRST.search(clause[: value.start])]
            if is_known or not others:
                return [first, *others]
            return same if _is_list(clause, same) else []
    weak = [value for value in after if value.type in ("identifier", "path") and not _is_context(clause, value)]
    before = values_in(clause[:verb_end])
    if (
        len(weak) == 1
        and MANY.search(clause[: weak[0].start]) is None
        and not any(
            value.kind != "number" and value.type in (*STRONG, "identifier", "path", "acronym") for value in before
        )
    ):
        return weak
    names = [value for value in after if value.type in ("name", "acronym")]
    rest = clause[verb_end:]
    if len(names) == 1 and is_known and re.fullmatch(PASSIVE, rest[: names[0].start - verb_end]):
        return names if names[0].end == len(clause) else []
    return []


def _is_list(clause: str, values: Sequence[TypedValue]) -> bool:
    """Return whether values stand beside each other: "at 7 on weekdays and at 9 on weekends"."""
    between = [clause[left.end : right.start] for left, right in pairwise(values)]
    return all(re.fullmatch(r"(?: [a-z]+){0,4}(?:,| and|, and)(?: at| on| to)? ", text) for text in between)


def _is_context(clause: str, value: TypedValue) -> bool:
    before = clause[: value.start]
    return value.type == "path" and CONTEXT.search(before) is not None and PLACED.search(before) is None

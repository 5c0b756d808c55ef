"""The closed vocabulary of relations: how statements express them, and how questions ask for them.

Every relation here has one value at a time: another value of the same subject supersedes the former.
"""

import re
from collections.abc import Iterator

from stream_car.memory.keys import MemoryKey, comparable

# Relation: statements, then questions. {s} is the subject and {o} the value; [x] may be missing, (a|b) is either.
_FORMS: dict[str, tuple[str, ...]] = {
    "place of birth": (
        "{s} was born in the city of {o}",
        "{s} was born in {O}",
        "(which|what) city was {s} born in",
        "where was {s} born",
    ),
    "place of death": (
        "{s} died in the city of {o}",
        "{s} died in {O}",
        "(which|what) city did {s} die in",
        "where did {s} die",
    ),
    "place of work": (
        "{s} work(s|ed) in the city of {o}",
        "(which|what) city (did|does) {s} work in",
        "where (did|does) {s} work",
    ),
    "citizenship": (
        "{s} is a citizen of {o}",
        "{s} (holds|has) [the ]citizenship of {o}",
        "(what|which) is the country of citizenship of {s}",
        "(which|what) country is {s} a citizen of",
    ),
    "spouse": ("{s} is married to {o}", "{s}'s (spouse|wife|husband) is {O}", "who is {s} married to"),
    "child": ("{s}'s child is {O}", "who is {s}'s child", "who is the child of {s}"),
    "religion": (
        "{s} is affiliated with the religion of {o}",
        "(which|what) religion is {s} affiliated with",
        "what is the religion of {s}",
    ),
    "language": ("{s} speaks the language of {o}", "(what|which) language does {s} speak"),
    "university": (
        "the (university|univeristy) where {s} was educated is {o}",
        "{s} was educated at {O}",
        "(which|what) university was {s} educated at",
        "where was {s} educated",
    ),
    "employer": (
        "{s} is employed by {o}",
        "who is the employer of {s}",
        "who is {s} employed by",
        "(which|what) company is {s} employed by",
    ),
    "occupation": (
        "{s} works in the field of {o}",
        "what kind of work does {s} do",
        "(what|which) field does {s} work in",
    ),
    "notable work": ("{s} is famous for {o}", "what is {s} famous for"),
    "position played": ("{s} plays the position of {o}", "(what|which) position does {s} play"),
    "sport": ("{s} is associated with the sport of {o}", "(which|what) sport is {s} associated with"),
    "genre": (
        "the type of music that {s} plays is {o}",
        "(what|which) (type|kind) of music does {s} play",
    ),
    "continent": ("{s} is located in the continent of {o}", "(which|what) continent is {s} located in"),
    "country of origin": (
        "{s} was created in the country of {o}",
        "(which|what) country was {s} created in",
        "(which|what) country does {s} come from",
    ),
    "performer": ("{s} was performed by {o}", "who performed {s}", "who is the performer of {s}"),
    "creator": ("{s} was created by {O}", "who was {s} created by", "who created {s}", "who is the creator of {s}"),
    "founder": ("{s} was founded by {O}", "who founded {s}", "who was {s} founded by", "who is the founder of {s}"),
    "place of foundation": (
        "{s} was founded in the city of {o}",
        "{s} was founded in {O}",
        "where was {s} founded",
        "(which|what) city was {s} founded in",
    ),
    "developer": ("{s} was developed by {o}", "who developed {s}", "who was {s} developed by"),
    "producer": (
        "the company that produced {s} is {o}",
        "{s} is produced by {O}",
        "(which|what) company is {s} produced by",
        "(which|what) company produced {s}",
    ),
    "headquarters": (
        "the headquarters of {s} (is|are) [located ]in the city of {o}",
        "the headquarters of {s} (is|are) [located ]in {O}",
        "{s} is headquartered in {O}",
        "(which|what) city (is|are) the headquarter[s] of {s} located in",
        "where (is|are) the headquarter[s] of {s}[ located]",
    ),
    "language of the work": ("{s} was written in the language of {o}", "(which|what) language was {s} written in"),
    "head of state": (
        "the [name of the ][current ]head of state (in|of) {s} is {o}",
        "(who|what) is the [name of the ][current ]head of state (in|of) {s}",
    ),
    "head of government": (
        "the name of the current head of the {s} government is {o}",
        "the head of government of {s} is {o}",
        "(who|what) is the [name of the ][current ]head of the {s} government",
        "who is the head of government of {s}",
    ),
}
# Relations in the form "The capital of X is Y": the name in keys, and the word if it differs.
_OF = {
    "author": "author",
    "capital": "capital[ city]",
    "official language": "official language",
    "original language": "original language",
    "original broadcaster": "(original|origianl) broadcaster",
    "chief executive": "(chief executive officer|ceo)",
    "chairperson": "(chairperson|chairman|chairwoman|chair)",
    "director": "director",
    "head coach": "head coach",
    "prime minister": "prime minister",
    "president": "president",
    "governor": "governor",
    "mayor": "mayor",
    "chancellor": "chancellor",
    "currency": "currency",
    "developer": "developer",
    "founder": "founder",
}
_WORDS_MAX = 14
NOT_SUBJECTS = frozenset(
    [
        "i",
        "you",
        "he",
        "she",
        "it",
        "we",
        "they",
        "this",
        "that",
        "these",
        "those",
        "there",
        "here",
        "who",
        "what",
        "which",
        "someone",
        "somebody",
        "everyone",
        "everybody",
        "nobody",
        "nothing",
        "something",
        "everything",
        "one",
        "he's",
        "she's",
        "it's",
    ]
)
_NOT_VALUES = frozenset(["not", "unknown", "unclear", "a", "an", "still", "being", "about", "very", "too", "the"])


def _pattern(form: str, end: str) -> re.Pattern[str]:
    text = re.sub(r"\[([^]]*)\]", r"(?:\1)?", re.sub(r"\((?!\?)", "(?:", form))
    text = text.replace("{s}", "(?P<s>.+?)").replace("{o}", "(?P<o>.+)").replace("{O}", "(?P<O>.+)")
    return re.compile(text + end, re.IGNORECASE)


def _compiled() -> Iterator[tuple[str, bool, re.Pattern[str], re.Pattern[str]]]:
    forms = [(relation, form) for relation, several in _FORMS.items() for form in several]
    for relation, word in _OF.items():
        forms += [
            (relation, f"the {word} of {{s}} is {{o}}"),
            (relation, f"(who|what|which) is the {word} of {{s}}"),
        ]
    for relation, form in forms:
        is_statement = "{o}" in form.lower()
        fixed = max(re.split(r"\{.\}|\[[^]]*\]|\([^)]*\)", form), key=len)
        probe = re.compile(re.escape(fixed), re.IGNORECASE)
        yield relation, is_statement, probe, _pattern(form, "" if is_statement else r"\s*\?*")


_ALL = tuple(_compiled())
_STATEMENTS = [(relation, probe, pattern) for relation, is_statement, probe, pattern in _ALL if is_statement]
_QUESTIONS = [(relation, probe, pattern) for relation, is_statement, probe, pattern in _ALL if not is_statement]


def stated(sentence: str) -> tuple[MemoryKey, str] | None:
    """Return the key and the value of a sentence that states a relation of the vocabulary; `None` if in doubt."""
    sentence = sentence.removesuffix(".")
    matches: list[tuple[MemoryKey, str]] = []
    for relation, probe, pattern in _STATEMENTS:
        match = pattern.fullmatch(sentence) if probe.search(sentence) else None
        if match is None:
            continue
        subject, value, must_be_name = match["s"], match[match.lastgroup or "o"], match.lastgroup == "O"
        if _is_subject(subject) and _is_value(value, must_be_name=must_be_name):
            matches.append((MemoryKey(comparable(subject), relation), value))
    return matches[0] if matches and len({key for key, _ in matches}) == 1 else None


def keys_in_question(question: str) -> list[MemoryKey]:
    """Return the keys that a question asks for by a relation of the vocabulary."""
    keys: dict[MemoryKey, None] = {}
    for relation, probe, pattern in _QUESTIONS:
        match = pattern.fullmatch(question) if probe.search(question) else None
        if match is not None and _is_subject(match["s"]):
            keys[MemoryKey(comparable(match["s"]), relation)] = None
    return list(keys)


def _is_subject(text: str) -> bool:
    words = text.split()
    if not words or len(words) > _WORDS_MAX or "::" in text:
        return False
    is_title = len(words) > 1 and words[1][0].isupper()  # "I Fall to Pieces"
    return is_title or words[0].lower() not in NOT_SUBJECTS


def _is_value(text: str, *, must_be_name: bool) -> bool:
    words = text.split()
    if not words or len(words) > _WORDS_MAX or words[0] in _NOT_VALUES:
        return False
    return not must_be_name or words[0][0].isupper() or words[0].lower() in ("the", "el", "la", "de", "van", "von")

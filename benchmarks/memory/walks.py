"""Answers to questions about chains of facts: a deterministic walk over the keys of a memory. No model.

A question names one thing that is known, the anchor, and relations by words such as "wrote" or "capital". Of all walks
from the anchor over values that hold, the one whose relations explain these words best gives the answer.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial

Facts = Mapping[str, Mapping[str, str]]  # the value of each relation of each subject
Walk = tuple[str, ...]
HOPS_MAX = 4
_PERSON = "person"
_PLACE = "city"

# What the value of a relation is, and by which words questions mean the relation.
RELATIONS: dict[str, tuple[str, str]] = {
    "citizenship": ("country", r"citizen\w*|nationality|countr\w+|nation|hail\w*|belongs?"),
    "country of origin": (
        "country",
        r"origin\w*|c[oa]me\w*|hail\w*|derived|invented|gave rise|created|developed|practi[cs]ed|made|birthplace"
        r"|countr\w+|nation|began|emerged|founding|connected",
    ),
    "continent": ("continent", r"continent"),
    "capital": (_PLACE, r"capital|seat of government|center of government|centre of government"),
    "sport": ("sport", r"sports?\w*|special\w+|discipline|athlet\w+|competed|coach\w*"),
    "position played": ("position", r"position\w*|special\w+|sport\w*"),
    "religion": ("religion", r"religio\w+|faith|denomination|believed?|belief"),
    "spouse": (_PERSON, r"spouse\w*|partner\w*|wife|husband|married|significant other"),
    "child": (_PERSON, r"child\w*|son|daughter|offspring"),
    "author": (_PERSON, r"author\w*|writer|wrote|written by|penned"),
    "performer": (_PERSON, r"perform\w*|singer|artist|sang|goes by the name|recorded"),
    "creator": (_PERSON, r"creat\w+"),
    "founder": (_PERSON, r"found\w*|establish\w*|foundation"),
    "place of birth": (_PLACE, r"birth\w*|born"),
    "place of death": (_PLACE, r"die\w*|death|pass(?:ed)? away|last breath|breathe\w* (?:his|her|their)? ?last"),
    "place of work": (_PLACE, r"work\w* location|location of (?:the )?work|place of work|work\w*"),
    "place of foundation": (_PLACE, r"found\w*|establish\w*|existence|origin\w*|first|formed|birthplace|begin"),
    "headquarters": (_PLACE, r"headquarter\w*|based"),
    "university": ("school", r"educat\w+|universit\w+|stud\w+|attend\w*|school|institution"),
    "chief executive": (_PERSON, r"ceo|chief executive\w*(?: officer)?"),
    "chairperson": (_PERSON, r"chair\w*"),
    "director": (_PERSON, r"direct\w+|manage\w*|produc\w+"),
    "head coach": (_PERSON, r"head coach|coach\w*"),
    "head of state": (
        _PERSON,
        r"head of state|chief of state|state head|highest-ranking|chief public representative|president|monarch|leader",
    ),
    "head of government": (
        _PERSON,
        r"head of (?:the )?government|government|prime minister|political leader|chief executive|cabinet|premier"
        r"|leader",
    ),
    "prime minister": (_PERSON, r"prime minister"),
    "president": (_PERSON, r"president"),
    "governor": (_PERSON, r"governor"),
    "mayor": (_PERSON, r"mayor"),
    "official language": ("language", r"official\w*(?: language| tongue)?|communications|documents|government"),
    "language": ("language", r"languages?|speak\w*|spoken|sp[eo]ke|write|sign(?:ed)?"),
    "language of the work": ("language", r"languages?|written"),
    "original language": ("language", r"original language|languages?"),
    "employer": ("company", r"employ\w*|work(?:s|ed)?|company|organi[sz]ation|part of|responsible"),
    "occupation": ("field", r"occupation|profession\w*|job\w*|role|kind of work|field|work"),
    "notable work": ("work", r"notable|famous|significant creation|work|known for"),
    "genre": ("genre", r"genre\w*|music\w*|style"),
    "developer": ("company", r"develop\w+|made"),
    "producer": ("company", r"manufactur\w*|produc\w*|made"),
    "original broadcaster": ("company", r"broadcast\w*|aired|network"),
    "currency": ("currency", r"currency|money"),
}
# What a question asks for, by its first words.
WANTED = (
    (r"continent", ("continent",)),
    (r"languages?|tongue", ("language",)),
    (r"religio\w+|faith|denomination", ("religion",)),
    (r"genre|music", ("genre",)),
    (r"sports?|discipline", ("sport",)),
    (r"position", ("position",)),
    (r"occupation|profession\w*|job|kind of work|field", ("field",)),
    (r"capital|city|town", (_PLACE,)),
    (r"country|nation|political entity", ("country",)),
    (r"educational|university|school", ("school",)),
    (r"company|organi[sz]ation", ("company", "school")),
    (r"who|whom|person|individual|leader|head of|chief|director|chairperson|founder|partner|spouse", (_PERSON,)),
    (r"where|place|location|birthplace|headquarters", (_PLACE, "country", "continent")),
    (r"creation|work", ("work",)),
)


def answer(question: str, facts: Facts) -> tuple[str, Walk]:
    """Return the value at the end of the walk that explains a question best, and its relations; empty for none."""
    best: tuple[float, str, Walk] = (float("-inf"), "", ())
    for anchor, start, end in anchors(question, facts):
        before, after = question[:start], question[end:]
        for walk, value in walks(anchor, facts):
            score = _score(walk, before, after) + 0.02 * len(anchor)
            if score > best[0]:
                best = (score, value, walk)
    return best[1], best[2]


def anchors(question: str, facts: Facts) -> Iterator[tuple[str, int, int]]:
    """Return the known subjects in a question that are no part of a longer one, with their places."""
    text = question.casefold()
    places: list[tuple[int, int]] = []
    words = [(match.start(), match.end()) for match in re.finditer(r"[^\s\"“”]+", text)]
    for first in range(len(words)):
        for last in range(min(len(words), first + 12) - 1, first - 1, -1):
            start, end = words[first][0], words[last][1]
            name = next((name for name in _spellings(text[start:end]) if name in facts), None)
            if name is not None and not any(left <= start and end <= right for left, right in places):
                places.append((start, end))
                yield name, start, end
                break


def _spellings(text: str) -> Iterator[str]:
    for name in (
        text,
        text.rstrip("?.,;:"),
        text.rstrip("?,;:").removesuffix("'s").removesuffix("’s").removesuffix("'"),
    ):
        yield name
        yield name.strip("'‘’()")


def walks(subject: str, facts: Facts, done: Walk = ()) -> Iterator[tuple[Walk, str]]:
    """Return all walks from a subject, with the values at their ends."""
    for relation, value in facts.get(subject, {}).items():
        if relation in RELATIONS and relation not in done:
            yield (*done, relation), value
            if len(done) + 1 < HOPS_MAX:
                yield from walks(value.casefold(), facts, (*done, relation))


def _score(walk: Walk, before: str, after: str) -> float:
    """Return how well the relations of a walk explain the words around the anchor of a question.

    A relation wants words of its own, the nearer to the anchor the earlier it comes in the walk. Words that mean a
    relation, and that no relation of the walk explains, count against it; so does an end of another kind than the
    question wants.
    """
    text = f"{before} _ {after}".casefold()
    anchor, last, score = len(before) + 1, -1, 0.0
    used: list[tuple[int, int]] = []
    for relation in walk:
        places = [match.span() for match in _PATTERNS[relation].finditer(text)]
        free = [place for place in places if not any(map(partial(_meet, place), used))]
        if not free:
            score -= 1.2
            continue
        distance, place = min((abs(place[0] - anchor) < last, abs(place[0] - anchor), place) for place in free)[1:]
        score += 1 + 0.02 * (place[1] - place[0]) + (0.2 if distance >= last else -0.2)
        last = distance
        used.append(place)
    left = [place for match in _TELLING.finditer(text) if not any(map(partial(_meet, place := match.span()), used))]
    kinds = _wanted(before if len(before.split()) > 2 else text)
    end = 0 if not kinds else 1 if RELATIONS[walk[-1]][0] in kinds else -1
    return score - 0.35 * len(left) + end


def _meet(place: tuple[int, int], other: tuple[int, int]) -> bool:
    return place[0] < other[1] and other[0] < place[1]


def _wanted(text: str) -> tuple[str, ...]:
    """Return the kinds of values that a question wants, by its first words."""
    text = " ".join(text.casefold().split()[:9])
    places = [(match.start(), kinds) for words, kinds in WANTED if (match := re.search(rf"\b(?:{words})\b", text))]
    return min(places)[1] if places else ()


_PATTERNS = {relation: re.compile(rf"\b(?:{words})\b") for relation, (_, words) in RELATIONS.items()}
_TELLING = re.compile(  # words that mean a relation, and hardly anything else
    r"\b(?:capital|continent|author|wrote|writer|spouse|partner|wife|husband|married|significant other|child|ceo|"
    r"religio\w+|faith|chief executive|chair\w*|headquarter\w*|sports?|genre|music|perform\w*|creat\w+|found\w*|born|"
    r"establish\w*|birth\w*|death|passed away|breath\w*|citizen\w*|language|official|position|educat\w+|universit\w+|"
    r"employ\w*|work\w*|develop\w*|manufactur\w*|broadcast\w*|aired|network|head of state|chief of state|"
    r"head of government|prime minister|famous|notable|occupation|profession|origin\w*|coach\w*|direct\w+|manage\w*)\b"
)

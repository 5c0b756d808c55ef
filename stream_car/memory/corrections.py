"""Corrections as plain statements: "the limit was raised from 60 to 90" states that the limit is 90, and was 60.

Promise: what a text states of the present stays the same. A text that is no correction of a known form stays as it is.
"""

import re

from msgspec import Struct

CHANGED = (
    r"(?:moved|changed|switched|shifted|pushed|bumped|raised|lowered|reduced|increased|cut|set|updated|renamed|reassigned|"
    r"rescheduled|postponed|delayed|extended|upgraded|downgraded|migrated|shortened|doubled|tripled|halved|turned|went|"
    r"dropped|slipped|gone|come|risen|grown|fallen|grew|rose|fell|jumped|transferred|handed|relocated|brought|decreased|expanded|trimmed|tightened|"
    r"relaxed|redirected|repointed|pointed|swapped|ported|converted|put|transitioned|promoted|rolled|handed|advanced)"
    r"(?: back| up| down| out| over| forward| ahead| off)?"
)
_OUR = r"(?:the|our|my|its)"
_TOOL = r"[^ ]+(?: [A-Z0-9][^ ]*)*"  # one word, and capitalised ones after it
_AUX = r"(?:has |have |had |is |are |was |were |been |being |got |gets |just |now |recently |since )*"
_WE = r"(?:[Ww]e|I|[Tt]hey|[Tt]he team)(?: have| had|'ve| just| now| recently)*"
_NP = (
    r"(?P<np>(?!(?:I|[Ii]t|[Ww]e|[Yy]ou|[Hh]e|[Ss]he|[Tt]hey|[Tt]h(?:is|at|ese|ose)|[Ss]ome\w+|[Nn]o\w*|[Ee]very\w+)\b)"
)
_NAME = (
    r"(?!(?:I|Nobody|None|No|Some\w+|Every\w+|Who|What|It|He|She|They|We|You|Th\w+|An?|My|Our|Never|Not|Always|Let|If|When|Please|Did|Do|Does|Is)\b)"
    r"[A-Z][\w'’-]+(?: (?:de |van |von )?[A-Z][\w'’.-]+)*"
)
_AGENT = rf"(?:{_WE}|(?:[Tt]he (?:\w+ )?\w+|{_NAME})(?: has| have)?)"


class Plain(Struct, frozen=True):
    """A statement of the present; whether it says that something changed, and from which value, if it names it."""

    text: str
    is_change: bool = False
    former: str = ""


_FORMS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), statement)
    for pattern, statement in (
        # "is no longer X but Y", "isn't X any more, it's Y"
        (
            r"(?P<np>.+?) (?P<be>is|are) (?:no longer|not) (?P<old>.+?)(?: any ?more| any longer)?[,;:]?"
            r" (?:but(?: rather)?|it is|it's|they are|they're|instead it's) (?P<v>.+)",
            "{np} {be} {v}",
        ),
        (
            r"(?P<np>.+?) (?P<be>is|are)n['’]t (?P<old>.+?)(?: any ?more| any longer)?[,;:]?"
            r" (?:but(?: rather)?|it is|it's|they are|they're|instead it's) (?P<v>.+)",
            "{np} {be} {v}",
        ),
        # "is Y, not X", "uses Y instead of X", "is Y (was X)", "is Y, up from X", "is Y, no longer X"
        (
            r"(?P<s>.+?)(?:, (?:and )?(?:not|no longer)|,? (?:instead of|rather than|in place of)"
            r"| \((?:was|were|not|formerly|previously)|(?:,| \() ?(?:up|down|changed|raised|lowered) from)"
            r" (?P<old>[^,;()]+?)(?: any ?more| any longer| as before)?\)?",
            "{s}",
        ),
        # "we replaced X with Y for the Z", "X was replaced by Y as the Z"
        (
            rf"{_WE} (?:replaced|swapped(?: out)?|exchanged) (?P<old>{_TOOL}) (?:with|by|for) (?P<v>.+?)"
            rf" (?:for|as|in|on) (?P<np>{_OUR} .+)",
            "{np} is {v}",
        ),
        (
            rf"(?P<old>{_TOOL}) (?:is|was|has been|got)(?: now)? (?:replaced|succeeded)"
            rf" (?:with|by) (?P<v>.+?) (?:for|as|in) (?P<np>{_OUR} .+)",
            "{np} is {v}",
        ),
        (
            rf"(?P<v>.+?) (?:has )?(?:replaced|replaces|succeeds|succeeded) (?P<old>{_TOOL})"
            rf" (?:as|for) (?P<np>{_OUR} .+)",
            "{np} is {v}",
        ),
        # "Y took over as our X from Z", "Y became X", "Y has become the X"
        (
            rf"(?P<v>{_NAME}) (?:has |have )?(?:taken over as|took over as|takes over as|became|become|stepped in as)"
            rf" (?P<np>(?:{_OUR} |[\w-]+ of ).+?)(?: from (?P<old>{_NAME}))?",
            "{np} is {v}",
        ),
        (
            rf"(?P<v>{_NAME}) (?:has |have )?(?:taken over|took over|takes over) (?P<np>{_OUR} .+?)"
            rf"(?: from (?P<old>{_NAME}))?",
            "{v} owns {np}",
        ),
        # "we raised the X from Y to Z", "we moved X's Y to Z"
        (
            rf"{_AGENT} {CHANGED} (?P<np>(?:the|our|my) .+?)(?: up| down| back)?(?: (?:away )?from (?P<old>.+?))?,?"
            r" (?:over )?(?:to|onto) (?P<v>.+)",
            "{np} is {v}",
        ),
        # "Ana moved her office to Y", "the firm moved its seat from X to Y"
        (
            rf"(?P<who>{_NAME}|[Tt]he \w+|[Mm]y \w+) (?:has |have )?{CHANGED} (?:its|his|her|their) (?P<np>[\w -]+?)"
            r"(?: from (?P<old>.+?))? to (?P<v>.+)",
            "the {np} of {who} is {v}",
        ),
        # "my sister moved to Y", "Pia relocated from X to Y"
        (
            rf"{_NP}[Mm]y \w+|{_NAME}) (?:has |have )?(?:just |recently )?(?:moved|relocated)"
            rf"(?: from (?P<old>{_NAME}))? to (?P<v>{_NAME})",
            "{np} lives in {v}",
        ),
        # "X moved from Y to Z", "X has been set to Z", "X: Y -> Z"
        (rf"{_NP}.+?) {_AUX}{CHANGED}(?: (?:away )?from (?P<old>.+?))?,? (?:to|onto) (?P<v>.+)", "{np} is {v}"),
        (r"(?P<np>.+?)(?: is| are)?:? (?P<old>[^ ]+(?: \w+)?) (?:->|=>|→) (?P<v>.+)", "{np} is {v}"),
        # "Set X to Y in Z"
        (r"(?:Please )?(?:[Ss]et|[Cc]hange|[Ss]witch) (?P<np>[^ ]*[_A-Z.][^ ]*|the .+?) to (?P<v>.+)", "{np} is {v}"),
        # "X has a Y of Z"
        (
            r"(?P<who>.+?) (?:has|have) (?:a|an) (?P<np>[\w -]+?) of (?P<v>(?:[<>~$€£#]|about )?[\w./-]*\d.*)",
            "the {np} of {who} is {v}",
        ),
        # "I left X and joined Y"
        (
            r"I(?: have|'ve)? (?:left|quit) (?P<old>.+?)(?:,| and|, and) (?:I )?"
            r"(?P<v>(?:now )?(?:joined|work|started) .+)",
            "I {v}",
        ),
    )
]


def plain(clause: str) -> Plain:
    """Return what a clause states, without what it corrects."""
    former, before = "", clause
    for pattern, statement in _FORMS:
        match = pattern.fullmatch(clause)
        if match is None:
            continue
        parts = match.groupdict()
        former = parts.pop("old", None) or former
        clause = statement.format(**parts)
    return Plain(clause, is_change=clause != before, former=former.strip(" ,'\"`"))

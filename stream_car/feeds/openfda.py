"""openFDA drug labels and enforcement reports (recalls), one by one or as the API answers them (`results`).

What decides. A label's record is its `set_id`, its order `version`, its time `effective_time`; it joins the
scopes of all its NDCs, its application and its names. A recall's record is its `recall_number`; its time is
`recall_initiation_date`, its order the date of the report (or of the termination), and under one date the order
of arrival. A recall speaks about no more than it must: the NDCs in its `product_description`; where there are
none those of its `openfda` part, else its application, else the drug's name. Types: `drug_label`,
`drug_recall`. Editions are called `SET_ID@VERSION` and `NUMBER@DATE`.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import NOTHING_SEEN, Converted, Position, digest_of, next_edition, remembered
from stream_car.feeds.reading import body, fitted, line, moment, rest_of, scope_of, shaped, tree_of

DAY = 86_400_000_000
EDITIONS_A_DAY = 1000
READ_LABEL = ("set_id", "id", "version", "effective_time", "openfda", "indications_and_usage", "boxed_warning")
READ_RECALL = ("recall_number", "product_description", "reason_for_recall", "recall_initiation_date", "openfda")
_NDC = re.compile(r"\bNDC\b[^0-9]{0,12}([0-9]{4,5}-[0-9]{3,4}(?:-[0-9]{1,2})?)", re.IGNORECASE)
_MORE = re.compile(r"(?<![0-9-])([0-9]{4,5}-[0-9]{3,4}-[0-9]{1,2})(?![0-9-])")
_DAY = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})\Z")


class Codes(Struct, frozen=True):
    """What openFDA adds to a record: names and codes of the products."""

    brand_name: list[str] = []
    generic_name: list[str] = []
    product_ndc: list[str] = []
    package_ndc: list[str] = []
    application_number: list[str] = []
    manufacturer_name: list[str] = []


class Label(Struct):
    """A drug label."""

    set_id: str
    effective_time: str
    version: str
    openfda: Codes = Codes()
    indications_and_usage: list[str] = []
    boxed_warning: list[str] = []


class Recall(Struct):
    """An enforcement report."""

    recall_number: str
    product_description: str = ""
    reason_for_recall: str = ""
    recall_initiation_date: str = ""
    report_date: str = ""
    termination_date: str = ""
    status: str = ""
    classification: str = ""
    recalling_firm: str = ""
    openfda: Codes = Codes()


def convert(position: Position, data: bytes) -> Converted:
    """One label or one enforcement report."""
    tree = tree_of(data)
    if "recall_number" in tree:
        return _recall(position, tree, shaped(tree, Recall))
    if "set_id" in tree:
        return _label(position, tree, shaped(tree, Label))
    raise InvalidDocument("field", "neither `set_id` of a label nor `recall_number` of an enforcement report is there")


def _label(position: Position, tree: dict[str, object], said: Label) -> Converted:
    name = said.set_id.strip()
    if not name or not said.version.isascii() or not said.version.isdigit():
        raise InvalidDocument("field", "a label needs its `set_id`, and a `version` that is a number", name or None)
    seen = position.get(name) or NOTHING_SEEN
    rank = int(said.version)
    time = _day(said.effective_time, "`effective_time`", name)
    following = next_edition(seen, digest=digest_of(tree), time=time, rank=rank, base=rank * EDITIONS_A_DAY)
    if following is None:
        return Converted(known=1)
    codes = said.openfda
    called = (codes.brand_name or codes.generic_name or [name])[0]
    document = Document(
        id=f"{name}@{said.version}" + (f".seen{following.nth + 1}" if following.nth else ""),
        type="drug_label",
        time=following.edition.time,
        order=following.edition.order,
        scope=scope_of(
            {"record": (name,)},
            {
                "drug": (*codes.brand_name, *codes.generic_name),
                "ndc": (*codes.product_ndc, *codes.package_ndc),
                "application": codes.application_number,
            },
        ),
        attributes={**rest_of(tree, READ_LABEL), "openfda": tree.get("openfda", {})},
        title=line(f"{called}: drug label"),
        text=body(
            f"{', '.join((*codes.brand_name, *codes.generic_name))}.", *said.boxed_warning, *said.indications_and_usage
        ),
        source=line("openFDA, " + ", ".join(codes.manufacturer_name) if codes.manufacturer_name else "openFDA"),
    )
    return Converted(documents=(fitted(document),), seen={name: remembered(seen, following.edition)})


def _recall(position: Position, tree: dict[str, object], said: Recall) -> Converted:
    name = said.recall_number.strip()
    if not name:
        raise InvalidDocument("field", "`recall_number` is empty")
    seen = position.get(name) or NOTHING_SEEN
    told = said.termination_date or said.report_date or said.recall_initiation_date
    rank = _day(told, "`report_date`", name)
    time = _day(said.recall_initiation_date or told, "`recall_initiation_date`", name)
    following = next_edition(seen, digest=digest_of(tree), time=time, rank=rank, base=rank // DAY * EDITIONS_A_DAY)
    if following is None:
        return Converted(known=1)
    document = Document(
        id=f"{name}@{_dashed(told)}" + (f".{following.nth + 1}" if following.nth else ""),
        type="drug_recall",
        time=following.edition.time,
        order=following.edition.order,
        scope=scope_of({"record": (name,)}, _concerned(said)),
        attributes=rest_of(tree, READ_RECALL),
        title=line(f"Recall {name} ({said.classification or said.status}): {said.product_description}"),
        text=body(said.product_description, said.reason_for_recall, f"Status: {said.status}." if said.status else ""),
        source=line(f"openFDA, {said.recalling_firm}" if said.recalling_firm else "openFDA"),
    )
    return Converted(documents=(fitted(document),), seen={name: remembered(seen, following.edition)})


def _concerned(said: Recall) -> Mapping[str, Sequence[str]]:
    """The narrowest name that the report gives what it takes back."""
    text, codes = said.product_description, said.openfda
    named = _NDC.findall(text)
    if named:
        return {"ndc": tuple(dict.fromkeys((*named, *_MORE.findall(text))))}
    if codes.package_ndc or codes.product_ndc:
        return {"ndc": codes.package_ndc or codes.product_ndc}
    if codes.application_number:
        return {"application": codes.application_number}
    names = (*codes.brand_name, *codes.generic_name) or (re.split(r"[,;(]|\s[0-9]", text, maxsplit=1)[0],)
    return {"drug": names}


def _dashed(text: str) -> str:
    return _DAY.sub(r"\1-\2-\3", text.strip())


def _day(text: str, what: str, name: str) -> int:
    found = moment(_dashed(text), what=what, name=name)
    if found is None:
        raise InvalidDocument("time", f"{what} says no date", name)
    return found

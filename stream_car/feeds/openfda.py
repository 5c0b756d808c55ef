"""openFDA drug labels and enforcement reports (recalls), one by one or as the API returns them (`results`).

What decides. Labels: the record is `set_id`, the order `version`, the time `effective_time`; a label is in the scopes
of all its NDCs, its application and its names. Recalls: the record is `recall_number`, the time
`recall_initiation_date`, the order the date of the termination, else of the report; reports of one date are ordered
by arrival. A recall has the narrowest scope that it names: the NDCs in its `product_description`, else those of its
`openfda` part, else its application, else the drug's name. Types: `drug_label`, `drug_recall`. Ids of editions are
`SET_ID@VERSION` and `NUMBER@DATE`.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from stream_car.errors import InvalidDocument
from stream_car.feeds.editions import (
    EMPTY_STATE,
    Conversion,
    FeedState,
    add_edition,
    digest_of,
    material_digest,
    next_edition,
)
from stream_car.feeds.fields import decode_fields, make_document, other_fields, parse_object, require_date

DAY = 86_400_000_000  # microseconds
EDITIONS_PER_DAY = 1000
LABEL_CONVERTED = ("set_id", "id", "version", "effective_time", "openfda", "indications_and_usage", "boxed_warning")
RECALL_CONVERTED = ("recall_number", "product_description", "reason_for_recall", "recall_initiation_date", "openfda")
LABEL_MATERIAL = (
    "indications_and_usage",
    "boxed_warning",
    "contraindications",
    "warnings",
    "warnings_and_cautions",
    "dosage_and_administration",
    "drug_interactions",
)
RECALL_MATERIAL = ("classification", "status", "code_info")
_NDC = re.compile(r"\bNDC\b[^0-9]{0,12}([0-9]{4,5}-[0-9]{3,4}(?:-[0-9]{1,2})?)", re.IGNORECASE)
_PACKAGE_NDC = re.compile(r"(?<![0-9-])([0-9]{4,5}-[0-9]{3,4}-[0-9]{1,2})(?![0-9-])")
_DATE = re.compile(r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})\Z")


class ProductCodes(Struct, frozen=True):
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
    openfda: ProductCodes = ProductCodes()
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
    openfda: ProductCodes = ProductCodes()


def convert(state: FeedState, data: bytes) -> Conversion:
    """Convert one label or one enforcement report."""
    tree = parse_object(data)
    if "recall_number" in tree:
        return _convert_recall(state, tree, decode_fields(tree, Recall))
    if "set_id" in tree:
        return _convert_label(state, tree, decode_fields(tree, Label))
    raise InvalidDocument("field", "A label needs `set_id`, an enforcement report `recall_number`; there is neither.")


def _convert_label(state: FeedState, tree: dict[str, object], label: Label) -> Conversion:
    name = label.set_id.strip()
    if not name or not label.version.isascii() or not label.version.isdigit():
        raise InvalidDocument("field", "A label needs a `set_id`, and a `version` that is a number.", name or None)
    before = state.get(name) or EMPTY_STATE
    rank = int(label.version)
    time = _parse_day(label.effective_time, "`effective_time`", name)
    new = next_edition(before, digest=digest_of(tree), time=time, rank=rank, base=rank * EDITIONS_PER_DAY)
    if new is None:
        return Conversion(known=1)
    codes = label.openfda
    names = (*codes.brand_name, *codes.generic_name)
    scope = {"drug": names, "ndc": (*codes.product_ndc, *codes.package_ndc), "application": codes.application_number}
    document = make_document(
        {"record": (name,)},
        scope,
        id=f"{name}@{label.version}" + (f".seen{new.nth + 1}" if new.nth else ""),
        type="drug_label",
        time=new.edition.time,
        order=new.edition.order,
        attributes={
            **other_fields(tree, LABEL_CONVERTED),
            "openfda": tree.get("openfda", {}),
            "material": _material(tree, LABEL_MATERIAL, scope),
        },
        title=f"{(codes.brand_name or codes.generic_name or [name])[0]}: drug label",
        text=(f"{', '.join(names)}.", *label.boxed_warning, *label.indications_and_usage),
        source=", ".join(["openFDA", *codes.manufacturer_name]),
    )
    return Conversion(documents=(document,), states={name: add_edition(before, new.edition)})


def _convert_recall(state: FeedState, tree: dict[str, object], recall: Recall) -> Conversion:
    name = recall.recall_number.strip()
    if not name:
        raise InvalidDocument("field", "`recall_number` must not be empty.")
    before = state.get(name) or EMPTY_STATE
    date = recall.termination_date or recall.report_date or recall.recall_initiation_date
    rank = _parse_day(date, "`report_date`", name)
    time = _parse_day(recall.recall_initiation_date or date, "`recall_initiation_date`", name)
    new = next_edition(before, digest=digest_of(tree), time=time, rank=rank, base=rank // DAY * EDITIONS_PER_DAY)
    if new is None:
        return Conversion(known=1)
    status = f"Status: {recall.status}." if recall.status else ""
    scope = _recalled_scope(recall)
    document = make_document(
        {"record": (name,)},
        scope,
        id=f"{name}@{_with_dashes(date)}" + (f".{new.nth + 1}" if new.nth else ""),
        type="drug_recall",
        time=new.edition.time,
        order=new.edition.order,
        attributes={**other_fields(tree, RECALL_CONVERTED), "material": _material(tree, RECALL_MATERIAL, scope)},
        title=f"Recall {name} ({recall.classification or recall.status}): {recall.product_description}",
        text=(recall.product_description, recall.reason_for_recall, status),
        source=f"openFDA, {recall.recalling_firm}" if recall.recalling_firm else "openFDA",
    )
    return Conversion(documents=(document,), states={name: add_edition(before, new.edition)})


def _material(tree: Mapping[str, object], fields: Sequence[str], scope: Mapping[str, Sequence[str]]) -> str:
    """Return the digest of these fields and of the products; spaces, and the case and order of names, do not count."""
    products = {key: sorted({" ".join(value.casefold().split()) for value in values}) for key, values in scope.items()}
    return material_digest([products, [_without_extra_spaces(tree.get(field)) for field in fields]])


def _without_extra_spaces(value: object) -> object:
    if isinstance(value, list):
        return [_without_extra_spaces(item) for item in value]
    return " ".join(value.split()) if isinstance(value, str) else value


def _recalled_scope(recall: Recall) -> Mapping[str, Sequence[str]]:
    """Return the narrowest scope that the report gives to what is recalled."""
    text, codes = recall.product_description, recall.openfda
    ndcs = _NDC.findall(text)
    if ndcs:
        return {"ndc": tuple(dict.fromkeys((*ndcs, *_PACKAGE_NDC.findall(text))))}
    if codes.package_ndc or codes.product_ndc:
        return {"ndc": codes.package_ndc or codes.product_ndc}
    if codes.application_number:
        return {"application": codes.application_number}
    names = (*codes.brand_name, *codes.generic_name) or (re.split(r"[,;(]|\s[0-9]", text, maxsplit=1)[0],)
    return {"drug": names}


def _with_dashes(date: str) -> str:
    return _DATE.sub(r"\1-\2-\3", date.strip())


def _parse_day(text: str, what: str, name: str) -> int:
    return require_date(_with_dashes(text), what, name)

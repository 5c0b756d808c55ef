"""Examples of a rule pack, run through an engine: these documents, then these are in force, and this is why.

Promise: each case runs in an engine of its own, as it will run for users, and every difference is reported. Nothing
depends on the clock: documents of the future count, and `as_of` says when to look. Cost: one temporary data directory
per case.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec
from msgspec import Struct

from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRequest
from stream_car.local.engine import Engine
from stream_car.queries.answers import Explanation
from stream_car.rule_packs import load
from stream_car.suggest import join_names


class ExpectedEnd(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a document must be superseded: its outcome, by which document, by which rule. Any may be left out."""

    outcome: str = ""
    by: str = ""
    rule: str = ""


class Case(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Documents, and exactly those of them that must be in force; `as_of` is the time at which to look.

    `superseded` has reasons for some of the others. `amended` has for a document in force exactly what must amend it.
    """

    name: str
    documents: tuple[Mapping[str, object], ...]
    in_force: tuple[str, ...]
    superseded: Mapping[str, ExpectedEnd] = {}
    amended: Mapping[str, tuple[str, ...]] = {}
    as_of: object = None  # a date or a time, of TOML or as text


class CaseFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The packs to test, by name or by a path from the folder of the file, and the cases."""

    rules: tuple[str, ...]
    cases: tuple[Case, ...]


class CaseResult(Struct, frozen=True, kw_only=True):
    """What came of a case: nothing if it passed, else a sentence for each difference."""

    name: str
    failures: tuple[str, ...]


def run_cases(path: Path) -> Iterator[CaseResult]:
    """Run the cases of a file, one after the other.

    Raises:
        InvalidRequest: the file is not a file of cases (`cases`).
        InvalidRules: its packs cannot be loaded.
    """
    file = read_cases(path)
    ruleset = load([_pack(name, path.parent) for name in file.rules])
    return (CaseResult(name=case.name, failures=_failures(case, ruleset)) for case in file.cases)


def read_cases(path: Path) -> CaseFile:
    """Read a file of cases. Raises `InvalidRequest` (`cases`)."""
    try:
        file = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), CaseFile)
    except OSError as error:
        raise InvalidRequest("cases", f"{path}: The file cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest("cases", f"{path}: The file is not UTF-8. Save it as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest("cases", f"{path}: The text is not TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise InvalidRequest("cases", f"{path}: {error}. A case has `name`, `documents` and `in_force`.") from error
    for missing, table in ((not file.rules, "`rules` names no pack"), (not file.cases, "There is no [[cases]]")):
        if missing:
            raise InvalidRequest("cases", f"{path}: {table}. Add at least one.")
    for case in file.cases:
        unknown = set(case.in_force).union(case.superseded, case.amended) - {d.get("id") for d in case.documents}
        if unknown:
            names = join_names(sorted(unknown))
            raise InvalidRequest("cases", f"{path}: The case {case.name!r} expects {names}, but has no such document.")
    return file


def _pack(name: str, folder: Path) -> str:
    path = folder / name
    return str(path) if path.is_file() else name


def _failures(case: Case, ruleset: Ruleset) -> tuple[str, ...]:
    as_of = case.as_of.isoformat() if isinstance(case.as_of, date) else case.as_of
    if not isinstance(as_of, str | None):
        raise InvalidRequest("cases", f"`as_of` of the case {case.name!r} must be a date or a time.")
    with Engine(ruleset=ruleset, future="apply") as engine:
        receipts = engine.publish([msgspec.json.encode(document) for document in case.documents]).receipts
        names = dict.fromkeys(str(document["id"]) for document in case.documents if "id" in document)
        explanations = {name: engine.explain(name, as_of=as_of) for name in names}
    rejected = [receipt for receipt in receipts if receipt.outcome == "rejected"]
    failures = [f"{receipt.id or 'A document'} was rejected ({receipt.code}): {receipt.reason}" for receipt in rejected]
    failures += _differences(case, explanations)
    # A document that joins no scope may be meant, but explains why another one does not end.
    lacking = [(receipt.id, join_names(receipt.missing_keys, "or")) for receipt in receipts if receipt.missing_keys]
    notes = [f"{document_id} joins no scope: it has no {keys}." for document_id, keys in lacking]
    return (*failures, *notes) if failures else ()


def _differences(case: Case, explanations: Mapping[str, Explanation]) -> Iterator[str]:
    for name, explanation in explanations.items():
        yield from _wrong_status(name, explanation, is_wanted=name in case.in_force)
    for name, reason in case.superseded.items():
        yield from _wrong_reason(name, explanations[name], reason)
    for name, wanted in case.amended.items():
        yield from _wrong_amendments(name, explanations[name], wanted)


def _wrong_status(name: str, explanation: Explanation, *, is_wanted: bool) -> Iterator[str]:
    if is_wanted == (explanation.status == "in_force"):
        return
    if is_wanted:
        yield f"{name} should be in force, but is {_described(explanation)}."
    else:
        yield f"{name} is in force, but `in_force` does not name it."


def _wrong_reason(name: str, explanation: Explanation, reason: ExpectedEnd) -> Iterator[str]:
    if explanation.status != "superseded":
        yield f"{name} should be superseded, but is {explanation.status.replace('_', ' ')}."
        return
    if reason.outcome not in ("", explanation.outcome):
        yield f"{name} should be {reason.outcome!r}, but is {_described(explanation)}."
    steps = [step for membership in explanation.memberships for step in membership.by]
    fits = [step for step in steps if reason.by in ("", step.id) and reason.rule in ("", step.rule)]
    if not fits:
        wanted = " ".join(filter(None, (reason.by and f"by {reason.by}", reason.rule and f"under {reason.rule!r}")))
        yield f"{name} should be superseded {wanted}, but is {_described(explanation)}."


def _wrong_amendments(name: str, explanation: Explanation, wanted: Sequence[str]) -> Iterator[str]:
    controlling = explanation.group.controlling if explanation.group is not None else ()
    amending = {a.document.id for each in controlling if each.document.id == name for a in each.amendments}
    if amending != set(wanted):
        shown = join_names(sorted(amending)) if amending else "nothing"
        yield f"{name} should be amended by {join_names(wanted) if wanted else 'nothing'}, but is amended by {shown}."


def _described(explanation: Explanation) -> str:
    """Return the status with all reasons: `superseded (fixed): by b under 'b-fixes-a'`."""
    steps = [step for membership in explanation.memberships for step in membership.by]
    reasons = dict.fromkeys(f"by {step.id} under {step.rule!r}" for step in steps)
    outcome = f" ({explanation.outcome})" if explanation.outcome else ""
    return f"{explanation.status.replace('_', ' ')}{outcome}{': ' if reasons else ''}{', '.join(reasons)}"

"""Which rules a folder goes by, and where what was built with them lies.

Promise: `generation.json` is replaced whole or not at all, and it alone decides: whoever crashes while
something else is being built finds the old generation as it was. The packs are kept as they were read,
so that neither an edited file nor a new release of a shipped pack changes answers unasked.
"""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car import rule_packs as packs
from stream_car.core.rule_pack import RulePack
from stream_car.core.rules import Ruleset
from stream_car.errors import Halted, InvalidRequest
from stream_car.processing.effects import Future

FORMAT = 1
FILE = "generation.json"
BUILT = "built"


class Generation(Struct, frozen=True, kw_only=True):
    """The rules of a folder.

    `packs` are the names and files that can be read again, `given` names those that were handed over as they are;
    neither means all shipped.
    """

    number: int = 1
    packs: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    future: Future = "wait"
    domains: tuple[RulePack, ...] = ()
    format: int = FORMAT

    @property
    def called(self) -> str:
        """The packs in words."""
        return ", ".join((*self.packs, *self.given)) or "all shipped packs"

    @property
    def folder(self) -> str:
        """Where state and index lie, within the folder of the log."""
        return f"{BUILT}/{self.number}"

    def ruleset(self) -> Ruleset:
        """The rules, compiled."""
        return Ruleset(self.domains)

    def is_like(self, other: "Generation") -> bool:
        """Whether both decide alike."""
        return self.future == other.future and self.ruleset().digest == other.ruleset().digest


def read_packs(
    names: Sequence[str | Path], *, future: Future = "wait", number: int = 1, beside: Sequence[RulePack] = ()
) -> Generation:
    """The generation of these packs as they are now, and of others as they are. Raises `InvalidRules`."""
    return Generation(
        number=number,
        packs=tuple(str(Path(name).resolve()) if Path(name).is_file() else str(name) for name in names),
        given=tuple(domain.name for domain in beside),
        future=future,
        domains=packs.load(names, beside).packs,
    )


def _given(
    ruleset: Ruleset, future: Future, *, names: Sequence[str | Path] | None = None, number: int = 1
) -> Generation:
    """The generation of rules that somebody holds in hand; those of these names can be read again."""
    again = tuple(str(name) for name in names or ())
    given = tuple(domain.name for domain in ruleset.packs if domain.name not in again)
    return Generation(number=number, packs=again, given=given, future=future, domains=ruleset.packs)


def wanted(
    known: Generation | None, ruleset: Ruleset | None, names: Sequence[str | Path], future: Future | None
) -> Generation | None:
    """What whoever opens a folder asks for; `None` where whatever it goes by will do."""
    if ruleset is None and not names and future is None:
        return None
    decided = future if future is not None else known.future if known is not None else "wait"
    if ruleset is not None:
        return _given(ruleset, decided)
    if not names and known is not None:
        return replace(known, future=decided)
    return read_packs(names, future=decided)


def following(
    known: Generation, ruleset: Ruleset | None, names: Sequence[str | Path] | None, future: Future | None
) -> Generation:
    """The generation after this one; without names its own packs are read again. Raises `InvalidRules`.

    With a rule set the names are those of its packs that can be read again the next time.
    """
    decided, number = future if future is not None else known.future, known.number + 1
    if ruleset is not None:
        return _given(ruleset, decided, names=names, number=number)
    if names is not None:
        return read_packs(names, future=decided, number=number)
    kept = [domain for domain in known.domains if domain.name in known.given]
    return read_packs(known.packs, future=decided, number=number, beside=kept)


def remembered(folder: Path) -> Generation | None:
    """What the folder goes by; `None` where nothing was remembered. Raises `Halted`."""
    try:
        text = (folder / FILE).read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = msgspec.json.decode(text, type=Generation)
    except (msgspec.DecodeError, ValueError) as error:
        cure = "restore it from a backup, or remove it and open the folder with its rules"
        raise Halted("damaged", f"{FILE} cannot be read ({error}); {cure}") from error
    if found.format != FORMAT:
        raise Halted("format", f"{FILE} has format {found.format}, this release reads {FORMAT}; use its release")
    return found


def remember(folder: Path, generation: Generation) -> None:
    """From now on the folder goes by this; on disk when it returns."""
    new = folder / f"{FILE}.new"
    with new.open("wb") as file:
        os.chmod(new, 0o600)
        file.write(msgspec.json.format(msgspec.json.encode(generation), indent=1))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, folder / FILE)
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def agreed(known: Generation | None, wanted: Generation | None, *, is_empty: bool) -> Generation:
    """What an engine over a folder goes by: what is remembered, unless there is nothing yet to go by it.

    Raises `InvalidRequest` (`rules`) where other rules are wanted: only a rebuild changes them.
    """
    if known is None or (is_empty and wanted is not None):
        return wanted if wanted is not None else read_packs(())
    if wanted is not None and not wanted.is_like(known):
        raise InvalidRequest("rules", _difference(known, wanted))
    return known


def _difference(known: Generation, wanted: Generation) -> str:
    """What a folder has, what was asked for, and what to do about it."""
    if known.ruleset().digest == wanted.ruleset().digest:
        return (
            f"This data directory was built with future={known.future}, but future={wanted.future} was asked for. "
            "Leave it out to use the data as it is, or preview the change with "
            f"`stream-car rebuild --future {wanted.future} --dry-run`."
        )
    has, asked = known.called, wanted.called
    if has == asked:
        has, asked = f"{has}, as of digest {known.ruleset().digest}", f"the same names, now {wanted.ruleset().digest}"
    return (
        f"This data directory was built with different rules. It has: {has}. Asked for: {asked}. "
        "Omit --rules and STREAM_CAR_RULES to use the data as it is, or preview the change with "
        "`stream-car rebuild --rules ... --dry-run`."
    )


def sweep(folder: Path, current: Generation) -> None:
    """Remove what a rebuild that was never switched to has left."""
    for left in (folder / BUILT).glob("*"):
        if left != folder / current.folder:
            shutil.rmtree(left, ignore_errors=True)

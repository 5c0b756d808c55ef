"""Which rules a data directory was built with, and where what was built lies.

Promise: the log records the rules, tied to its chain, and they alone decide: they cannot be lost or changed apart from
the records, and a crash while something else is being built leaves the old generation as it was. `generation.json` is a
copy for people to read. Packs are kept as they were read, so that neither an edited file nor a new
release of a shipped pack changes what supersedes what on its own. Outcomes and states are words, which may change.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from stream_car import rule_packs
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.core.rule_pack import RulePack
from stream_car.core.rules import Ruleset
from stream_car.errors import Halted, InvalidRequest
from stream_car.files.atomic import replace_file
from stream_car.processing.effects import Future

FORMAT = 1
LOG = "documents.sqlite"
FILE = "generation.json"
BUILT = "built"


class Generation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a data directory; stored under the names that are given as `name`.

    `rules` are names and files that can be read again, `given` the names of packs that were handed over as they are;
    neither means all shipped packs.
    """

    number: int
    rules: tuple[str, ...] = field(name="packs")
    given: tuple[str, ...]
    future: Future
    packs: tuple[RulePack, ...] = field(name="domains")
    format: int

    @property
    def description(self) -> str:
        """The packs in words."""
        return ", ".join((*self.rules, *self.given)) or "all shipped packs"

    @property
    def folder(self) -> str:
        """Where state and index lie, within the data directory."""
        return f"{BUILT}/{self.number}"

    def ruleset(self) -> Ruleset:
        """The rules, compiled."""
        return Ruleset(map(rule_packs.with_shipped_words, self.packs))

    def decides_like(self, other: "Generation") -> bool:
        """Whether both decide alike."""
        return self.future == other.future and self.ruleset().digest == other.ruleset().digest


def read_rules(
    names: Sequence[str | Path], *, future: Future = "wait", number: int = 1, beside: Sequence[RulePack] = ()
) -> Generation:
    """The generation of these packs as they are now, and of others as they are. Raises `InvalidRules`."""
    return Generation(
        number=number,
        rules=tuple(str(Path(name).resolve()) if Path(name).is_file() else str(name) for name in names),
        given=tuple(pack.name for pack in beside),
        future=future,
        packs=rule_packs.load(names, beside).packs,
        format=FORMAT,
    )


def _from_ruleset(
    ruleset: Ruleset, future: Future, *, names: Sequence[str | Path] | None = None, number: int = 1
) -> Generation:
    """The generation of rules in hand; those of these names can be read again."""
    again = tuple(str(name) for name in names or ())
    given = tuple(pack.name for pack in ruleset.packs if pack.name not in again)
    return Generation(number=number, rules=again, given=given, future=future, packs=ruleset.packs, format=FORMAT)


def request(
    known: Generation | None, ruleset: Ruleset | None, names: Sequence[str | Path], future: Future | None
) -> Generation | None:
    """What a caller asks for; `None` if it accepts whatever the directory was built with."""
    if ruleset is None and not names and future is None:
        return None
    decided = future if future is not None else known.future if known is not None else "wait"
    if ruleset is not None:
        return _from_ruleset(ruleset, decided)
    if not names and known is not None:
        return replace(known, future=decided)
    return read_rules(names, future=decided)


def successor(
    known: Generation, ruleset: Ruleset | None, names: Sequence[str | Path] | None, future: Future | None
) -> Generation:
    """The generation after this one; without names its own packs are read again. Raises `InvalidRules`.

    With a ruleset, the names are those of its packs that can be read again next time.
    """
    decided, number = future if future is not None else known.future, known.number + 1
    if ruleset is not None:
        return _from_ruleset(ruleset, decided, names=names, number=number)
    if names is not None:
        return read_rules(names, future=decided, number=number)
    unchanged = [pack for pack in known.packs if pack.name in known.given]
    return read_rules(known.rules, future=decided, number=number, beside=unchanged)


def read_generation(folder: Path, log: SqliteLog) -> Generation | None:
    """Return what a directory was built with: what its log records, or for one of an older release, what `FILE` says.

    Raises:
        Halted: neither can be read (`damaged`), or both are of another release (`format`).
    """
    text = log.rules()
    if text is None:
        try:
            text = (folder / FILE).read_bytes()
        except FileNotFoundError:
            return None
    try:
        generation = msgspec.json.decode(text, type=Generation)
    except (msgspec.DecodeError, ValueError) as error:
        cure = "restore it from a backup, or remove it and open the directory with its rules"
        raise Halted("damaged", f"{FILE} cannot be read ({error}); {cure}.") from error
    if generation.format != FORMAT:
        raise Halted("format", f"{FILE} has format {generation.format}, this release reads {FORMAT}; use its release.")
    return generation


def write_generation(folder: Path, log: SqliteLog, generation: Generation) -> None:
    """Record that the directory is built with this from now on. It is durable when this returns."""
    log.record_rules(msgspec.json.encode(generation))
    write_copy(folder, generation)


def has_copy(folder: Path, generation: Generation) -> bool:
    """Return whether the copy for people to read agrees."""
    path = folder / FILE
    return path.is_file() and path.read_bytes() == _copy_of(generation)


def write_copy(folder: Path, generation: Generation) -> None:
    """Write the copy for people to read."""
    replace_file(folder / FILE, _copy_of(generation))


def _copy_of(generation: Generation) -> bytes:
    return msgspec.json.format(msgspec.json.encode(generation), indent=1)


def choose(known: Generation | None, requested: Generation | None, *, is_empty: bool) -> Generation:
    """What an engine over a directory uses: what is remembered, unless nothing depends on it yet.

    Raises `InvalidRequest` (`rules`) if other rules are requested: only a rebuild changes them.
    """
    if known is None and requested is None and not is_empty:
        cure = f"Give them with --rules or `rules=`, or restore {FILE} from a backup."
        raise InvalidRequest("rules", f"The rules that this data directory was built with are not known. {cure}")
    if known is None or (is_empty and requested is not None):
        return requested if requested is not None else read_rules(())
    if requested is None:
        return known
    if not requested.decides_like(known):
        raise InvalidRequest("rules", _difference(known, requested))
    return replace(known, packs=requested.packs)  # the same rules, perhaps with other outcomes and states


def _difference(known: Generation, requested: Generation) -> str:
    """What a directory has, what was asked for, and what to do about it."""
    if known.ruleset().digest == requested.ruleset().digest:
        return (
            f"This data directory was built with future={known.future}, but future={requested.future} was requested. "
            "Leave it out to use the data as it is, or preview the change with "
            f"`stream-car rebuild --future {requested.future} --dry-run`."
        )
    has, names = known.description, requested.description
    if has == names:
        has = f"{has}, as of digest {known.ruleset().digest}"
        names = f"the same names, now {requested.ruleset().digest}"
    return (
        f"This data directory was built with different rules. It has: {has}. Requested: {names}. "
        "Omit --rules and STREAM_CAR_RULES to use the data as it is, or preview the change with "
        "`stream-car rebuild --rules ... --dry-run`."
    )


def remove_abandoned(folder: Path, current: Generation) -> None:
    """Remove what a rebuild left that was never switched to."""
    for entry in (folder / BUILT).glob("*"):
        if entry != folder / current.folder:
            shutil.rmtree(entry, ignore_errors=True)

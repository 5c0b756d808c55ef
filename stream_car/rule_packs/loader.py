"""Load rule packs: shipped packs by name, other packs from files or texts.

Promise: `load` either returns a rule set free of contradictions or raises `InvalidRules` with everything that is
wrong with any of the packs.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from stream_car.core.rule_pack import RulePack
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRules
from stream_car.rule_packs.consistency import find_problems
from stream_car.rule_packs.parser import ParsedPack, parse_pack
from stream_car.suggest import did_you_mean, join_names


def shipped_names() -> tuple[str, ...]:
    """Return the names of the packs that come with Stream-CAR."""
    names = (item.name for item in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_pack(path: str | Path) -> RulePack:
    """Read one pack from a file. Its rules may name types of other packs; `load` checks that those exist.

    Raises:
        InvalidRules: `problems` lists everything that is wrong with the file.
    """
    pack, problems = _read_file(Path(path))
    if pack is None or problems:
        raise InvalidRules(problems)
    if problems := find_problems([pack]):
        raise InvalidRules(tuple(f"{path}: {problem}" for problem in problems))
    return pack


def load(names_or_paths: Sequence[str | Path] = (), beside: Sequence[RulePack] = ()) -> Ruleset:
    """Load packs by name or path, together with the packs `beside` them. Without any of these, load all shipped packs.

    Raises:
        InvalidRules: `problems` lists everything that is wrong with any of the packs.
    """
    names = names_or_paths or (() if beside else shipped_names())
    return _ruleset([*(_read(name) for name in dict.fromkeys(names)), *((pack, ()) for pack in beside)])


def load_texts(names: Sequence[str], texts: Mapping[str, str]) -> Ruleset:
    """Load shipped packs by name and other packs from their text, by source name.

    A name is never taken for a path, so a remote caller cannot make the service read a file.

    Raises:
        InvalidRules: `problems` lists everything that is wrong with any of the packs.
    """
    shipped_packs = [_read_shipped(name) for name in dict.fromkeys(names)]
    return _ruleset(shipped_packs + [parse_pack(text, name) for name, text in texts.items()])


def read_packs(names_or_paths: Iterable[str | Path]) -> tuple[tuple[RulePack, ...], tuple[str, ...]]:
    """Return the packs that could be read, and everything that is wrong with them, alone and together."""
    return _combine([_read(name) for name in dict.fromkeys(names_or_paths)])


def with_shipped_words(pack: RulePack) -> RulePack:
    """Return a shipped pack that an earlier release stored without outcomes and states as it ships now, with them.

    Any other pack, and one whose rules have changed since, is returned as it is.
    """
    if pack.states or any(rule.outcome for rule in pack.rules) or pack.name not in shipped_names():
        return pack
    shipped, _ = _read_shipped(pack.name)
    return shipped if shipped is not None and Ruleset([shipped]).digest == Ruleset([pack]).digest else pack


def _ruleset(parsed: Sequence[ParsedPack]) -> Ruleset:
    packs, problems = _combine(parsed)
    if problems:
        raise InvalidRules(problems)
    return Ruleset(packs)


def _combine(parsed: Sequence[ParsedPack]) -> tuple[tuple[RulePack, ...], tuple[str, ...]]:
    packs = tuple(pack for pack, _ in parsed if pack is not None)
    # An unknown type may belong to a pack that could not be read, so types are only judged if all packs were.
    elsewhere = _shipped_types(packs) if len(packs) == len(parsed) else None
    return packs, (*(problem for _, problems in parsed for problem in problems), *find_problems(packs, elsewhere))


def _shipped_types(loaded: Sequence[RulePack]) -> dict[str, str]:
    """Return for each type of the shipped packs that are not loaded the name of its pack."""
    names = {pack.name for pack in loaded}
    others = [_read(name)[0] for name in shipped_names() if name not in names]
    return {type_name: pack.name for pack in others if pack is not None for type_name in pack.types}


def _read(name: str | Path) -> ParsedPack:
    is_name = isinstance(name, str) and not Path(name).exists() and not name.endswith(".toml")
    if isinstance(name, str) and (name in shipped_names() or is_name):
        return _read_shipped(name)
    return _read_file(Path(name))


def _read_shipped(name: str) -> ParsedPack:
    choices = shipped_names()
    if name in choices:
        return parse_pack(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")
    hint = did_you_mean(name, choices)
    return None, (f"No rule pack is called {name!r}.{hint} Choose from {join_names(choices)}, or give a file.",)


def _read_file(path: Path) -> ParsedPack:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        return None, (f"{path}: The file cannot be read: {error.strerror}.",)
    except UnicodeDecodeError as error:
        return None, (f"{path}: The file is not UTF-8: the byte at {error.start} is wrong. Save it as UTF-8.",)
    return parse_pack(text, str(path))

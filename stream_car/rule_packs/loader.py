"""Where packs come from: the shipped files by name, other files by path.

Promise: `load` either returns a rule set free of contradictions or raises `InvalidRules` with
everything that is wrong with any of the packs.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from stream_car.core.rule_pack import RulePack
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidRules
from stream_car.rule_packs.consistency import problems
from stream_car.rule_packs.parser import read
from stream_car.rule_packs.suggestions import listed, meant

Read = tuple[RulePack | None, tuple[str, ...]]


def shipped() -> tuple[str, ...]:
    """The names of the packs that come with Stream-CAR."""
    names = (item.name for item in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_pack(path: str | Path) -> RulePack:
    """One pack from a file. Rules may name types of other packs; `load` checks that these are there.

    Raises `InvalidRules` with everything that is wrong with the file.
    """
    domain, found = _from_file(Path(path))
    if domain is None or found:
        raise InvalidRules(found)
    if found := problems([domain]):
        raise InvalidRules(tuple(f"{path}: {problem}" for problem in found))
    return domain


def load(names_or_paths: Sequence[str | Path] = (), beside: Sequence[RulePack] = ()) -> Ruleset:
    """These packs together, and others as they are; without any, all shipped ones.

    Raises `InvalidRules` with everything that is wrong with any of them.
    """
    names = names_or_paths or (() if beside else shipped())
    domains, found = _together([*(_read(name) for name in dict.fromkeys(names)), *((one, ()) for one in beside)])
    if found:
        raise InvalidRules(found)
    return Ruleset(domains)


def load_sent(names: Sequence[str], texts: Mapping[str, str]) -> Ruleset:
    """Shipped packs by name, and others by their text: no file that a stranger names is read.

    Raises `InvalidRules` with everything that is wrong with any of them.
    """
    rows = [_shipped(name) for name in dict.fromkeys(names)] + [read(text, name) for name, text in texts.items()]
    domains, found = _together(rows)
    if found:
        raise InvalidRules(found)
    return Ruleset(domains)


def gather(names_or_paths: Iterable[str | Path]) -> tuple[tuple[RulePack, ...], tuple[str, ...]]:
    """The packs that could be read, and everything that is wrong with them, alone and together."""
    return _together([_read(name) for name in dict.fromkeys(names_or_paths)])


def _together(rows: Sequence[Read]) -> tuple[tuple[RulePack, ...], tuple[str, ...]]:
    domains = tuple(domain for domain, _ in rows if domain is not None)
    complete = len(domains) == len(rows)  # else an unknown type may be one of the pack that is missing
    alone = [problem for _, some in rows for problem in some]
    return domains, (*alone, *problems(domains, _declared(domains) if complete else None))


def _declared(loaded: Sequence[RulePack]) -> dict[str, str]:
    """Which shipped pack, not among these, declares a type."""
    names = {domain.name for domain in loaded}
    others = [_read(name)[0] for name in shipped() if name not in names]
    return {kind: domain.name for domain in others if domain is not None for kind in domain.types}


def _read(name: str | Path) -> Read:
    is_name = isinstance(name, str) and not Path(name).exists() and not name.endswith(".toml")
    if isinstance(name, str) and (name in shipped() or is_name):
        return _shipped(name)
    return _from_file(Path(name))


def _shipped(name: str) -> Read:
    choices = shipped()
    if name in choices:
        return read(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"), f"{name}.toml")
    return None, (f"no pack is called {name!r}{meant(name, choices)}; choose from {listed(choices)}, or give a file",)


def _from_file(path: Path) -> Read:
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        return None, (f"{path}: cannot be read: {error.strerror}",)
    except UnicodeDecodeError as error:
        return None, (f"{path}: this is not UTF-8: a byte at {error.start} is wrong; save it as UTF-8",)
    return read(text, str(path))

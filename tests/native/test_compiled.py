"""What `make native` tests is the compiled core, not the modules as they are written. Only it runs this."""

import tomllib
from importlib import import_module

import pytest
from msgspec import Struct

from tests.support.repository import ROOT

COMPILED = [
    path.removeprefix("/").removesuffix(".py").replace("/", ".")
    for path in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "hooks"
    ]["mypyc"]["include"]
]


@pytest.mark.parametrize("name", COMPILED)
def test_every_module_that_is_to_be_compiled_is(name: str) -> None:
    assert str(import_module(name).__file__).endswith((".so", ".pyd"))


@pytest.mark.parametrize("name", COMPILED)
def test_the_values_of_a_compiled_module_have_their_options(name: str) -> None:
    kinds = [kind for kind in vars(import_module(name)).values() if isinstance(kind, type) and issubclass(kind, Struct)]

    for kind in kinds:
        if kind.__module__ == name:
            assert kind.__struct_config__.frozen and not kind.__struct_config__.gc, kind

"""What `make native` tests is the compiled core, not the modules as they are written. Only it runs this."""

import tomllib
from importlib import import_module

import pytest

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

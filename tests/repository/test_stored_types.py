"""Stored types refuse fields that they do not know, so that a renamed field is never read as an absent one."""

from types import ModuleType

import pytest
from msgspec import Struct

from stream_car.codec import placements
from stream_car.core import changes, rule_pack, stored
from stream_car.core.documents import Document
from stream_car.local import generation
from stream_car.ports import Emission, Message, Record
from stream_car.processing import headers, outcomes

MODULES = (stored, changes, rule_pack, headers, outcomes, placements, generation)


def structs(module: ModuleType) -> list[type[Struct]]:
    """Return the public structs that a module defines."""
    return [
        kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, Struct) and kind.__module__ == module.__name__ and name[0] != "_"
    ]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_struct_of_a_module_of_stored_types_is_strict(module: ModuleType) -> None:
    kinds = structs(module)
    assert kinds
    assert [kind.__name__ for kind in kinds if not kind.__struct_config__.forbid_unknown_fields] == []


@pytest.mark.parametrize("kind", [Document, Emission, Message, Record], ids=lambda kind: kind.__name__)
def test_other_stored_types_are_strict(kind: type[Struct]) -> None:
    assert kind.__struct_config__.forbid_unknown_fields

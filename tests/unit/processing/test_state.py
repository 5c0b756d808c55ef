"""What a shard has decoded is kept once, however it was read, and can be forgotten."""

from itertools import permutations

import pytest

from stream_car.core.changes import Cause
from stream_car.core.frontier import place
from stream_car.core.pages import INLINE_MAX, insert_member
from stream_car.core.revisions import Placement, document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Entry, Scope, StoredDocument
from stream_car.core.timeline import StateContradiction, all_members, scope_key
from stream_car.processing.state import State, Value, decode_value, encode_value

NAME = "topic=tea"


def entry(number: int) -> Entry:
    return Entry(f"e{number}", 1, "claim", 1_000_000 + number, 0, number, 2_000_000)


def written(members: int) -> dict[bytes, bytes | None]:
    """The bytes of a scope and its documents as a store keeps them."""
    scope, values = Scope(NAME), State()
    for number in range(members):
        insert_member(scope, values.pages, entry(number))
        values.put(StoredDocument(entry=entry(number), retracted=False, digest=b"digest", scopes=(NAME,)))
    values.scopes[NAME] = scope
    return {key: encode_value(value) for key, value in values.items()}


def read(stored: dict[bytes, bytes | None], keys: list[bytes]) -> State:
    state = State()
    for key in keys:
        state[key] = decode_value(key, stored[key])
    return state


@pytest.mark.parametrize("members", [3, INLINE_MAX + 1])
def test_a_document_and_its_scopes_share_one_entry_whichever_is_read_first(members: int) -> None:
    stored = written(members)
    header = scope_key(NAME)
    pages = [key for key in stored if key.startswith(b"p:")]
    for keys in permutations([document_key("e0"), header, document_key("e1"), *pages]):
        if any(keys.index(page) < keys.index(header) for page in pages):
            continue  # a page is known by its header
        state = read(stored, list(keys))
        scope = state.scopes[NAME]
        assert scope is not None
        by_id = {member.id: member for member in all_members(scope, state.pages)}
        for name in ("e0", "e1"):
            held = state.documents[name]
            assert held is not None
            assert held.entry is by_id[name]
            assert held.entry == entry(int(name[1:]))
        assert len({id(member.type) for member in by_id.values()}) == 1


def test_the_names_of_a_scope_are_those_of_its_members() -> None:
    stored = written(2)
    state = read(stored, [scope_key(NAME), document_key("e0")])
    held, scope = state.documents["e0"], state.scopes[NAME]
    assert held is not None
    assert scope is not None
    assert held.scopes[0] is scope.name
    assert state.shared_names(("".join(["topic", "=tea"]),)) is held.scopes
    assert state.shared_names((NAME, "topic=other")) == (NAME, "topic=other")


def test_what_is_known_by_key_is_known_by_name() -> None:
    state = State()
    state[document_key("nobody")] = None
    state[scope_key(NAME)] = None
    assert state.documents == {"nobody": None}
    assert state.scope(NAME) == Scope(NAME)
    values: dict[bytes, Value] = dict(state)
    assert values == {document_key("nobody"): None, scope_key(NAME): Scope(NAME)}
    for key in values:
        del state[key]
    assert not state


def test_the_longest_known_is_forgotten_first() -> None:
    state = read(stored := written(20), list(stored))
    state.shrink(len(state))
    assert len(state) == 21
    state.shrink(16)
    assert len(state) <= 16
    assert "e0" not in state.documents
    assert "e19" in state.documents


@pytest.mark.parametrize("members", [3, INLINE_MAX + 1])
@pytest.mark.parametrize("is_corrected", [False, True], ids=["removed", "corrected"])
def test_a_member_that_is_not_where_the_state_says_is_named_as_damage(members: int, is_corrected: bool) -> None:
    scope, values = Scope(NAME), State()
    for number in range(members):
        insert_member(scope, values.pages, entry(number))
    gone = entry(members)
    placement = Placement(
        scope=NAME,
        id=gone.id,
        entry=gone if is_corrected else None,
        old=(gone.type, gone.time, gone.order),
        cause=Cause(id=gone.id, revision=2, kind="corrected" if is_corrected else "retracted"),
        offset=9,
    )
    before = [one.id for one in all_members(scope, values.pages)]
    with pytest.raises(StateContradiction, match=f"'{gone.id}' is not a member of 'topic=tea'"):
        place(scope, values.pages, placement, Ruleset([]))

    assert [one.id for one in all_members(scope, values.pages)] == before

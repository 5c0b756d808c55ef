"""A reader follows one call through few rooms. `python -m tools.structure` shows which."""

from tools.structure import traces

CROSSINGS_MAX = {"publish": 40, "query": 40}  # between rooms, counted on the way of one call in the library


def test_a_call_crosses_few_rooms() -> None:
    crossings = {name: trace.crossings for name, trace in traces().items()}

    assert {name: crossings[name] for name, most in CROSSINGS_MAX.items() if crossings[name] > most} == {}

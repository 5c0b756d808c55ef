"""What the converters of all formats share."""

import pytest

from stream_car.core.documents import Document
from stream_car.feeds.fields import fit_limits

LONG = "y" * 300_000


def document(**attributes: object) -> Document:
    return Document(id="d", type="advisory", time=0, attributes=attributes)


def test_attributes_dropped_for_their_size_are_added_to_what_the_converter_left_out() -> None:
    fitted = fit_limits(document(left_out=["products"], notes=LONG, status="final"))

    assert fitted.attributes == {"left_out": ["notes", "products"], "status": "final"}


@pytest.mark.parametrize("own", ["all", [1, {"a": 2}], {"a": "b"}])
def test_a_publishers_own_field_of_that_name_is_listed_as_left_out(own: object) -> None:
    fitted = fit_limits(document(left_out=own, notes=LONG))

    assert fitted.attributes == {"left_out": ["left_out", "notes"]}

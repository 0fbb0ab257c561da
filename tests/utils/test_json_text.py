"""JSON of a stranger."""

import pytest

from colocam.utils.files import parse_json


def test_json():
    assert parse_json('{"a": [1, 2.5, null, "ü"]}') == {"a": [1, 2.5, None, "ü"]}


@pytest.mark.parametrize("text", ["", "NaN", "[-Infinity]", "[" * 100_000, "9" * 5000])
def test_what_is_none_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the message is Python's own
        parse_json(text)

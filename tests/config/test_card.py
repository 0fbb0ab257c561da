"""The card of a model: the same after writing and reading, and one line where it is none."""

import json

import pytest

from colocam.config import Backbone
from colocam.config.card import Card, parse_card
from colocam.errors import ColocamError

CARD = Card(
    method="colocam",
    tags=("cat", "naïve 'dog'"),
    size=96,
    threshold=0.1 + 0.2,
    threshold_from="tags-only",
    backbone=Backbone(name="resnet18", mean=(0.1, 0.2, 0.3), std=(1.0, 1.0, 1.0), args={"channels": [8, 8]}),
    decoder=(8, 4),
    presence=(1.5, -0.25),
)


@pytest.mark.parametrize("card", [CARD, CARD.model_copy(update={"presence": None})])
def test_there_and_back(card):
    assert parse_card(card.model_dump_json(), "x") == card


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[1]",
        '"format"',
        "{}",
        '{"format": 2}',
        json.dumps({**json.loads(CARD.model_dump_json()), "x": 1}),
        "[" * 100_000,
        '{"format": 2, "threshold": NaN}',
        '{"format": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_card(text):
    with pytest.raises(ColocamError, match=r"^here is not a colocam model card: do that$"):
        parse_card(text, "here", "do that")


def test_another_format_is_named_before_its_keys_are_read():
    with pytest.raises(ColocamError, match=r"^here has format 1, this colocam reads 2: update colocam"):
        parse_card('{"format": 1, "other": "keys"}', "here")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"size": 10**400}, "'size'"),
        ({"size": 0}, "'size'"),
        ({"threshold": 1.5}, "'threshold'"),
        ({"tags": []}, "'tags'"),
        ({"decoder": [10**7]}, "'decoder.0'"),
        ({"decoder": [8] * 17}, "'decoder'"),
        ({"map_size": 40}, "map_size must divide size 96, got 40"),
    ],
)
def test_values_without_sense_are_named(values, told):
    text = json.dumps({**json.loads(CARD.model_dump_json()), **values})
    with pytest.raises(ColocamError, match=rf"^here is not a colocam model card \(.*{told}.*\): do that$"):
        parse_card(text, "here", "do that")


@pytest.mark.parametrize(("stored", "on", "off"), [(False, 1.0, 0.0), (True, 1.0, 0.0), (0.7, 0.7, 0.0)])
def test_the_power_of_the_focus_is_the_cards_unless_switched(stored, on, off):
    again = parse_card(CARD.model_copy(update={"focus": stored}).model_dump_json(), "x")
    assert again.focus_power() == float(stored)
    assert (again.focus_power(on=True), again.focus_power(on=False)) == (on, off)

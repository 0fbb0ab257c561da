"""The sentences that CLIP is asked."""

import pytest

from colocam.cams.clip import BACKGROUND, TEMPLATE, fill, rivals
from colocam.errors import ColocamError


def test_a_tag_does_not_compete_with_its_own_name():
    assert rivals(["Bridge", "dog", "sky"], ["sky", "bridge", "tree"]) == ("tree",)
    assert rivals(["dog"], BACKGROUND) == BACKGROUND


def test_sentences():
    assert fill("a photo of a {}", ["dog", "{cat}"]) == ["a photo of a dog", "a photo of a {cat}"]
    assert fill(TEMPLATE, ["dog"]) == ["a clean origami dog."]


@pytest.mark.parametrize("template", ["a photo", "{} and {}", ""])
def test_a_template_has_one_place(template):
    with pytest.raises(ColocamError, match=r"must contain '\{\}' once"):
        fill(template, ["dog"])

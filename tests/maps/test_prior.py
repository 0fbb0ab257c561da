"""A prior against networks whose output is known, and the weights against the formula, pixel by pixel."""

import numpy as np
import pytest

from colocam.errors import ColocamError
from colocam.maps.prior import open_prior, weigh_by_prior, weigh_where_it_agrees
from tests.helpers.red_prior import RED, weighed_by_hand, write_onnx, write_red_prior

RNG = np.random.default_rng(0)
OTHER = '<ir_version: 8, opset_import: ["" : 13]>\nother {}'
FLAT = OTHER.format("(float[1,3,8,8] image) => (float[1,3,8,8] map) { map = Identity (image) }")
TWO = OTHER.format("(float[1,3,8,8] a, float[1,3,8,8] b) => (float[1,1,8,8] map) { map = ReduceMean<axes=[1]> (a) }")
GRAY = OTHER.format("(float[1,1,8,8] image) => (float[1,1,8,8] map) { map = Sigmoid (image) }")
BYTES = OTHER.format("(uint8[1,3,8,8] image) => (uint8[1,3,8,8] map) { map = Identity (image) }")
LOGITS = OTHER.format("(float[1,3,8,8] image) => (float[1,1,8,8] map) { map = ReduceMin<axes=[1]> (image) }")
NAN = OTHER.format(
    "(float[1,3,8,8] image) => (float[1,1,8,8] map) { low = ReduceMin<axes=[1]> (image)  map = Log (low) }"
)
NUMBER = OTHER.format("(float[1,3,8,8] image) => (float[1,3,1,1] map) { map = GlobalAveragePool (image) }")


@pytest.mark.parametrize("size", [(16, 24), (40, 60), (5, 9)])
def test_it_sees_what_its_network_computes(tmp_path, size):
    """The image is resized, divided by its maximum, and normalized; here the network undoes the latter."""
    prior = open_prior(write_red_prior(tmp_path / "red.onnx"))
    image = np.full((*size, 3), 30, np.uint8)
    image[:, : size[1] // 2, 0], image[-size[0] // 4 :, :, 2] = 150, 200
    seen = prior.map(image)
    assert seen.shape == (16, 24)
    np.testing.assert_allclose(seen[:, :9], 255 * 150 / 200, atol=1)
    np.testing.assert_allclose(seen[:, 15:], 255 * 30 / 200, atol=1)
    assert prior.name == "red"


def test_a_network_of_any_size_reads_320_pixels(tmp_path):
    prior = open_prior(write_red_prior(tmp_path / "any.onnx", "n,3,h,w"))
    assert prior.map(np.zeros((8, 8, 3), np.uint8)).shape == (320, 320)


def test_an_image_does_not_depend_on_others(tmp_path):
    prior = open_prior(write_red_prior(tmp_path / "red.onnx"))
    images = RNG.integers(0, 256, (5, 32, 32, 3), np.uint8)
    together = prior.maps(images)
    for image, seen in zip(images, together, strict=True):
        np.testing.assert_array_equal(prior.map(image), seen)


def test_maps_are_weighed_by_the_formula():
    levels, seen = RNG.integers(0, 200, (2, 12, 12), np.uint8), RNG.integers(0, 256, (2, 12, 12), np.uint8)
    for level, one in zip(levels, seen, strict=True):
        weighed = weigh_by_prior(level, one)
        np.testing.assert_allclose(weighed, weighed_by_hand(level, one / 255), atol=0.51)
        assert weighed.max() == level.max()


def test_what_the_prior_sees_everywhere_or_nowhere_changes_nothing():
    level = RNG.integers(0, 256, (9, 9), np.uint8)
    for seen in (0, 255):
        np.testing.assert_array_equal(weigh_by_prior(level, np.full((20, 30), seen, np.uint8)), level)
    dark = np.zeros((9, 9), np.uint8)
    np.testing.assert_array_equal(weigh_by_prior(dark, RNG.integers(0, 256, (4, 4), np.uint8)), dark)


def test_a_frame_is_weighed_where_the_prior_sees_what_the_model_sees():
    level = RNG.integers(0, 256, (12, 12)).astype(float)
    noise = RNG.integers(0, 256, (12, 12)).astype(float)
    seen = np.stack([share * level + (1 - share) * noise for share in np.linspace(0, 1, 41)] + [0 * level, 255 - level])
    levels, seen = np.tile(level, (43, 1, 1)).astype(np.uint8), seen.astype(np.uint8)
    weighed, agrees = weigh_where_it_agrees(levels, seen)
    correlations = [np.corrcoef(level.ravel(), one.ravel())[0, 1] if one.std() else 0 for one in seen]
    np.testing.assert_array_equal(agrees, np.array(correlations) >= 0.3)
    assert 10 < agrees.sum() < 40
    for level, one, found, used in zip(levels, seen, weighed, agrees, strict=True):
        np.testing.assert_array_equal(found, weigh_by_prior(level, one) if used else level)


def test_a_map_without_heat_stays_as_it_is():
    dark = np.zeros((1, 9, 9), np.uint8)
    weighed, agrees = weigh_where_it_agrees(dark, RNG.integers(0, 256, (1, 9, 9), np.uint8))
    np.testing.assert_array_equal(weighed, dark)
    assert not agrees.any()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TWO, r"its input is a \[1, 3, 8, 8\] tensor\(float\), b .*: give a network with one input"),
        (GRAY, r"its input is image \[1, 1, 8, 8\]"),
        (BYTES, r"its input is image \[1, 3, 8, 8\] tensor\(uint8\)"),
        (FLAT, r"its first output has the shape \(1, 3, 8, 8\)"),
        (NUMBER, r"its first output has the shape \(1, 3, 1, 1\)"),
        (LOGITS, r"its first output has values from -2.12 to -2.12"),
        (NAN, r"its first output has values from nan to nan"),
        (RED.format(shape="1,3,9000,8", weights="1,0,0", bias=0), r"its input is image \[1, 3, 9000, 8\]"),
    ],
)
def test_another_network_is_refused_in_one_line(tmp_path, text, said):
    write_onnx(tmp_path / "other.onnx", text)
    with pytest.raises(ColocamError, match=rf"other\.onnx is not a prior: {said}") as caught:
        open_prior(tmp_path / "other.onnx")
    assert "\n" not in str(caught.value)


def test_what_is_no_network_is_refused_in_one_line(tmp_path):
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(ColocamError, match=r"cannot open the prior .*text\.onnx .*: give a network") as caught:
        open_prior(tmp_path / "text.onnx")
    assert "\n" not in str(caught.value)
    for missing in (tmp_path / "missing.onnx", tmp_path):
        with pytest.raises(ColocamError, match="no prior at "):
            open_prior(missing)

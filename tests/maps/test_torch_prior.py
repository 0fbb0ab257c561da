"""A prior run by PyTorch against the same file run by onnxruntime; what cannot be converted stays with onnxruntime."""

import sys

import numpy as np
import pytest
import torch

from colocam.errors import ColocamError
from colocam.maps import prior as prior_module
from colocam.maps import torch_prior
from colocam.maps.prior import open_prior
from colocam.maps.torch_prior import ROWS
from tests.helpers.deep_prior import write_deep_prior
from tests.helpers.red_prior import MEAN, STD, write_onnx, write_red_prior

RNG = np.random.default_rng(0)
CPU = torch.device("cpu")
NET = '<ir_version: 8, opset_import: ["" : 13]>\nnet (float[1,3,16,24] image) => (float[1,1,h,w] map) {{ {body} }}'


def moved(path):
    prior = open_prior(path)
    prior.move(CPU)
    return prior


@pytest.mark.parametrize("size", [(16, 24), (40, 60), (9, 9)])
def test_it_sees_what_onnxruntime_sees(tmp_path, size):
    path = write_deep_prior(tmp_path / "net.onnx")
    images = RNG.integers(0, 256, (2 * ROWS + 3, *size, 3), np.uint8)
    prior = moved(path)
    assert prior.gpu.rows == ROWS
    seen, expected = prior.maps(images).astype(int), open_prior(path).maps(images)
    assert expected.std() > 20
    np.testing.assert_allclose(seen, expected, atol=1)


def test_an_image_does_not_depend_on_others(tmp_path):
    prior = moved(write_deep_prior(tmp_path / "net.onnx"))
    images = RNG.integers(0, 256, (ROWS + 5, 16, 24, 3), np.uint8)
    together = prior.maps(images)
    for image, seen in zip(images, together, strict=True):
        np.testing.assert_array_equal(prior.map(image), seen)
    np.testing.assert_array_equal(prior.maps(images[3:8]), together[3:8])


BAKED = (
    "size = Constant<value_ints=[1, 3, 384]> ()  flat = Reshape (image, size)  mean = ReduceMean<axes=[1]> (flat)  "
    "whole = Constant<value_ints=[1, 1, 16, 24]> ()  back = Reshape (mean, whole)  map = Sigmoid (back)"
)


@pytest.mark.parametrize(
    "body",
    [
        "low = ReduceMin<axes=[0]> (image)  mean = ReduceMean<axes=[1]> (low)  map = Sigmoid (mean)",
        BAKED,
    ],
    ids=["mixes the images of a pass", "takes one image"],
)
def test_a_network_of_one_image_gets_passes_of_one(tmp_path, body):
    write_onnx(tmp_path / "one.onnx", NET.format(body=body))
    prior, images = moved(tmp_path / "one.onnx"), RNG.integers(0, 256, (3, 16, 24, 3), np.uint8)
    assert prior.gpu.rows == 1
    np.testing.assert_allclose(prior.maps(images).astype(int), open_prior(prior.path).maps(images), atol=1)


def test_values_outside_0_to_1_are_refused_as_on_a_cpu(tmp_path, monkeypatch):
    write_red_prior(tmp_path / "red.onnx", weight=2 * STD[0], bias=2 * MEAN[0])  # above 1 in a red picture
    monkeypatch.setattr(torch_prior, "pictures", lambda height, width: [np.zeros((height, width, 3), np.uint8)])
    images = np.zeros((3, 16, 24, 3), np.uint8)
    prior = moved(tmp_path / "red.onnx")
    prior.maps(images)
    images[1, :, :, 0] = 255
    with pytest.raises(ColocamError, match=r"red\.onnx is not a prior: its first output has values from"):
        prior.maps(images)


@pytest.fixture
def said(capsys):
    prior_module._say_once.cache_clear()
    return lambda: capsys.readouterr().err


def test_without_onnx2torch_it_stays_on_the_cpu_and_says_so_once(tmp_path, monkeypatch, said):
    path = write_deep_prior(tmp_path / "net.onnx")
    monkeypatch.setitem(sys.modules, "onnx2torch", None)
    assert [moved(path).gpu for _ in range(2)] == [None, None]
    message = said()
    assert "net.onnx runs on the CPU" in message
    assert "onnx2torch is not installed: pip install 'colocam[prior]'" in message
    assert message.count("\n") == 1


def test_a_network_that_cannot_be_converted_stays_on_the_cpu(tmp_path, said):
    body = "low = ReduceMin<axes=[1]> (image)  hard = Hardmax<axis=2> (low)  map = Identity (hard)"
    write_onnx(tmp_path / "hard.onnx", NET.format(body=body))
    prior = moved(tmp_path / "hard.onnx")
    assert prior.gpu is None
    assert "onnx2torch cannot convert it" in said()
    assert prior.map(np.zeros((16, 24, 3), np.uint8)).shape == (16, 24)


def test_a_network_that_is_converted_to_another_one_stays_on_the_cpu(tmp_path, monkeypatch, said):
    path, other = write_deep_prior(tmp_path / "net.onnx"), write_deep_prior(tmp_path / "other.onnx", seed=1)
    import onnx  # noqa: PLC0415 - slow to import

    load = onnx.load
    monkeypatch.setattr(onnx, "load", lambda _: load(other))
    assert moved(path).gpu is None
    assert "its maps differ by" in said()

"""Extraction by name: what it takes, what it gives, and what it leaves behind, which is nothing."""

from copy import deepcopy

import pytest
import torch

from colocam.cams import CAMS, CamInputs, classifier_cams, extract, min_max
from colocam.errors import ColocamError

METHODS = classifier_cams()


def formula(method):
    """The method as a function of the last features (B, K, h, w) and the head's rows (B, K) alone."""
    return lambda features, weights: CAMS[method].maps(CamInputs(None, [features], None, weights, None))


def pictures(count, side=32, seed=0):
    return torch.randint(256, (count, 3, side, side), generator=torch.Generator().manual_seed(seed)).float()


@pytest.fixture
def own(small):
    """A copy of the small network that may be changed."""
    return deepcopy(small)


def test_a_cam_of_another_model_is_not_one_of_the_classifier(small):
    with pytest.raises(ColocamError, match="'clip-es' does not come from a classifier: use open_cam"):
        extract("clip-es", small, pictures(1), torch.tensor([0]))


@pytest.mark.parametrize("shape", [(2, 4), (1, 4, 4), (2, 1, 4, 4)])
def test_maps_of_a_wrong_shape_are_refused(small, monkeypatch, shape):
    monkeypatch.setitem(CAMS, "flat", CAMS["cam"]._replace(maps=lambda _: torch.zeros(shape)))
    with pytest.raises(ColocamError, match=r"the CAM 'flat' must return \(2, h, w\) maps, got \("):
        extract("flat", small, pictures(2), torch.tensor([0, 1]))


def test_unknown_names_get_the_nearest(small):
    with pytest.raises(ColocamError, match=r"no CAM method 'gradcam\+': did you mean 'gradcam\+\+'"):
        extract("gradcam+", small, pictures(1), torch.tensor([0]))


@pytest.mark.parametrize("classes", [torch.tensor([1]), torch.tensor(1), torch.tensor([[0], [1], [2]])])
def test_one_class_per_frame(small, classes):
    with pytest.raises(ColocamError, match=r"classes must hold one class for each of the 3 frames, got shape \("):
        extract("cam", small, pictures(3), classes)


@pytest.mark.parametrize("method", [method for method in METHODS if method != "cam"])
def test_a_class_without_evidence_has_an_empty_map(method, own):
    own.head.weight.data[2] = -own.head.weight.data[2].abs()
    assert (extract(method, own, pictures(2), torch.tensor([2, 2])) == 0).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 0.06), (torch.float16, 0.01), (torch.float64, 1e-4)])
def test_other_precisions_give_float32_maps(method, own, dtype, tolerance):
    frames, classes = pictures(3), torch.tensor([0, 1, 2])
    expected = min_max(extract(method, own, frames, classes))
    own.to(dtype)
    found = extract(method, own, frames.to(dtype), classes)
    assert found.dtype == torch.float32
    torch.testing.assert_close(min_max(found), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_sums_keep_their_digits_under_autocast(method, small):
    frames, classes = pictures(3), torch.tensor([0, 1, 2])
    with torch.autocast("cpu", torch.bfloat16):
        found = extract(method, small, frames, classes)
        with torch.no_grad():
            features = small(frames).features[-1]
    assert features.dtype == torch.bfloat16
    assert found.dtype == torch.float32
    exact = formula(method)(features.double(), small.head.weight[classes].detach().double())
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-6)


def modes_of(module):
    return [part.training for part in module.modules()]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", ["train", "eval", "mixed"])
def test_evaluation_mode_and_then_the_mode_of_before(method, own, mode):
    frames, classes = pictures(4).requires_grad_(), torch.tensor([0, 1, 2, 3])
    expected = extract(method, own.eval(), frames, classes)
    own.train(mode != "eval")
    if mode == "mixed":
        own.encoder.eval()
    before = modes_of(own)
    found = extract(method, own, frames, classes)
    assert torch.equal(found, expected)
    assert not found.requires_grad
    assert modes_of(own) == before


def test_an_exception_leaves_the_mode_of_before(own):
    own.train()
    own.encoder.eval()
    before = modes_of(own)
    with pytest.raises(IndexError):
        extract("layercam", own, pictures(1), torch.tensor([99]))
    assert modes_of(own) == before


def test_gradcam_pp_leaves_a_channel_without_a_weight_out():
    """2 + w mean(A) = 0: signed features of a channel that takes exactly 2 off the logit."""
    features = torch.stack([torch.full((2, 2), -2.0), torch.arange(4.0).view(2, 2)])[None]
    found = formula("gradcam++")(features, torch.tensor([[1.0, 1.0]]))
    torch.testing.assert_close(found, torch.arange(4.0).view(1, 2, 2) / (2 + 1.5))

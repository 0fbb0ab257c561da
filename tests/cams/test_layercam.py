"""LayerCAM in closed form against the definition, by autograd on the real network."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.cams import full_size, layercam, min_max
from colocam.config import load_config
from colocam.models import Classifier


@pytest.fixture(scope="module")
def classifier(tiny):
    torch.manual_seed(0)
    return Classifier(load_config(overrides=tiny).backbone, 4).eval()


def by_autograd(classifier, frames, classes):
    """ReLU(Σ_k ReLU(∂y_c/∂A_k) ⊙ A_k), literally."""
    kept = {}
    handle = classifier.encoder.register_forward_hook(lambda _, __, features: kept.update(last=features[-1]))
    logits = classifier(frames).logits
    handle.remove()
    (gradient,) = torch.autograd.grad(logits.gather(1, classes[:, None]).sum(), kept["last"])
    return (gradient.clamp(min=0) * kept["last"]).sum(1).clamp(min=0).detach()


def test_closed_form_is_the_definition(classifier):
    frames = torch.randint(256, (5, 3, 32, 32), generator=torch.Generator().manual_seed(1)).float()
    classes = torch.tensor([0, 1, 2, 3, 1])
    expected = by_autograd(classifier, frames, classes)
    found = layercam(classifier, frames, classes)
    assert found.shape == expected.shape == (5, 4, 4)
    assert float(expected.max()) > 0
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)
    assert not found.requires_grad


def test_each_frame_is_mapped_for_its_own_class(classifier):
    frames = torch.randint(256, (1, 3, 32, 32), generator=torch.Generator().manual_seed(2)).float()
    maps = layercam(classifier, frames.expand(4, -1, -1, -1), torch.arange(4))
    for one in range(4):
        alone = layercam(classifier, frames, torch.tensor([one]))[0]
        torch.testing.assert_close(maps[one], alone, rtol=1e-4, atol=1e-7)
    assert not torch.allclose(maps[0], maps[1])


def test_negative_weights_are_no_evidence(classifier):
    frames = torch.randint(256, (1, 3, 32, 32), generator=torch.Generator().manual_seed(3)).float()
    weight = classifier.head.weight.data.clone()
    try:
        classifier.head.weight.data[2] = -weight[2].abs()
        assert (layercam(classifier, frames, torch.tensor([2])) == 0).all()
    finally:
        classifier.head.weight.data.copy_(weight)


@given(hnp.arrays(np.float32, (3, 4, 5), elements=st.floats(-1e6, 1e6, width=32)))
def test_min_max_against_numpy(values):
    found = min_max(torch.from_numpy(values)).numpy()
    for one, scaled in zip(values.astype(np.float64), found, strict=True):
        spread = one.max() - one.min()
        expected = (one - one.min()) / spread if spread > 0 else np.zeros_like(one)
        np.testing.assert_allclose(scaled, expected, rtol=1e-5, atol=1e-5)
        assert scaled.min() == 0
        assert scaled.max() == (1 if spread else 0)


def test_constant_maps_become_zero_not_nan():
    maps = torch.tensor([[[3.0, 3.0], [3.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 1e-40], [0.0, 0.0]]])
    found = min_max(maps)
    assert (found[:2] == 0).all()
    assert torch.isfinite(found).all()


def test_full_size_normalises_before_it_enlarges():
    cams = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0)) * 7 - 2
    found = full_size(cams, 12)
    scaled = (cams - cams.amin((1, 2), keepdim=True)) / (cams.amax((1, 2), True) - cams.amin((1, 2), True))
    torch.testing.assert_close(found, F.interpolate(scaled[:, None], size=12, mode="bilinear")[:, 0])
    assert found.shape == (2, 12, 12)
    assert float(found.min()) >= 0
    assert float(found.max()) <= 1

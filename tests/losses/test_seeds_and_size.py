"""Seeds and size in the corners; tests/losses/test_terms.py has their formulas."""

import math

import pytest
import torch

from colocam.errors import ColocamError
from colocam.losses import PartialCrossEntropy, SizeConstraint
from colocam.losses.terms import extended_log_barrier
from colocam.utils.tensors import require_finite


def test_no_label_at_all_costs_nothing():
    logits = torch.randn(2, 2, 3, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    loss = PartialCrossEntropy()(logits, torch.full((2, 3, 4), 255))
    assert loss == 0
    assert (torch.autograd.grad(loss, logits)[0] == 0).all()


def test_saturated_logits_stay_finite_under_autocast():
    logits = torch.tensor([300.0, -300.0]).view(1, 2, 1, 1).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = PartialCrossEntropy()(logits.bfloat16(), torch.ones(1, 1, 1, dtype=torch.int64))
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(600, rel=0.01)
    assert torch.autograd.grad(loss, logits)[0].isfinite().all()


def test_unknown_labels_are_named():
    with pytest.raises(ColocamError, match=r"got \[7\]"):
        PartialCrossEntropy()(torch.zeros(1, 2, 1, 2), torch.tensor([[[7, 255]]]))


def test_non_finite_logits_and_maps_are_named():
    with pytest.raises(ColocamError, match=r"logits has 2 NaN or infinite values, the first at index \(0, 1, 0, 0\)"):
        PartialCrossEntropy()(
            torch.tensor([0.0, 0.0, math.nan, math.inf]).view(1, 2, 1, 2), torch.zeros(1, 1, 2, dtype=torch.int64)
        )
    with pytest.raises(ColocamError, match="SizeConstraint: maps"):
        SizeConstraint()(torch.full((1, 2, 2), math.nan))
    require_finite("anything", labels=torch.zeros(2, dtype=torch.int64), maps=torch.zeros(2))


@pytest.mark.parametrize("t", [0.5, 1.0, 1.7, 10.0])
def test_barrier_is_the_formula_and_smooth_at_its_seam(t):
    seam = -1 / t**2
    f = torch.tensor([-50.0, seam * 1.001, seam * 0.999, 0.0, 3.0], dtype=torch.float64, requires_grad=True)
    found = extended_log_barrier(f, t)
    expected = [-math.log(-x) / t if x <= seam else t * x - math.log(1 / t**2) / t + 1 / t for x in f.tolist()]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))
    (slope,) = torch.autograd.grad(found.sum(), f)
    assert slope.isfinite().all()
    assert slope[1].item() == pytest.approx(slope[2].item(), rel=2e-3)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_size_of_saturated_maps_is_finite_and_pulls_away(level):
    maps = torch.full((1, 4, 4), level, requires_grad=True)
    (gradient,) = torch.autograd.grad(SizeConstraint()(maps), maps)
    assert gradient.isfinite().all()
    assert ((gradient < 0) == (level == 0)).all()


def test_schedule_grows_to_its_maximum_and_depends_on_the_epoch_alone():
    size, areas = SizeConstraint(t=1.0, growth=2.0, maximum=6.0), torch.full((1, 4, 4), 0.5)
    for epoch, t in ((0, 1.0), (1, 2.0), (2, 4.0), (3, 6.0), (9, 6.0), (1, 2.0)):
        assert size(areas, epoch).item() == pytest.approx(-math.log(8) / t)


def test_impossible_schedules_are_refused():
    with pytest.raises(ColocamError, match="0 < t ≤ maximum"):
        SizeConstraint(t=20.0)

"""The normalised cut against the formula with a dense matrix, and what sets it apart from eq. 4."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.losses import CoLocLoss, CutLoss

FRAMES, HEIGHT, WIDTH = 5, 4, 6
SEQUENCES = torch.tensor([1, 0, 1, 2, 0])
SIGMA = 40.0


def inputs(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (FRAMES, 3, HEIGHT, WIDTH), generator=generator)
    maps = torch.rand(FRAMES, HEIGHT, WIDTH, generator=generator, dtype=torch.float64)
    return frames, maps.to(dtype).requires_grad_()


def dense_cut(frames, maps):
    colors = frames.double().permute(0, 2, 3, 1).reshape(-1, 3) / SIGMA
    affinity = torch.exp(-0.5 * torch.cdist(colors, colors).square())
    foreground = maps.double().flatten()
    return sum((s @ affinity @ (1 - s)) / (s @ affinity.sum(1)) for s in (foreground, 1 - foreground))


def test_value_and_gradient_are_those_of_the_dense_formula():
    frames, maps = inputs()
    expected = sum(dense_cut(frames[number == SEQUENCES], maps[number == SEQUENCES]) for number in (0, 1)) / 2
    loss = CutLoss(SIGMA, tol=1e-3)(frames, maps, SEQUENCES)
    torch.testing.assert_close(loss, expected, rtol=2e-3, atol=0)
    (found,), (exact,) = torch.autograd.grad(loss, maps), torch.autograd.grad(expected, maps)
    assert (found - exact).norm() <= 2e-3 * exact.norm()
    assert (found[3] == 0).all()  # a sequence of one frame


def test_gradcheck():
    frames, maps = inputs()
    maps = maps[:3, :2, :3].detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda m: CutLoss(SIGMA)(frames[:3, :, :2, :3], m, SEQUENCES[:3]), maps)


@given(st.floats(0.01, 0.99))
@settings(max_examples=20)
def test_constant_maps_cost_the_same_whatever_their_level(level):
    """Eq. 4 draws them to 0 or 1; here nothing does."""
    frames, _ = inputs()
    maps = torch.full((FRAMES, HEIGHT, WIDTH), level, dtype=torch.float64, requires_grad=True)
    loss = CutLoss(SIGMA)(frames, maps, SEQUENCES)
    assert loss.item() == pytest.approx(1, abs=1e-9)
    (gradient,) = torch.autograd.grad(loss, maps)
    assert gradient.sum().item() == pytest.approx(0, abs=1e-9)
    (pulled,) = torch.autograd.grad(CoLocLoss(SIGMA)(frames, maps, SEQUENCES), maps)
    assert pulled.sum().item() * (0.5 - level) >= 0


def test_maps_that_follow_the_colours_cost_nothing_and_small_ones_no_more_than_large_ones():
    frames = torch.zeros(2, 3, 8, 8)
    frames[:, :, :2, :2] = 200
    small = (frames[:, 0] > 0).float()
    ids = torch.zeros(2, dtype=torch.int64)
    assert CutLoss()(frames, small, ids) < 0.02
    assert CutLoss()(frames, 1 - small, ids) < 0.02
    crossed = torch.stack([small[0], 1 - small[1]])
    assert CutLoss()(frames, crossed, ids) > 0.9


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_saturated_maps_stay_finite(level):
    frames, _ = inputs()
    maps = torch.full((FRAMES, HEIGHT, WIDTH), level, requires_grad=True)
    loss = CutLoss(SIGMA)(frames, maps, SEQUENCES)
    assert loss.item() == pytest.approx(1, abs=1e-3)
    assert torch.autograd.grad(loss, maps)[0].isfinite().all()


def test_bf16_autocast_changes_nothing():
    frames, maps = inputs(torch.float32)
    plain = CutLoss(SIGMA)(frames, maps, SEQUENCES)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(CutLoss(SIGMA)(frames, maps, SEQUENCES), plain)
    half = maps.detach().bfloat16().requires_grad_()
    (gradient,) = torch.autograd.grad(CutLoss(SIGMA)(frames, half, SEQUENCES), half)
    assert gradient.dtype == torch.bfloat16
    assert gradient.isfinite().all()


def test_no_sequence_of_two_frames_is_zero():
    frames, maps = inputs()
    loss = CutLoss(SIGMA)(frames, maps, torch.arange(FRAMES))
    assert loss == 0
    assert (torch.autograd.grad(loss, maps)[0] == 0).all()


def test_number_of_sequences_may_be_given():
    frames, maps = inputs()
    torch.testing.assert_close(CutLoss()(frames, maps, SEQUENCES, 3), CutLoss()(frames, maps, SEQUENCES))


def test_wrong_input_is_named():
    frames, maps = inputs(torch.float32)
    with pytest.raises(ColocamError, match="CutLoss: sequences must hold 5 ids"):
        CutLoss()(frames, maps, SEQUENCES[:2])
    with pytest.raises(ColocamError, match=r"CutLoss: needs frames \(B, 3, H, W\)"):
        CutLoss()(frames, maps[:2], SEQUENCES)
    broken = maps.detach().clone()
    broken[1, 2, 3] = torch.nan
    with pytest.raises(ColocamError, match=r"CutLoss: maps holds 1 NaN or Inf, the first at \(1, 2, 3\)"):
        CutLoss()(frames, broken, SEQUENCES)

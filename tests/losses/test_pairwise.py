"""Co-localization against the formula with a dense matrix, and both pairwise losses in the corners."""

import pytest
import torch

from colocam.errors import ColocamError
from colocam.losses import CoLocLoss, CRFLoss

FRAMES, HEIGHT, WIDTH = 5, 4, 6
SEQUENCES = torch.tensor([1, 0, 1, 2, 0])
SIGMA, SIGMA_XY = 40.0, 5.0


def inputs(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (FRAMES, 3, HEIGHT, WIDTH), generator=generator)
    return frames, torch.rand(FRAMES, HEIGHT, WIDTH, generator=generator, dtype=torch.float64).to(
        dtype
    ).requires_grad_()


def dense_energy(frames, maps):
    """R and Σ_r S_rᵀ W S_r of frames (n, 3, H, W) taken together, term by term as in eq. 2 and eq. 4."""
    features = frames.double().permute(0, 2, 3, 1).reshape(-1, 3) / SIGMA
    affinity = torch.exp(-0.5 * torch.cdist(features, features).square())
    foreground = maps.double().flatten()
    both = (1 - foreground, foreground)
    return sum(s @ affinity @ (1 - s) for s in both), sum(s @ affinity @ s for s in both)


@pytest.mark.parametrize(
    ("options", "weight"),
    [
        ({"weighting": "constant"}, lambda _energy, _affinity: 1.0),
        ({"divisor": "affinity"}, lambda _energy, affinity: 1 / affinity.detach()),
        ({"divisor": "energy"}, lambda energy, _affinity: 1 / energy.detach()),
    ],
)
def test_coloc_is_the_mean_over_sequences_of_two_frames_or_more(options, weight):
    frames, maps = inputs()
    expected = 0
    for number in (0, 1):
        mine = number == SEQUENCES
        energy, affinity = dense_energy(frames[mine], maps[mine])
        expected += weight(energy, affinity) * energy / 2
    loss = CoLocLoss(SIGMA, tol=1e-3, **options)(frames, maps, SEQUENCES, 3)
    torch.testing.assert_close(loss, CoLocLoss(SIGMA, tol=1e-3, **options)(frames, maps, SEQUENCES))
    torch.testing.assert_close(loss, expected, rtol=2e-3, atol=0)
    (found,), (exact,) = torch.autograd.grad(loss, maps), torch.autograd.grad(expected, maps)
    assert (found - exact).norm() <= 2e-3 * exact.norm()
    assert (found[3] == 0).all()


def test_no_sequence_of_two_frames_is_zero():
    frames, maps = inputs()
    loss = CoLocLoss(SIGMA)(frames, maps, torch.arange(FRAMES))
    assert loss == 0
    assert (torch.autograd.grad(loss, maps)[0] == 0).all()


@pytest.mark.parametrize("level", [0.0, 1.0])
@pytest.mark.parametrize("options", [{}, {"divisor": "energy"}, {"weighting": "constant"}])
def test_saturated_maps_stay_finite(level, options):
    frames, _ = inputs()
    maps = torch.full((FRAMES, HEIGHT, WIDTH), level, requires_grad=True)
    for loss in (CoLocLoss(SIGMA, **options)(frames, maps, SEQUENCES), CRFLoss(SIGMA, SIGMA_XY)(frames, maps)):
        (gradient,) = torch.autograd.grad(loss, maps)
        torch.testing.assert_close(loss, torch.tensor(0.0), rtol=0, atol=1e-2)
        assert gradient.isfinite().all()
        # Toward ½ the energy rises: the gradient points away from the saturated level.
        assert ((gradient > 0) == (level == 0)).all() or (gradient[3] == 0).all()


def test_bf16_autocast_changes_nothing():
    frames, maps = inputs(torch.float32)
    losses = CoLocLoss(SIGMA), CRFLoss(SIGMA, SIGMA_XY)
    plain = losses[0](frames, maps, SEQUENCES), losses[1](frames, maps)
    with torch.autocast("cpu", torch.bfloat16):
        inside = losses[0](frames, maps, SEQUENCES), losses[1](frames, maps)
    torch.testing.assert_close(inside, plain)


def test_alike_colors_with_alike_maps_cost_less():
    frames = torch.zeros(2, 3, 4, 4)
    frames[:, :, :2] = 200
    aligned = torch.zeros(2, 4, 4)
    aligned[:, :2] = 1
    crossed = aligned.clone()
    crossed[1] = 1 - crossed[1]
    loss = CoLocLoss()
    ids = torch.zeros(2, dtype=torch.int64)
    assert loss(frames, aligned, ids) < 0.01
    assert loss(frames, crossed, ids) > 0.9


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["frames", "maps"])
def test_non_finite_input_is_named(bad, name):
    frames, maps = inputs(torch.float32)
    arguments = {"frames": frames.float(), "maps": maps.detach().clone()}
    arguments[name].view(-1)[7] = bad
    for where, call in (
        ("CRFLoss", lambda: CRFLoss()(arguments["frames"], arguments["maps"])),
        ("CoLocLoss", lambda: CoLocLoss()(arguments["frames"], arguments["maps"], SEQUENCES)),
    ):
        with pytest.raises(
            ColocamError, match=rf"{where}: {name} has 1 NaN or infinite values, the first at index \(0,"
        ):
            call()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_gradient_has_the_type_of_the_maps_and_the_loss_is_never_half(dtype):
    frames, maps = inputs(dtype)
    for loss in (CoLocLoss(SIGMA)(frames, maps, SEQUENCES, 3), CRFLoss(SIGMA, SIGMA_XY)(frames, maps)):
        assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        (gradient,) = torch.autograd.grad(loss, maps)
        assert gradient.dtype == dtype
        assert gradient.isfinite().all()


def test_a_second_derivative_is_refused():
    frames, maps = inputs()
    (gradient,) = torch.autograd.grad(CRFLoss(SIGMA, SIGMA_XY)(frames, maps).square(), maps, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_wrong_options_and_shapes_are_named():
    frames, maps = inputs()
    with pytest.raises(ColocamError, match="'affinity' or 'energy'"):
        CoLocLoss(divisor="mass")
    with pytest.raises(ColocamError, match="'adaptive' or 'constant'"):
        CoLocLoss(weighting="none")
    with pytest.raises(ColocamError, match="one index for each of 5 maps"):
        CoLocLoss()(frames, maps, SEQUENCES[:2])
    with pytest.raises(ColocamError, match=r"CRFLoss: needs frames \(B, 3, H, W\)"):
        CRFLoss()(frames, maps[:2])
    with pytest.raises(ColocamError, match="CRFLoss: frames must not require a gradient"):
        CRFLoss()(frames.double().requires_grad_(), maps)

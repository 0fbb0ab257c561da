"""The Triton kernels on the CPU, in Triton's interpreter: run by tests/test_triton_interpreter.py."""

import pytest
import torch

from colocam.losses import CoLocLoss, CRFLoss
from colocam.losses.affinity import cpu, cuda, engine
from colocam.losses.affinity.basis import color_basis

FRAMES, PIXELS = 3, 50
# Few cells keep the interpreter quick.
BASIS = color_basis(160.0, 2e-2)
GROUP = torch.tensor([1, 0, 1])
# The matrix products round to 10 bits, and maps around ½ cancel to a small sum.
ROUNDING = 2e-3


def few_rows(rgb):
    """Colors (F, 3, …) of 2 × 2 rows of cells (r, g) out of 4 × 4: the interpreter takes long for each."""
    rgb[:, 0] //= 2
    rgb[:, 1] = 255 - rgb[:, 1] // 2
    return rgb


def inputs(dtype=torch.uint8, channels=1):
    generator = torch.Generator().manual_seed(0)
    rgb = few_rows(torch.randint(0, 256, (FRAMES, 3, PIXELS), generator=generator)).to(dtype)
    rgb[0, :, :35] = 7  # long runs of one cell
    values = torch.rand(FRAMES, channels, PIXELS, generator=generator)
    return rgb, values, torch.rand(2, PIXELS, generator=generator)


def relative_error(found, exact):
    return ((found - exact).norm() / exact.norm()).item()


def test_strided_input_odd_channels_copies_and_groups_in_turn(monkeypatch):
    rgb, values, _ = inputs(channels=3)
    exact = cpu.product(rgb, values.double(), GROUP, 2, BASIS, None)
    strided = rgb.transpose(1, 2).contiguous().transpose(1, 2), values.transpose(1, 2).contiguous().transpose(1, 2)
    monkeypatch.setattr(cuda, "_WORKSPACE", 1)
    monkeypatch.setattr(cuda, "_PIXELS_PER_COPY", 15)
    assert relative_error(cuda.product(*strided, GROUP, 2, BASIS, None), exact) <= ROUNDING


def test_space_float_colors_in_passes_and_blocks_smaller_than_the_basis(monkeypatch):
    rgb, values, psi = inputs(torch.float32, channels=2)
    exact = cpu.product(rgb, values.double(), GROUP, 2, BASIS, psi.double())
    strided = rgb.transpose(1, 2).contiguous().transpose(1, 2), values.transpose(1, 2).contiguous().transpose(1, 2)
    block = BASIS.rank // 2
    assert block > 0
    assert block & (block - 1) == 0
    monkeypatch.setattr(cuda, "_SPACE_WORKSPACE", 1)
    short, long = cuda._ROW_BLOCKS.values()
    blocks = {13: short | {"block_p": 16, "block_j": block}, 1000: long | {"block_p": 32, "block_j": block}}
    monkeypatch.setattr(cuda, "_ROW_BLOCKS", blocks)  # rows have 7–22 pixels
    assert relative_error(cuda.product(*strided, GROUP, 2, BASIS, psi), exact) <= ROUNDING


def test_memory_that_holds_anything_reaches_no_result(monkeypatch):
    """Rows of cells without a pixel are neither written nor read."""
    rgb, values, psi = inputs()
    rgb = rgb // 16 + 100
    exact = cpu.product(rgb, values.double(), GROUP, 2, BASIS, psi.double())

    def anything(make):
        def made(*arguments, **options):
            result = make(*arguments, **options)
            return result.fill_(float("nan")) if result.is_floating_point() else result

        return made

    monkeypatch.setattr(torch, "empty", anything(torch.empty))
    monkeypatch.setattr(torch.Tensor, "new_empty", anything(torch.Tensor.new_empty))
    assert relative_error(cuda.product(rgb, values, GROUP, 2, BASIS, psi), exact) <= ROUNDING


def test_colors_outside_end_half_a_cell_outside():
    rgb, values, _ = inputs(torch.float32)
    rgb = rgb * 3 - 200
    shifts = torch.tensor(BASIS.shifts)[:, None]
    low, high = ((end - shifts) / BASIS.per_level - 0.5 for end in (-0.5, BASIS.cells + 0.5))
    exact = cpu.product(torch.minimum(torch.maximum(rgb, low), high), values.double(), GROUP, 2, BASIS, None)
    assert exact.isfinite().all()
    assert relative_error(cuda.product(rgb, values, GROUP, 2, BASIS, None), exact) <= ROUNDING
    rgb[0, 1, 3] = float("nan")
    assert cuda.product(rgb[:1], values[:1], torch.tensor([0]), 1, BASIS, None).isnan().any()


def test_tight_tolerance_uses_more_bits():
    rgb, values, _ = inputs()
    basis = color_basis(600.0, 1.5e-3)
    assert basis.cells == 4  # few cells keep the interpreter quick
    exact = cpu.product(rgb, values.double(), GROUP, 2, basis, None)
    assert relative_error(cuda.product(rgb, values, GROUP, 2, basis, None), exact) <= 1e-5


@pytest.mark.parametrize("space", [False, True])
def test_energy(space):
    rgb, values, psi = inputs()
    psi = psi if space else None
    maps, (totals, found_totals) = values[:, :1], torch.zeros(2, 2, 2, dtype=torch.float64)
    product = cpu.product(rgb, maps.double(), GROUP, 2, BASIS, psi.double() if space else None, totals)
    found = cuda.product(rgb, maps, GROUP, 2, BASIS, psi, found_totals)
    assert relative_error(found, product) <= ROUNDING
    assert relative_error(found_totals, totals) <= ROUNDING


@pytest.mark.parametrize("loss", ["adaptive", "crf"])
def test_losses_through_the_kernels(monkeypatch, loss):
    generator = torch.Generator().manual_seed(1)
    frames = few_rows(torch.randint(0, 256, (3, 3, 4, 5), generator=generator))
    maps = torch.rand(3, 4, 5, generator=generator).requires_grad_()
    criterion = CRFLoss(160.0, 30.0, tol=2e-2) if loss == "crf" else CoLocLoss(160.0, loss, tol=2e-2)
    arguments = () if loss == "crf" else (GROUP,)

    def both():
        value = criterion(frames, maps, *arguments)
        return value, torch.autograd.grad(3 * value, maps)[0]

    value, gradient = both()
    monkeypatch.setattr(engine, "on_kernels", lambda _: True)
    found_value, found_gradient = both()
    torch.testing.assert_close(found_value, value, rtol=ROUNDING, atol=0)
    assert relative_error(found_gradient, gradient) <= ROUNDING

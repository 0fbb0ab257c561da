"""What the products promise besides accuracy: shapes, types, symmetry, gradients, sequences, errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.losses.affinity import (
    bilateral_product,
    color_product,
    cpu,
    dense_bilateral_product,
    dense_color_product,
    engine,
)
from colocam.losses.affinity.basis import color_basis, space_basis


def colors(*shape, seed=0):
    return torch.randint(0, 256, (*shape, 3), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)


def numbers(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_reference_is_the_formula():
    rgb, values = colors(9), numbers(9, 2)
    affinity = torch.tensor(
        [[sum(-((int(a) - int(b)) ** 2) for a, b in zip(x, y, strict=True)) / 800 for x in rgb] for y in rgb]
    ).exp()
    torch.testing.assert_close(dense_color_product(rgb, values, 20.0), affinity.double() @ values, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        dense_color_product(rgb, values, 20.0, torch.tensor([4])),
        (affinity.double() @ values)[[4]],
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("space", [False, True])
def test_c_and_numpy_agree(monkeypatch, dtype, space):
    pytest.importorskip("colocam.native.kernels", reason="colocam was built without a C compiler")
    basis = color_basis(30.0, 1e-2)
    rgb = colors(5, 60).transpose(1, 2)
    values = numbers(5, 3, 60).to(dtype)
    psi = torch.tensor(space_basis(6, 10, 4.0, 1e-2)).flatten(1).to(dtype) if space else None
    arguments = torch.tensor([1, 0, 1, 1, 0]), 2, basis, psi
    rounding = {torch.float32: 1e-4, torch.float64: 1e-10}[dtype]
    maps, totals = values[:, :1].sigmoid(), torch.zeros(2, 2, 2, dtype=torch.float64)
    found = cpu.product(rgb, values, *arguments), cpu.product(rgb, maps, *arguments, totals[0]), totals[0]
    monkeypatch.setattr(cpu, "kernels", None)
    plain = cpu.product(rgb, values, *arguments), cpu.product(rgb, maps, *arguments, totals[1]), totals[1]
    for one, other in zip(found, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=rounding, atol=rounding * other.abs().max().item())


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_result_does_not_depend_on_the_number_of_threads(monkeypatch, cores):
    rgb, values = colors(4, 500).transpose(1, 2), numbers(4, 2, 500)
    basis = color_basis(25.0, 1e-2)
    group = torch.tensor([0, 0, 1, 0])
    expected = cpu.product(rgb, values, group, 2, basis, None)
    monkeypatch.setattr(cpu, "cores", lambda: cores)
    assert torch.equal(cpu.product(rgb, values, group, 2, basis, None), expected)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.integers(0, 10**6), st.sampled_from([10.0, 15.0, 80.0]))
def test_symmetric_positive_and_blind_to_the_order(count, channels, seed, sigma):
    rgb = colors(count, seed=seed)
    u, v = numbers(count, channels, seed=seed), numbers(count, channels, seed=seed + 1)
    wu, wv = color_product(rgb, u, sigma), color_product(rgb, v, sigma)
    torch.testing.assert_close((u * wv).sum(0), (wu * v).sum(0))
    assert (u * wu).sum(0).min() >= -1e-9
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(color_product(rgb[order], u[order], sigma), wu[order])
    degree = color_product(rgb, torch.ones(count, 1), sigma)
    assert degree.min() > 0.99


def test_batches_channels_and_types():
    rgb, values = colors(2, 3, 30), numbers(2, 3, 30, 3)
    out = color_product(rgb, values)
    assert out.shape == values.shape
    assert out.dtype == torch.float64
    torch.testing.assert_close(out[1, 2], color_product(rgb[1, 2], values[1, 2]))
    torch.testing.assert_close(out[..., 1:2], color_product(rgb.to(torch.int64), values[..., 1:2]))
    for dtype in (torch.bfloat16, torch.float16):
        half = color_product(rgb.float(), values.to(dtype))
        assert half.dtype == torch.float32
        torch.testing.assert_close(half.double(), out, rtol=2e-2, atol=2e-2)


def test_half_precision_does_not_overflow():
    """float16 ends at 65504, below the sum over the pixels of two frames."""
    pixels = 100_000
    values = torch.ones(pixels, 1, dtype=torch.float16, requires_grad=True)
    found = color_product(torch.full((pixels, 3), 7, dtype=torch.uint8), values)
    torch.testing.assert_close(found, torch.full_like(found, pixels), rtol=5e-3, atol=0)
    (gradient,) = torch.autograd.grad(found[:100].sum(), values)
    assert gradient.dtype == torch.float16
    torch.testing.assert_close(gradient, torch.full_like(gradient, 100), rtol=5e-3, atol=0)
    frame = torch.full((1, 3, 300, 300), 7, dtype=torch.uint8)
    ones = torch.ones(1, 1, 300, 300, dtype=torch.float16)
    found = bilateral_product(frame, ones, sigma_xy=1e4)
    torch.testing.assert_close(found, torch.full_like(found, 90_000), rtol=1e-2, atol=0)


def test_frames_do_not_see_each_other():
    rgb, values = colors(2, 4, 5).permute(0, 3, 1, 2), numbers(2, 1, 4, 5)
    both = bilateral_product(rgb, values, sigma_xy=3.0)
    torch.testing.assert_close(both[1:], bilateral_product(rgb[1:], values[1:], sigma_xy=3.0))


@pytest.fixture
def eigenvectors(monkeypatch):
    """The spatial basis also for frames so small that summing over neighbors is cheaper."""
    monkeypatch.setattr(engine.Gaussian, "window", lambda _: None)


@pytest.mark.parametrize("height_width", [(1, 1), (2, 3), (1, 9), (37, 5), (23, 31)])
def test_frames_of_any_size(height_width):
    rgb, values = colors(2, *height_width).permute(0, 3, 1, 2), numbers(2, 2, *height_width).abs()
    exact = dense_bilateral_product(rgb, values).reshape(values.shape)
    assert (bilateral_product(rgb, values) - exact).norm() <= 0.01 * exact.norm()
    flat, v = rgb[0].flatten(1).T, values[0].flatten(1).T
    exact = dense_color_product(flat, v)
    assert (color_product(flat, v) - exact).norm() <= 0.005 * exact.norm()


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 2), (2, 3, 0)])
def test_nothing_gives_nothing(shape):
    frames, pixels, channels = shape
    rgb, values = colors(frames, pixels), numbers(*shape).requires_grad_()
    out = color_product(rgb, values)
    assert out.shape == shape
    out.sum().backward()
    frame = torch.zeros(frames, 3, pixels, 4)
    assert bilateral_product(frame, torch.ones(frames, channels, pixels, 4)).shape == (frames, channels, pixels, 4)


@pytest.mark.parametrize(("low", "high"), [(-20.0, 240.0), (30.0, 275.0), (-3.0, 400.0)])
def test_colors_that_overshoot_count_as_they_are(low, high):
    rgb = low + (high - low) * colors(300).double() / 255
    values = numbers(300, 2).abs()
    exact = dense_color_product(rgb, values)
    assert (color_product(rgb, values) - exact).norm() <= 0.005 * exact.norm()
    frames, maps = rgb.T.reshape(1, 3, 15, 20), values.T.reshape(1, 2, 15, 20)
    exact = dense_bilateral_product(frames, maps)
    assert (bilateral_product(frames, maps).flatten(2) - exact).norm() <= 0.01 * exact.norm()


@pytest.mark.usefixtures("eigenvectors")
def test_memory_is_bounded_by_taking_spatial_functions_in_turn(monkeypatch):
    rgb, values = colors(2, 6, 7).permute(0, 3, 1, 2), numbers(2, 5, 6, 7)
    whole, seen, direct = bilateral_product(rgb, values, sigma_xy=2.0), [], cpu.product
    monkeypatch.setattr(cpu, "product", lambda *given: seen.append(len(given[5])) or direct(*given))
    for name, value, most in (("_RANKS_AT_ONCE", 3, 3), ("_WORKSPACE", 1, 1)):
        seen.clear()
        monkeypatch.setattr(engine, name, value)
        torch.testing.assert_close(bilateral_product(rgb, values, sigma_xy=2.0), whole)
        assert max(seen) == most
        assert len(seen) > 1


def test_gradients(monkeypatch):
    rgb, values = colors(12), numbers(12, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: color_product(rgb, v), values)
    assert torch.autograd.gradgradcheck(lambda v: color_product(rgb, v, sigma=60.0), values)
    frames, maps = rgb.T.reshape(1, 3, 3, 4), numbers(1, 2, 3, 4).requires_grad_()
    for window in (engine.Gaussian.window, lambda _: None):
        monkeypatch.setattr(engine.Gaussian, "window", window)
        assert torch.autograd.gradcheck(lambda v: bilateral_product(frames, v, sigma_xy=5.0), maps)


def test_not_a_number_stays_in_its_place_and_harms_no_memory():
    """The public functions refuse it on the CPU; on CUDA they cannot look."""
    rgb = colors(1, 30).float().transpose(1, 2)
    rgb[:, :, 3] = float("nan")
    rgb[:, :, 4] = float("inf")
    group, values = torch.zeros(1, dtype=torch.int64), torch.ones(1, 1, 30)
    assert engine.product(rgb, values, group, 1, engine.Gaussian(15.0, 5e-3)).isnan().any()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_input_is_named_with_count_and_index(bad):
    rgb, values = colors(2, 6).float(), numbers(2, 6, 3)
    broken = values.clone()
    broken[1, 2, 0] = broken[1, 4, 2] = bad
    with pytest.raises(ColocamError, match=r"color_product: values has 2 NaN or infinite .* index \(1, 2, 0\)"):
        color_product(rgb, broken)
    rgb[0, 5, 1] = bad
    with pytest.raises(ColocamError, match=r"color_product: rgb has 1 NaN or infinite .* index \(0, 5, 1\)"):
        color_product(rgb, values)
    with pytest.raises(ColocamError, match=r"bilateral_product: rgb has 1 NaN or infinite .* index \(0, 1, 0, 5\)"):
        bilateral_product(rgb.transpose(1, 2)[:, :, None], values.transpose(1, 2)[:, :, None])
    with pytest.raises(ColocamError, match=r"bilateral_product: values has 2 NaN or infinite .* index \(1, 0, 0, 2\)"):
        bilateral_product(colors(2, 6).transpose(1, 2)[:, :, None], broken.transpose(1, 2)[:, :, None])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: color_product(colors(4)[:, :2], numbers(4, 1)), r"rgb \(…, N, 3\)"),
        (lambda: color_product(colors(5), numbers(4, 1)), r"rgb \(…, N, 3\)"),
        (lambda: color_product(colors(4)[0], numbers(4, 1)[0]), r"rgb \(…, N, 3\)"),
        (lambda: color_product(colors(4), numbers(4, 1).long()), "values must be floating, got torch.int64"),
        (lambda: color_product(colors(4), numbers(4, 1) > 0), "values must be floating"),
        (lambda: color_product(colors(4).float().requires_grad_(), numbers(4, 1)), "rgb must not require a gradient"),
        (lambda: color_product(colors(4).float() * 300, numbers(4, 1)), "rgb must be in 0–255, got colors from"),
        (lambda: color_product(colors(4), numbers(4, 1), sigma=0.0), "sigma must be positive"),
        (lambda: color_product(colors(4), numbers(4, 1), sigma=float("nan")), "sigma must be positive"),
        (lambda: color_product(colors(4), numbers(4, 1), tol=0.0), "tol must be a relative error"),
        (lambda: bilateral_product(colors(3, 3).permute(2, 0, 1)[None], numbers(1, 1, 3, 4)), r"rgb \(B, 3, H, W\)"),
        (
            lambda: bilateral_product(colors(1, 3, 3).permute(0, 3, 1, 2), numbers(1, 1, 3, 3), sigma_xy=-1),
            "sigma_xy must be",
        ),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ColocamError, match=words):
        call()

"""The tolerance of the pairwise losses holds for their gradients, too: WD, where D = S - ½ has both signs.

It is relative to ‖WD‖, or to what random signs give, ‖W‖_F · rms(D), where WD happens to be smaller.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.losses.affinity import dense_bilateral_product, dense_color_product, engine
from tests.helpers import affinity_images as images

SIZE = 24


def image(kind, generator):
    """(SIZE, SIZE, 3) colors in 0–255."""
    if kind == "noise":
        return torch.randint(0, 256, (SIZE, SIZE, 3), generator=generator).double()
    if kind == "gray levels":
        return torch.randint(100, 116, (SIZE, SIZE, 1), generator=generator).double().expand(-1, -1, 3)
    if kind in images.GRAYS:
        return images.gray("rocket", SIZE, kind)
    if kind == "near":  # within a few σ
        return 90 + 60 * torch.rand(SIZE, SIZE, 3, generator=generator, dtype=torch.float64)
    return images.photograph(kind, SIZE)


def map_of(kind, colors, generator):
    """S of (SIZE, SIZE) pixels."""
    if kind == "random":
        return torch.rand(SIZE, SIZE, generator=generator, dtype=torch.float64)
    if kind == "binary":
        return torch.randint(0, 2, (SIZE, SIZE), generator=generator).double()
    if kind == "bright":
        return (colors.mean(-1) > colors.mean()).double()
    return images.blob(SIZE)


@settings(max_examples=12)
@given(
    kind=st.sampled_from(["astronaut", "coffee", "noise", "near"]),
    shown=st.sampled_from(["random", "binary", "bright", "blob"]),
    tol=st.sampled_from([9e-3, 3e-2]),
    space=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_the_gradient_is_within_the_tolerance(kind, shown, tol, space, seed):
    check_gradient(kind, shown, tol, space, seed)


@pytest.mark.parametrize("shown", ["random", "binary", "bright", "blob"])
@pytest.mark.parametrize("kind", ["gray levels", *images.GRAYS])
def test_the_gradient_of_gray_images_is_within_the_tolerance(kind, shown):
    """Their three channels agree, so that the errors of the three axes must not."""
    for tol in (9e-3, 3e-2):
        check_gradient(kind, shown, tol, space=False, seed=0)


def check_gradient(kind, shown, tol, space, seed):
    generator = torch.Generator().manual_seed(seed)
    colors = image(kind, generator)
    s, rgb = map_of(shown, colors, generator), colors.permute(2, 0, 1)[None]
    d = (s - 0.5)[None, None]
    ones, narrow = torch.ones_like(d), 0.5**0.5  # the squares of W are a Gaussian narrower by √2
    if space:
        gaussian = engine.Gaussian(15.0, tol, SIZE / 2, (SIZE, SIZE))
        exact = dense_bilateral_product(rgb, d, 15.0, SIZE / 2).flatten()
        squares = dense_bilateral_product(rgb, ones, 15.0 * narrow, SIZE / 2 * narrow).sum()
    else:
        gaussian, flat = engine.Gaussian(15.0, tol), colors.reshape(-1, 3)
        exact = dense_color_product(flat, d.reshape(-1, 1)).flatten()
        squares = dense_color_product(flat, ones.reshape(-1, 1), 15.0 * narrow).sum()
    with pytest.MonkeyPatch.context() as patch:  # a small frame would be summed directly
        patch.setattr(engine.Gaussian, "window", lambda _: None)
        totals, found = engine.energy(rgb.flatten(2), s.flatten()[None], torch.zeros(1, dtype=torch.int64), 1, gaussian)
    assert (found.flatten() - exact).norm() <= tol * max(exact.norm(), squares.sqrt() * d.square().mean().sqrt())
    assert abs(totals[0, 1] - d.flatten() @ exact) <= tol * (d.flatten().abs() @ exact.abs())

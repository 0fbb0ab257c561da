"""Products are near the exact ones at the default tolerance, on photographs and on adversarial images."""

from functools import cache

import pytest
import torch

from colocam.losses import CoLocLoss, CRFLoss
from colocam.losses.affinity import bilateral_product, color_product, dense_bilateral_product, dense_color_product
from tests.helpers import affinity_images as images

PHOTOGRAPHS = ["astronaut", "coffee", "rocket"]
ADVERSARIAL = ["constant", "noise", "between levels", "two colors", "saturated"]
ROWS = torch.randperm(224 * 224, generator=torch.Generator().manual_seed(0))[:150]


@cache
def image_and_values(name):
    if name in images.GRAYS:
        image = images.gray("coffee", kind=name)
    else:
        image = images.photograph(name) if name in PHOTOGRAPHS else images.adversarial(name)
    s = images.blob()
    return image.float(), torch.stack([torch.ones_like(s), s, s - 0.5], dim=-1)


@pytest.mark.parametrize("name", PHOTOGRAPHS + ADVERSARIAL + images.GRAYS)
def test_color_product_is_within_half_a_percent(name):
    image, values = image_and_values(name)
    rgb, flat = image.reshape(-1, 3), values.reshape(-1, 3)
    exact = dense_color_product(rgb, flat, rows=ROWS)
    found = color_product(rgb, flat[:, :2].float())[ROWS]
    assert max(images.relative_error(found, exact[:, :2])) <= 0.005

    maps = values[..., 1].float()[None].repeat(2, 1, 1).requires_grad_()
    frames = image.permute(2, 0, 1)[None].repeat(2, 1, 1, 1)
    CoLocLoss()(frames, maps, torch.zeros(2, dtype=torch.int64)).backward()
    cosine = torch.cosine_similarity(maps.grad[0].flatten()[ROWS].double(), -exact[:, 2], dim=0)
    assert cosine >= 0.9999


@pytest.mark.parametrize("name", PHOTOGRAPHS + ADVERSARIAL + images.GRAYS)
def test_bilateral_product_is_within_one_percent(name):
    image, values = image_and_values(name)
    rgb = image.permute(2, 0, 1)[None]
    exact = dense_bilateral_product(rgb, values.permute(2, 0, 1)[None], rows=ROWS)[0].T
    found = bilateral_product(rgb, values[..., :2].permute(2, 0, 1)[None].float())[0].flatten(1).T[ROWS]
    assert max(images.relative_error(found, exact[:, :2])) <= 0.01

    maps = values[..., 1].float()[None].requires_grad_()
    CRFLoss()(rgb, maps).backward()
    cosine = torch.cosine_similarity(maps.grad[0].flatten()[ROWS].double(), -exact[:, 2], dim=0)
    assert cosine >= 0.9999


@pytest.mark.parametrize("sigma", [3.0, 40.0, 3000.0])
def test_any_width_of_the_color_gaussian(sigma):
    rgb = images.photograph("astronaut", 48).reshape(-1, 3)
    values = torch.rand(len(rgb), 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = color_product(rgb.byte(), values, sigma=sigma)
    assert max(images.relative_error(found, dense_color_product(rgb, values, sigma))) <= 0.005


def test_a_gaussian_narrower_than_the_levels_between_levels():
    rgb = torch.rand(300, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 4 + 100
    values = torch.rand(300, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(color_product(rgb, values, sigma=0.7), dense_color_product(rgb, values, 0.7))
    frames, maps = rgb.T.reshape(1, 3, 15, 20), values.T.reshape(1, 1, 15, 20)
    exact = dense_bilateral_product(frames, maps, 0.7, 50.0)
    found = bilateral_product(frames, maps, 0.7, 50.0, tol=1e-3).flatten(2)
    assert (found - exact).norm() <= 1e-3 * exact.norm()


@pytest.mark.parametrize("sigma_xy", [2.0, 15.0, 1000.0])
def test_any_width_of_the_spatial_gaussian(sigma_xy):
    image = images.photograph("chelsea", 40)[:, :33].permute(2, 0, 1)[None]
    values = torch.rand(1, 3, 40, 33, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    exact = dense_bilateral_product(image, values, 15.0, sigma_xy)
    found = bilateral_product(image, values, 15.0, sigma_xy).flatten(2)
    assert (found - exact).norm() <= 0.01 * exact.norm()

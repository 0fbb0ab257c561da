"""Spatial Gaussians that are narrow beside the frame: neighbors are summed, not eigenvectors."""

import pytest
import torch

from colocam.losses import CRFLoss
from colocam.losses.affinity import bilateral_product, dense_bilateral_product, engine


def frames(height, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    smooth = torch.rand(2, 3, height // 3 + 1, width // 3 + 1, generator=generator)
    rgb = torch.nn.functional.interpolate(smooth, (height, width), mode="bilinear") * 255
    return rgb, torch.rand(2, 2, height, width, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("sigma_xy", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("sigma_rgb", [0.8, 15.0, 300.0])
def test_within_one_percent(sigma_rgb, sigma_xy):
    rgb, values = frames(29, 34)
    assert engine.Gaussian(sigma_rgb, 1e-2, sigma_xy, (29, 34)).window() is not None
    exact = dense_bilateral_product(rgb, values, sigma_rgb, sigma_xy)
    found = bilateral_product(rgb, values, sigma_rgb, sigma_xy).flatten(2)
    assert (found - exact).norm() <= 0.01 * exact.norm()


def test_the_loss_and_its_gradient():
    rgb, values = frames(15, 11)
    maps = values[:, 0].clone().requires_grad_()
    loss = CRFLoss(20.0, 1.5)
    value = loss(rgb, maps)
    product = dense_bilateral_product(rgb, 1 - values[:, :1], 20.0, 1.5)
    expected = 2 * (values[:, :1].flatten(2) * product).sum((1, 2)).mean()
    torch.testing.assert_close(value.detach(), expected, rtol=1e-2, atol=0)
    assert torch.autograd.gradcheck(lambda s: loss(rgb, s), maps, fast_mode=True)

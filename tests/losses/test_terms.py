"""The registered loss terms against the formulas of the paper, written out in float64 with a dense affinity."""

import pytest
import torch

from colocam.config import load_config
from colocam.losses import LOSSES, StepTensors

SETTINGS = load_config().localizer.losses


def step(epoch=3):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 2, 5, 6, generator=generator, dtype=torch.float64).requires_grad_()
    labels = torch.tensor([0, 1, 255])[torch.randint(0, 3, (4, 5, 6), generator=generator)]
    frames = torch.randint(0, 256, (4, 3, 5, 6), generator=generator).double()
    return StepTensors(frames, logits.softmax(1)[:, 1], logits, labels, torch.tensor([0, 1, 0, 1]), 2, epoch)


def affinity(features):
    return torch.exp(-0.5 * torch.cdist(features, features).square())


def energy(w, s):
    return s @ w @ (1 - s) + (1 - s) @ w @ s


def seeds(given):
    s, y = given.maps[given.labels != 255], given.labels[given.labels != 255].double()
    return -((1 - y) * torch.log(1 - s) + y * torch.log(s)).mean()


def crf(given):
    y, x = torch.meshgrid(torch.arange(5), torch.arange(6), indexing="ij")
    at = torch.stack([y, x], -1).flatten(0, 1).double() / SETTINGS.sigma_xy
    each = (
        energy(affinity(torch.cat([rgb.flatten(1).T / SETTINGS.sigma_rgb, at], 1)), s.flatten())
        for rgb, s in zip(given.frames, given.maps, strict=True)
    )
    return sum(each) / 4


def size(given):
    t = SETTINGS.barrier * SETTINGS.barrier_growth**given.epoch
    areas = [s.sum() for s in given.maps]
    return sum(-(torch.log(a) + torch.log(30 - a)) / t for a in areas) / 2 / 4


def coloc(given):
    total = 0
    for index in range(2):
        mine = given.sequences == index
        w = affinity(given.frames[mine].transpose(0, 1).flatten(1).T / SETTINGS.sigma_rgb)
        s = given.maps[mine].flatten()
        divisor = s @ w @ s + (1 - s) @ w @ (1 - s)
        total = total + energy(w, s) / divisor.detach()
    return total / 2


@pytest.mark.parametrize("formula", [seeds, crf, size, coloc], ids=lambda f: f.__name__)
def test_registered_terms_are_the_equations(formula):
    given = step()
    found, expected = LOSSES[formula.__name__].make(SETTINGS)(given), formula(given)
    assert found.item() == pytest.approx(expected.item(), rel=1e-2)
    slope, exact = (torch.autograd.grad(loss, given.logits, retain_graph=True)[0] for loss in (found, expected))
    assert (slope - exact).norm() <= 1e-2 * exact.norm()

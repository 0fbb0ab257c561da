"""The projection term against its definition in float64, and what it does and does not care about."""

import numpy as np
import pytest
import torch

from colocam.errors import ColocamError
from colocam.losses.terms import ProjectionLoss


def brute_force(maps, inside):
    losses = []
    for s, t in zip(maps.numpy(), inside.numpy().astype(float), strict=True):
        if t.any():
            sides = []
            for axis in (0, 1):
                p, q = s.max(axis), t.max(axis)
                sides.append(1 - 2 * (p * q).sum() / ((p**2).sum() + (q**2).sum()))
            losses.append(np.mean(sides))
    return np.mean(losses) if losses else 0.0


def boxes(*corners, side=12):
    inside = torch.zeros(len(corners), side, side, dtype=torch.bool)
    for one, box in zip(inside, corners, strict=True):
        if box is not None:
            x1, y1, x2, y2 = box
            one[y1:y2, x1:x2] = True
    return inside


def test_definition_and_gradient():
    maps = torch.rand(3, 12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    inside = boxes((2, 3, 7, 9), None, (0, 0, 12, 5))
    assert float(ProjectionLoss()(maps, inside)) == pytest.approx(brute_force(maps, inside), abs=1e-12)
    maps.requires_grad_()
    assert torch.autograd.gradcheck(lambda m: ProjectionLoss()(m, inside), maps)


def test_a_diagonal_fits_a_box_as_well_as_a_full_one():
    """Each row and column needs one pixel, wherever it is."""
    inside = boxes((2, 3, 8, 9))
    diagonal = torch.zeros(1, 12, 12)
    diagonal[0, torch.arange(3, 9), torch.arange(2, 8)] = 1
    loss = ProjectionLoss()
    assert float(loss(inside.float(), inside)) == pytest.approx(0, abs=1e-6)
    assert float(loss(diagonal, inside)) == pytest.approx(0, abs=1e-6)
    half = inside.float() * (torch.arange(12) < 5)
    assert float(loss(half, inside)) > 0.1
    assert float(loss(torch.ones(1, 12, 12), inside)) > 0.1


def test_frames_without_a_box_do_not_count():
    maps = torch.rand(2, 12, 12)
    assert float(ProjectionLoss()(maps, boxes(None, None))) == 0
    with pytest.raises(ColocamError, match="ProjectionLoss: needs maps and inside"):
        ProjectionLoss()(maps, boxes(None))

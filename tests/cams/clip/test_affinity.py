"""Refinement by attention against loops in float64, SciPy's regions and closed forms."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from colocam.cams.clip import Refinement, attention_affinity, refine
from colocam.errors import ColocamError


def random_attention(batch=3, size=12, seed=0):
    scores = 2 * torch.randn(batch, size, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return scores.softmax(2)


def boxes_by_scipy(mask):
    filled = np.zeros_like(mask)
    regions, _ = ndimage.label(mask, structure=np.ones((3, 3)))
    for box in ndimage.find_objects(regions):
        filled[box] = True
    return filled


def test_affinity_against_a_loop():
    attention = random_attention(batch=2, size=5)
    for one, found in zip(attention.numpy(), attention_affinity(attention, 3).numpy(), strict=True):
        matrix = one.copy()
        for _ in range(3):
            for column in range(5):
                matrix[:, column] /= sum(matrix[row, column] for row in range(5))
            for row in range(5):
                matrix[row] /= sum(matrix[row])
        np.testing.assert_allclose(found, (matrix + matrix.T) / 2, rtol=1e-12)


def test_refine_against_loops():
    generator = torch.Generator().manual_seed(3)
    maps = torch.rand(2, 3, 3, 4, generator=generator, dtype=torch.float64) ** 3
    affinity = attention_affinity(random_attention(batch=2), 3)
    found = refine(maps, affinity, 0.4, 2).numpy()
    for frame in range(2):
        power = np.linalg.matrix_power(affinity[frame].numpy(), 2)
        for which in range(3):
            one = maps[frame, which].numpy()
            one = (one - one.min()) / (one.max() - one.min())
            boxes = boxes_by_scipy(one > 0.4).reshape(1, -1)
            assert 0 < boxes.sum() < 12
            np.testing.assert_allclose(found[frame, which], ((boxes * power) @ one.ravel()).reshape(3, 4), rtol=1e-10)


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"rounds": 0}, {"times": 0}, {"threshold": 1.0}, {"threshold": -0.1}])
def test_bad_refinements_are_refused(wrong):
    with pytest.raises(ColocamError, match=str(next(iter(wrong.values())))):
        Refinement(**wrong)

"""Refinement by attention against loops in float64, SciPy's regions and closed forms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage

from colocam.cams.clip import Refinement, attention_affinity, refine, region_boxes
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


def test_affinity_is_symmetric_and_doubly_stochastic():
    affinity = attention_affinity(random_attention(), 60)
    ones = torch.ones(3, 12, dtype=torch.float64)
    torch.testing.assert_close(affinity, affinity.mT, rtol=0, atol=0)
    torch.testing.assert_close(affinity.sum(1), ones, rtol=0, atol=1e-9)
    torch.testing.assert_close(affinity.sum(2), ones, rtol=0, atol=1e-9)
    assert float(affinity.min()) > 0


def test_every_round_comes_nearer():
    attention = random_attention()
    off = [float((attention_affinity(attention, rounds).sum(2) - 1).abs().max()) for rounds in (1, 2, 3, 6)]
    assert off == sorted(off, reverse=True)
    assert off[2] < 0.05  # what the default leaves


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


def test_balanced_symmetric_attention_is_its_own_affinity():
    circle = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])[None]
    torch.testing.assert_close(attention_affinity(circle, 3), circle)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(bool, st.tuples(st.just(2), st.integers(1, 9), st.integers(1, 9))))
def test_region_boxes_against_scipy(mask):
    found = region_boxes(torch.from_numpy(mask)).numpy()
    for one, boxes in zip(mask, found, strict=True):
        np.testing.assert_array_equal(boxes, boxes_by_scipy(one))


def test_region_boxes_of_a_spiral_and_of_diagonal_neighbours():
    spiral = np.array(
        [[1, 1, 1, 1, 1], [0, 0, 0, 0, 1], [1, 1, 1, 0, 1], [1, 0, 0, 0, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool
    )
    diagonal = np.zeros((6, 5), bool)
    diagonal[[0, 1, 5], [0, 1, 4]] = True
    found = region_boxes(torch.from_numpy(np.stack([spiral, diagonal]))).numpy()
    assert found[0].sum() == 25
    assert found[1].sum() == 5  # a box of 2×2 and a lone patch


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


def test_what_lies_outside_the_box_says_nothing():
    affinity = attention_affinity(random_attention(batch=1, size=16), 3)
    maps = torch.zeros(1, 1, 4, 4, dtype=torch.float64)
    maps[0, 0, 1, 1], maps[0, 0, 2, 2] = 1, 0.8
    faint = maps.clone()
    faint[0, 0, 0, 3] = 0.3
    inside = maps.clone()
    inside[0, 0, 1, 2] = 0.3  # in the box of the two, below the threshold
    plain = refine(maps, affinity, 0.4, 2)
    torch.testing.assert_close(refine(faint, affinity, 0.4, 2), plain, rtol=0, atol=0)
    assert (refine(inside, affinity, 0.4, 2) > plain).all()
    assert (refine(faint, affinity, 0.2, 2) > plain).all()


def test_the_identity_keeps_the_box_alone():
    maps = torch.rand(2, 1, 3, 4, generator=torch.Generator().manual_seed(5))
    found = refine(maps, torch.eye(12).expand(2, -1, -1), 0.7, 5)
    for frame in range(2):
        low, high = maps[frame].min(), maps[frame].max()
        scaled = (maps[frame, 0] - low) / (high - low)
        boxes = torch.from_numpy(boxes_by_scipy((scaled > 0.7).numpy()))
        torch.testing.assert_close(found[frame, 0], torch.where(boxes, scaled, 0))


def test_the_scale_of_a_map_does_not_matter():
    maps = torch.rand(1, 2, 3, 4, generator=torch.Generator().manual_seed(6))
    affinity = attention_affinity(random_attention(batch=1).float(), 3)
    torch.testing.assert_close(refine(1e-20 * maps, affinity, 0.4, 2), refine(maps, affinity, 0.4, 2))


def test_constant_maps_become_zero():
    affinity = attention_affinity(random_attention(batch=1).float(), 3)
    maps = torch.stack([torch.zeros(3, 4), torch.full((3, 4), 2.5)])[None]
    assert (refine(maps, affinity, 0.4, 2) == 0).all()


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"rounds": 0}, {"times": 0}, {"threshold": 1.0}, {"threshold": -0.1}])
def test_bad_refinements_are_refused(wrong):
    with pytest.raises(ColocamError, match=str(next(iter(wrong.values())))):
        Refinement(**wrong)

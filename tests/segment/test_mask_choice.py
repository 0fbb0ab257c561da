"""The mask of each frame: agreement with the map, and the best path over a shot."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from colocam.boxes.iou import iou
from colocam.segment.refine import AGREEMENT, FADE, JUMP, QUALITY, best_path, mask_scores, soft_iou, targets


def random_masks(seed, shape):
    return np.random.default_rng(seed).random(shape) > 0.6


def test_targets_rise_between_two_probabilities():
    levels = np.arange(256, dtype=np.uint8).reshape(2, 8, 16)
    expected = np.clip((levels / 255 - FADE[0]) / (FADE[1] - FADE[0]), 0, 1)
    np.testing.assert_allclose(targets(levels) / 255, expected, atol=1.01 / 255)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_soft_iou_is_the_quotient_of_minimum_and_maximum(kind):
    masks, target = random_masks(0, (3, 5, 6, 7)), np.random.default_rng(1).integers(0, 256, (3, 6, 7), np.uint8)
    soft = target / 255.0
    expected = [
        [np.minimum(mask, own).sum() / np.maximum(mask, own).sum() for mask in some]
        for some, own in zip(masks, soft, strict=True)
    ]
    np.testing.assert_allclose(soft_iou(kind(masks), kind(target)), expected, rtol=1e-12)


def test_scores_prefer_masks_that_fit_are_trusted_and_agree_with_others():
    one, half, away = [0, 0, 10, 10], [0, 0, 10, 5], [50, 50, 60, 60]
    boxes = np.array([[one, one, half, away]], float)
    overlaps, quality = np.array([[0.5, 0.5, 0.5, 0.0]]), np.array([[0.5, 1.5, 0.5, 1.0]])
    agreement = np.array([2.5 / 4, 2.5 / 4, 2 / 4, 1 / 4])
    fit = [0.5 * 0.5**QUALITY, 0.5, 0.5 * 0.5**QUALITY, 0]
    expected = np.where(overlaps[0] > 0, (fit + AGREEMENT * agreement) / (1 + AGREEMENT), 0)
    assert mask_scores(overlaps, quality, boxes)[0] == pytest.approx(expected)


def value(path, scores, boxes, before):
    total = sum(scores[at, choice] for at, choice in enumerate(path))
    chain = [boxes[at, choice] for at, choice in enumerate(path)]
    chain = chain if before is None else [before, *chain]
    return total - JUMP * sum(1 - float(iou(a, b)) for a, b in pairwise(chain))


@given(
    seed=st.integers(0, 10_000),
    length=st.integers(1, 4),
    count=st.integers(1, 4),
    scale=st.sampled_from([0.1, 1, 100]),
    continued=st.booleans(),
)
def test_best_path_is_the_best_of_all_paths(seed, length, count, scale, continued):
    random = np.random.default_rng(seed)
    scores = scale * random.random((length, count))
    corners = random.random((length * count + 1, 2, 2)) * 10
    boxes = np.sort(corners, axis=1).reshape(-1, 4)
    before, boxes = boxes[-1] if continued else None, boxes[:-1].reshape(length, count, 4)
    found = best_path(scores, boxes, before)
    best = max(value(path, scores, boxes, before) for path in product(range(count), repeat=length))
    assert value(found, scores, boxes, before) == pytest.approx(best)

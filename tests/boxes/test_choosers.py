"""Choosers: the registry, the consensus against a plain sum over pairs, and the path through a clip."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.boxes import CHOOSERS, Chooser, candidate_boxes, instance_boxes, largest_boxes
from colocam.boxes.candidates import CONSENSUS_FACTORS, SPREAD, Candidates, consensus_boxes, eligible, find_chooser
from colocam.errors import ColocamError
from colocam.temporal.path import boxes_of_shots


def blobs(seed: int, count: int = 3, side: int = 48):
    """Maps (count, side, side) in 8 bits: a bright disc on a wide, dim one, at random places."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    maps = []
    for _ in range(count):
        cy, cx = rng.uniform(side / 3, 2 * side / 3, 2)
        far = np.hypot(y - cy, x - cx) / side
        maps.append(np.clip(0.8 * np.exp(-((far / rng.uniform(0.1, 0.25)) ** 2)) + 0.2 * rng.random(y.shape), 0, 1))
    return (255 * np.stack(maps)).astype(np.uint8)


def overlap(a, b):
    """IoU of two boxes as plain numbers."""
    common = max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return common / (sum(areas) - common) if sum(areas) > common else 0.0


@given(seed=st.integers(0, 1000), threshold=st.floats(0.1, 0.6))
def test_the_score_is_the_weighted_mean_overlap_with_the_boxes_of_all_thresholds(seed, threshold):
    level = blobs(seed, 1)
    (found,) = consensus_boxes(level, threshold)
    at = [(f, *largest_boxes(level, min(threshold * f, 1.0))) for f in CONSENSUS_FACTORS]
    kept = [(np.exp(-0.5 * (np.log(f) / SPREAD) ** 2), box[0].tolist()) for f, box, there in at if there[0]]
    for box, score in zip(found.boxes.tolist(), found.scores.tolist(), strict=True):
        expected = sum(w * overlap(box, other) for w, other in kept) / sum(w for w, _ in kept)
        assert score == pytest.approx(expected, abs=1e-9)
    assert {tuple(box) for box in found.boxes.tolist()} == {tuple(box) for _, box in kept}
    assert found.scores.tolist() == sorted(found.scores.tolist(), reverse=True)
    assert len(eligible(found).boxes) == len(found.boxes)


def test_an_empty_map_has_no_candidates_and_does_not_disturb_its_neighbors():
    levels = blobs(0, 2)
    both = consensus_boxes(np.stack([levels[0], np.zeros_like(levels[0])]), 0.3)
    assert len(both[1].boxes) == 0
    assert np.array_equal(both[0].boxes, consensus_boxes(levels[:1], 0.3)[0].boxes)


def test_largest_is_the_published_rule_frame_by_frame():
    levels = blobs(3, 5)
    boxes, found = boxes_of_shots(levels, 0.3, "largest", np.zeros(5, np.int64))
    expected, there = largest_boxes(levels, 0.3)
    assert np.array_equal(boxes, expected)
    assert np.array_equal(found, there)
    assert CHOOSERS["largest"].candidates is candidate_boxes


def candidates_of(boxes, scores):
    return [
        Candidates(np.array(b, float), np.array(s, float), np.full(len(b), 0.5), len(b))
        for b, s in zip(boxes, scores, strict=True)
    ]


def test_frames_of_a_clip_choose_together_and_clips_do_not(monkeypatch):
    small, large = [10, 10, 20, 20], [0, 0, 40, 40]
    frames = candidates_of([[small, large]] * 2 + [[large, small]] + [[small, large]] * 2, [[0.6, 0.5]] * 5)
    monkeypatch.setitem(CHOOSERS, "fixed", Chooser("for this test", lambda maps, _: frames[: len(maps)]))
    maps = np.zeros((5, 48, 48), np.uint8)
    together, _ = boxes_of_shots(maps, 0.5, "fixed", np.zeros(5, np.int64))
    assert together.tolist() == [small] * 5  # the odd frame is outvoted by its neighbors
    apart, _ = boxes_of_shots(maps, 0.5, "fixed", np.arange(5))
    assert apart[2].tolist() == large


def test_unknown_choosers_and_impossible_thresholds_are_refused():
    with pytest.raises(ColocamError, match="consensus"):
        find_chooser("concensus")
    for rule in (candidate_boxes, consensus_boxes, instance_boxes, largest_boxes):
        with pytest.raises(ColocamError, match=r"threshold must be in 0–1, got 1\.5"):
            rule(np.zeros((1, 4, 4), np.uint8), 1.5)

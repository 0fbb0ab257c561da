"""Frames to measure on: which ones, of what class, where in their video, and with which boxes."""

import numpy as np
import pytest

from colocam.data.batches import labeled_samples, scaled_boxes, spread_samples
from colocam.data.frame_cache import ROW, CachedClip
from colocam.data.truth import Truth
from colocam.types import Box, Clip

TAGS = ("cat", "dog")


@pytest.fixture
def clips(tmp_path):
    """Clip a: every second frame of 10 was cached, 64×48. Clip b: 3 frames of different sizes, 30×60 and 20×10."""
    made = []
    for name, tag, rows in (
        ("a", "dog", [(2 * i, i / 10, 64, 48) for i in range(5)]),
        ("b", "cat", [(0, 0.0, 30, 60), (1, 0.1, 30, 60), (2, 0.2, 20, 10)]),
    ):
        file = tmp_path / f"{name}.rgb"
        np.random.default_rng(len(made)).integers(0, 256, (len(rows), 12, 12, 3)).astype(np.uint8).tofile(file)
        made.append(CachedClip(Clip(name, tag, "val", tmp_path / name, name), file, 12, np.array(rows, ROW)))
    return made


@pytest.fixture
def truth():
    return Truth(
        {
            "a": {0: [], 1: [Box(1, 1, 2, 2)], 4: [Box(0, 0, 32, 24), Box(8, 12, 16, 36)], 6: [Box(1, 2, 3, 4)]},
            "b": {1: [Box(3, 6, 15, 30)], 2: [Box(5, 5, 20, 10)]},
            "elsewhere": {0: [Box(0, 0, 1, 1)]},
        }
    )


def where(samples):
    return [(clip.clip.name, frame) for clip, frame in samples.where()]


def test_spread_samples_take_a_few_of_each_clip(clips):
    samples = spread_samples(clips, TAGS, 2)
    assert where(samples) == [("a", 2), ("a", 6), ("b", 0), ("b", 2)]
    assert samples.classes.tolist() == [1, 1, 0, 0]
    assert len(samples) == 4
    assert len(spread_samples(clips, TAGS, 100)) == 8


def test_labeled_samples_are_cached_frames_with_a_label(clips, truth):
    assert where(labeled_samples(clips, TAGS, truth)) == [("a", 0), ("a", 4), ("a", 6), ("b", 1), ("b", 2)]
    present = labeled_samples(clips, TAGS, truth, present=True)
    assert where(present) == [("a", 4), ("a", 6), ("b", 1), ("b", 2)]
    assert present.classes.tolist() == [1, 1, 0, 0]
    assert len(where(labeled_samples(clips, TAGS, truth, 1))) == 2


def test_boxes_are_scaled_by_the_size_of_their_own_frame(clips, truth):
    boxes = scaled_boxes(labeled_samples(clips, TAGS, truth), truth, 96)
    assert [b.dtype for b in boxes] == [np.float32] * 5
    assert boxes[0].shape == (0, 4)
    np.testing.assert_allclose(boxes[1], [[0, 0, 48, 48], [12, 24, 24, 72]])
    np.testing.assert_allclose(boxes[2], [[1.5, 4, 4.5, 8]])
    np.testing.assert_allclose(boxes[3], [[9.6, 9.6, 48, 48]], rtol=1e-6)
    np.testing.assert_allclose(boxes[4], [[24, 48, 96, 96]])

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.demo import world as scene
from colocam.demo.figures import CLASSES
from colocam.demo.motion import STYLES
from colocam.demo.world import SIZES, Traits, draw_traits, render, true_box
from colocam.types import Box

EASY = Traits(near=False, empty=False, occluded=False, context=True, distractors=1, size=0.45, style="calm")
FRAME = (96, 72)


def shots(tag="fish", traits=EASY, *, seed=0, frames=8, size=FRAME):
    return list(render(tag, traits, np.random.SeedSequence(seed), frames=frames, size=size, fps=12))


def iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def extent(mask):
    rows, columns = np.nonzero(mask)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def without_object(monkeypatch):
    """Make the object invisible while everything else, the noise too, stays the same."""
    original = scene._hero

    def hero(*args, **kwargs):
        moving = original(*args, **kwargs)
        sprites = tuple(replace(s, image=np.zeros_like(s.image)) for s in moving.actor.sprites)
        return replace(moving, actor=replace(moving.actor, sprites=sprites))

    monkeypatch.setattr(scene, "_hero", hero)


@pytest.mark.parametrize("tag", CLASSES)
@pytest.mark.parametrize("style", ["calm", "fast"])
def test_boxes_fit_what_the_object_changes_in_the_picture(tag, style, monkeypatch):
    traits = replace(EASY, style=style, size=0.5, distractors=0)
    seen = shots(tag, traits, frames=4, size=(192, 144))
    without_object(monkeypatch)
    empty = shots(tag, traits, frames=4, size=(192, 144))
    fits = []
    for shot, bare in zip(seen, empty, strict=True):
        assert bare.box is None
        change = np.abs(shot.image.astype(int) - bare.image).max(-1)
        # Half of the usual change: about where the object covers a pixel by half.
        fits.append(iou(shot.box, extent(change > 0.5 * np.median(change[change > 12]))))
    assert np.mean(fits) > 0.85
    assert min(fits) > 0.6


def test_frames_follow_from_the_seeds_and_differ_between_them():
    first, again, other = shots(), shots(), shots(seed=1)
    for a, b, c in zip(first, again, other, strict=True):
        assert a.image.shape == (72, 96, 3)
        assert a.image.dtype == np.uint8
        assert np.array_equal(a.image, b.image)
        assert a.box == b.box
        assert np.abs(a.image.astype(int) - c.image).mean() > 5


def test_boxes_lie_inside_the_frame_and_sizes_keep_their_limits():
    for seed in range(4):
        for shot in shots("beetle", replace(EASY, size=0.7, style="crossing"), seed=seed, frames=16):
            if shot.box:
                x1, y1, x2, y2 = shot.box
                assert 0 <= x1 < x2 <= 96
                assert 0 <= y1 < y2 <= 72


def test_an_empty_stretch_is_empty_and_the_rest_is_not():
    for seed in range(3):
        video = shots("snail", replace(EASY, empty=True), seed=seed, frames=48, size=(48, 36))
        present = np.array([shot.box is not None for shot in video])
        assert 0.15 < np.mean(~present) < 0.55
        assert np.count_nonzero(np.diff(present.astype(int))) <= 2


def test_occluders_hide_the_object_at_times(monkeypatch):
    """By how much less the picture changes where the object is taken out."""

    def pictures(*, occluded):
        traits = replace(EASY, occluded=occluded)
        return np.array([[s.image for s in shots(traits=traits, seed=seed, frames=12)] for seed in range(5)], int)

    hidden, free = pictures(occluded=True), pictures(occluded=False)
    without_object(monkeypatch)
    changed = [
        (abs(seen - pictures(occluded=o)).max(-1) > 12).sum((2, 3)) for seen, o in ((hidden, True), (free, False))
    ]
    assert (changed[0] / changed[1]).min() < 0.75


def test_one_frame_is_a_video_too():
    (shot,) = shots(frames=1)
    assert shot.box is not None


def test_traits_are_spread_evenly_over_few_videos():
    rng = np.random.default_rng(0)
    groups = [[draw_traits(phases, index) for index in range(16)] for phases in rng.random((40, 7))]
    traits = [trait for group in groups for trait in group]
    for name, share in (("near", 0.2), ("empty", 0.25), ("occluded", 0.4), ("context", 0.6)):
        counts = [sum(getattr(trait, name) for trait in group) for group in groups]
        assert np.mean(counts) / 16 == pytest.approx(share, abs=0.02)
        assert np.ptp(counts) <= 4  # sixteen draws by chance would differ by seven or more
    sizes = np.array([trait.size for trait in traits])
    assert SIZES[0] < sizes.min() < 1.7 * SIZES[0]
    assert 0.9 * SIZES[1] < sizes.max() < SIZES[1]
    assert np.bincount([trait.distractors for trait in traits]) / 640 == pytest.approx(
        [0.15, 0.35, 0.35, 0.15], abs=0.03
    )
    for name, style in STYLES.items():
        assert np.mean([trait.style == name for trait in traits]) == pytest.approx(style.share, abs=0.03)
    pairs = np.corrcoef([[t.near, t.empty, t.occluded, t.context, t.size] for t in traits], rowvar=False)
    assert np.abs(pairs - np.eye(5)).max() < 0.2


STORED = {
    "beetle": ([181, 162, 210, 150, 136, 192, 153, 130, 169, 125, 124, 173], (13, 0, 78, 54)),
    "fish": ([115, 119, 108, 96, 97, 95, 66, 79, 42, 38, 64, 41], (8, 0, 80, 53)),
    "kite": ([184, 163, 187, 157, 144, 209, 162, 140, 165, 116, 115, 159], (19, 0, 69, 63)),
    "rocket": ([87, 103, 58, 51, 71, 54, 66, 79, 30, 35, 60, 41], (25, 0, 74, 53)),
    "snail": ([168, 148, 180, 147, 132, 197, 150, 126, 165, 134, 136, 186], (17, 0, 77, 56)),
    "truck": ([159, 149, 160, 85, 89, 89, 66, 78, 45, 41, 71, 47], (4, 0, 81, 53)),
}
"""Mean RGB of each quarter of the third frame, and the true box."""


@pytest.mark.parametrize("tag", STORED)
def test_the_videos_stay_what_they_are(tag):
    """Numbers of the documentation are measured on them."""
    i = list(CLASSES).index(tag)
    traits = Traits(i % 2 == 0, False, i % 3 == 0, True, distractors=2, size=0.6, style="lively")
    shot = shots(tag, traits, seed=7, frames=3)[-1]
    quarters, box = STORED[tag]
    np.testing.assert_allclose(shot.image.reshape(2, 36, 2, 48, 3).mean((1, 3)).ravel(), quarters, atol=1)
    assert shot.box == box


def test_the_number_of_threads_does_not_matter():
    before = cv2.getNumThreads()
    traits = replace(EASY, occluded=True, distractors=3)
    try:
        cv2.setNumThreads(1)
        one = shots("rocket", traits, size=(192, 144))
        cv2.setNumThreads(4)
        four = shots("rocket", traits, size=(192, 144))
    finally:
        cv2.setNumThreads(before)
    assert all(np.array_equal(a.image, b.image) and a.box == b.box for a, b in zip(one, four, strict=True))


H, W = 40, 60
NOTHING = np.zeros((H, W), np.float32)


def rectangle(x1, y1, x2, y2, opacity=1.0):
    layer = NOTHING.copy()
    layer[y1:y2, x1:x2] = opacity
    return layer


@given(st.integers(0, 50), st.integers(0, 30), st.integers(6, 40), st.integers(6, 40))
def test_the_box_is_that_of_the_pixels_inside_the_frame(x, y, width, height):
    box = true_box(rectangle(x, y, x + width, y + height), NOTHING, width * height)
    inside = Box(x, y, min(x + width, W), min(y + height, H))
    seen = (inside.x2 - inside.x1) * (inside.y2 - inside.y1)
    assert box == (inside if seen >= max(25, 0.06 * width * height) else None)


@given(st.integers(1, 19))
def test_an_object_mostly_seen_keeps_its_whole_box(columns):
    box = true_box(rectangle(20, 10, 40, 20), rectangle(20, 0, 20 + columns, H), 200)
    if columns < 6:
        assert box == (20, 10, 40, 20)
    elif (20 - columns) * 10 >= 25:
        assert box == (20 + columns, 10, 40, 20)
    else:
        assert box is None


def test_a_hole_in_the_middle_leaves_the_visible_sides():
    assert true_box(rectangle(20, 10, 40, 20), rectangle(23, 0, 37, H), 200) == (20, 10, 40, 20)


def test_faint_things_neither_count_nor_hide():
    solid, faint = rectangle(20, 10, 40, 20), rectangle(10, 5, 50, 25, 0.3)
    assert true_box(np.maximum(solid, faint), faint, 200) == (20, 10, 40, 20)


def test_too_little_to_see_is_no_object():
    assert true_box(NOTHING, NOTHING, 200) is None
    assert true_box(rectangle(0, 0, 6, 4), NOTHING, 100) is None  # 24 pixels
    assert true_box(rectangle(0, 0, 5, 5), NOTHING, 100) == (0, 0, 5, 5)
    assert true_box(rectangle(0, 0, 10, 10), NOTHING, 2000) is None  # 5 %
    assert true_box(rectangle(0, 0, 13, 10), NOTHING, 2000) == (0, 0, 13, 10)

"""The parts of learning from corrections by themselves: thresholds, presence, seeds, weights and held-out videos."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from colocam.boxes.candidates import consensus_boxes
from colocam.boxes.iou import iou
from colocam.config import Seeds
from colocam.evaluation.metrics.protocols import GRID as CHOOSER_GRID
from colocam.labels import Correction
from colocam.temporal.presence import ZERO_OF_FRAME, Calibration
from colocam.training.learning import decoder as learn_decoder
from colocam.training.learning.card import (
    GRID,
    PRESENCE_PRIOR,
    calibrate_presence,
    choose_threshold,
    right_at,
)
from colocam.training.learning.decoder import box_seeds, dense_labels
from colocam.training.learning.frames import History, _is_key, held_out_videos
from colocam.training.seeds import seed_noise
from colocam.types import Box

NAMES = st.integers(0, 60).map(lambda number: f"cat/{number}")


def cones(radii, side=32):
    """Maps that fall linearly from the middle: the box at τ is the wider the lower τ is."""
    y, x = np.mgrid[:side, :side] - side / 2
    away = np.maximum(abs(x), abs(y))
    return np.stack([np.clip(255 * (1 - away / radius), 0, 255).astype(np.uint8) for radius in radii])


def test_right_at_asks_the_chooser_of_the_model():
    """The consensus takes a box between two thresholds; where it was asked, the curve is what it chose."""
    levels = cones([15, 9])
    boxes = [np.array([[9, 9, 24, 24]], np.float32), np.array([[2, 2, 30, 30]], np.float32)]
    right = right_at(levels, boxes, "consensus")
    for at in (2, 7):
        asked = CHOOSER_GRID[at]
        found = [one.boxes[0] for one in consensus_boxes(levels, float(asked))]
        for row, box, true in zip(right, found, boxes, strict=True):
            overlap = iou(box, true[0].astype(np.float64))
            between = np.interp(asked, GRID, row)
            assert between == pytest.approx(np.mean([overlap >= least for least in (0.3, 0.5, 0.7)]), abs=0.1)


def test_the_threshold_follows_boxes_as_far_as_there_are_some():
    """Boxes are right around 0.3, and the model's own τ is 0.5; classes of few and of many boxes count the same."""

    def choose(*boxes):
        classes = np.repeat(np.arange(len(boxes)), [count for _, count in boxes])
        right = np.stack([np.exp(-((GRID - boxes[tag][0]) ** 2) / 0.01) for tag in classes])
        return choose_threshold(right, classes, np.ones(len(classes)), 0.5)

    few, many = choose((0.3, 1)), choose((0.3, 200))
    assert abs(many - 0.3) < 0.02
    assert abs(few - 0.5) < abs(many - 0.5)
    assert choose((0.3, 200), (0.35, 1000)) == pytest.approx(0.325, abs=0.02)


def test_presence_moves_only_with_labels_of_both_kinds():
    rng = np.random.default_rng(0)
    start, sure = Calibration(1.0, 0.0), np.ones(400)
    peaks = np.concatenate([rng.normal(6, 1, 200), rng.normal(2, 1, 200)])
    present = np.arange(400) < 200
    assert calibrate_presence(start, peaks[:200], sure[:200], present[:200], np.ones(200)) == start
    assert calibrate_presence(None, peaks[:200], sure[:200], present[:200], np.ones(200)) is None
    assert calibrate_presence(None, peaks, sure, present, np.ones(400)).slope > 0
    turned = calibrate_presence(start, peaks, sure, ~present, np.ones(400))
    assert turned.slope >= 0


@pytest.mark.parametrize("seed", range(4))
def test_presence_has_the_least_loss_with_the_decoders_map(seed):
    """Against a general optimizer, with the same prior and frames of both kinds with the same weight."""
    rng = np.random.default_rng(seed)
    present = rng.random(60) < 0.6
    peaks, foreground = rng.normal(2 + 3 * present, 2), np.clip(rng.normal(0.3 + 0.5 * present, 0.2), 0.01, 1)
    start = Calibration(0.7, -2.0)
    x, both = start.evidence(peaks), min(present.sum(), (~present).sum())
    nothing = np.exp(ZERO_OF_FRAME) * np.maximum((1 - foreground) / foreground, 1 / 255)

    def loss(ab):
        against = np.exp(-(ab[0] * x + ab[1])) + nothing
        losses = np.where(present, np.log1p(against), np.log1p(1 / against))
        mean = losses[present].mean() + losses[~present].mean()
        return both * mean + PRESENCE_PRIOR / 2 * ((ab[0] - 1) ** 2 + ab[1] ** 2)

    found = calibrate_presence(start, peaks, foreground, present, np.ones(60))
    best = minimize(loss, [1.0, 0.0], tol=1e-12).x
    scale = found.slope / start.slope
    np.testing.assert_allclose((scale, found.offset - scale * start.offset), best, atol=1e-4)


def test_labels_of_a_box_follow_the_map_inside_and_never_cross_its_side():
    maps = torch.rand(3, 24, 24, generator=torch.Generator().manual_seed(0))
    maps[0, 0, 0] = 10  # brighter than anything in the box, but outside
    maps[1] = 0
    inside = torch.zeros(3, 24, 24, dtype=torch.bool)
    inside[:2, 5:15, 3:20] = True
    labels = dense_labels(maps, inside)
    assert bool((labels[~inside] == 0).all())
    highest = maps[0][inside[0]].max()
    for y, x in inside[0].nonzero().tolist():
        assert labels[0, y, x] == (1 if maps[0, y, x] >= 0.4 * highest else 255)
    assert bool((labels[1][inside[1]] == 1).all())  # a map without any guess: the whole box
    assert not labels[2].any()  # no box: all background
    assert bool((dense_labels(maps, inside, core=0.0)[inside] == 1).all())


@pytest.mark.parametrize("plain", [True, False])
def test_frames_and_boxes_are_seen_in_the_same_view(plain):
    """White boxes on black frames: whatever part of a frame is seen, what is white is inside the box."""
    frames = torch.zeros(40, 3, 48, 48, dtype=torch.uint8)
    inside = torch.zeros(40, 48, 48, dtype=torch.uint8)
    frames[:, :, 10:30, 20:40], inside[:, 10:30, 20:40] = 255, 1
    own = inside.float()
    views = learn_decoder._sample_views(40, 48, 32, torch.Generator().manual_seed(0), plain=plain)
    assert ("colors" in views) != plain
    colors = {} if plain else {"colors": torch.ones(40, 3)}
    seen, boxes, labels = learn_decoder._view({"frames": frames, "inside": inside, "own": own, **views, **colors}, 32)
    assert seen.shape == (40, 3, 32, 32)
    torch.testing.assert_close(seen[:, :1] / 255, boxes, rtol=0, atol=1e-4)
    torch.testing.assert_close(labels, torch.full_like(boxes, 0.5) if plain else boxes)
    shares = boxes.mean((1, 2, 3))
    assert shares.unique().numel() > 5  # the views differ


def test_seeds_of_a_box_never_cross_its_side():
    cams = torch.rand(3, 24, 24, generator=torch.Generator().manual_seed(0))
    cams[1] = 0
    inside = torch.zeros(3, 24, 24, dtype=torch.bool)
    inside[:2, 5:15, 3:20] = True
    noise = seed_noise((3, 24, 24), torch.Generator().manual_seed(1))
    labels = box_seeds(cams, inside, Seeds(foreground=20, background=30), *noise)
    assert set(labels.unique().tolist()) == {0, 1, 255}
    assert bool((labels[inside] != 0).all())
    assert bool((labels[~inside] != 1).all())
    assert int((labels[2] == 1).sum()) == 0  # no box: all background
    assert int((labels[1] == 1).sum()) > 20  # a CAM of zeros still gives foreground


@settings(max_examples=25)
@given(st.sets(NAMES, max_size=30), st.sets(NAMES, max_size=10))
def test_some_of_the_videos_are_held_out_for_good(videos, more):
    held = held_out_videos(sorted(videos))
    assert len(held) == max(round(len(videos) / 5), min(3, len(videos) // 2))
    assert held <= videos
    history = History(frozenset(videos - held), frozenset(held))
    again = held_out_videos(sorted(videos | more), history)
    assert held <= again
    assert not again & history.learned


@pytest.mark.parametrize(
    ("own", "sure"),
    [
        ([("box", True)], True),
        ([("box", False)], False),
        ([("box", True), ("accepted", False)], True),  # the other object is as the model found it
        ([("box", True), ("box", False)], False),  # the other object is interpolated
        ([("none", True), ("accepted", False)], False),  # of the object that has a box nothing was said
        ([("none", True)], True),
        ([("none", True), ("nothing", False)], False),
    ],
)
def test_a_frame_of_several_objects_is_sure_where_none_is_interpolated(own, sure):
    kinds = {"nothing": "accepted"}
    said = [
        Correction(
            "video", 0, None, kinds.get(kind, kind), "cat", (Box(1, 2, 3, 4),) * (kind in {"box", "accepted"}), key
        )
        for kind, key in own
    ]
    assert _is_key(said) == sure

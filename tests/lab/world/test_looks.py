"""What the world must be for the task to be hard but fair: measured on what it shows, not on how it is made."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from colocam.demo import world as scene
from colocam.demo.figures import CLASSES, CONTEXTS, distractor
from colocam.demo.motion import Light
from colocam.demo.painting import make_actor
from colocam.demo.textures import draw_palette
from colocam.demo.world import Traits, render

STILL = Traits(near=False, empty=False, occluded=False, context=False, distractors=0, size=0.5, style="calm")
GREYS = np.array([[0.5] * 3, [0.9] * 3, [0.2] * 3], np.float32)


def shots(tag, traits=STILL, *, seed=0, frames=6, size=(96, 72)):
    return list(render(tag, traits, np.random.SeedSequence(seed), frames=frames, size=size, fps=12))


def portrait(figure, colours=GREYS, size=64):
    layer = np.zeros((96, 96, 4), np.float32)
    make_actor(figure, colours, size).draw(layer, np.array([48.0, 48.0]), size, 0.0, 0.0)
    return layer


def inner(shot):
    """Pixels (n, 3) of the middle third of the box."""
    x1, y1, x2, y2 = shot.box
    w, h = (x2 - x1) / 3, (y2 - y1) / 3
    return shot.image[int(y1 + h) : int(y2 - h) + 1, int(x1 + w) : int(x2 - w) + 1].reshape(-1, 3).astype(float)


def test_silhouettes_of_a_class_agree_and_of_two_classes_do_not():
    masks = {
        tag: [portrait(build(np.random.default_rng(seed)))[..., 3] > 0.5 for seed in range(4)]
        for tag, build in CLASSES.items()
    }

    def overlap(a, b):
        return np.count_nonzero(a & b) / np.count_nonzero(a | b)

    for tag, own in masks.items():
        within = min(overlap(own[0], mask) for mask in own)
        between = max(overlap(own[0], mask) for other, others in masks.items() if other != tag for mask in others)
        assert within > 0.75
        assert between < within - 0.05


def test_textures_alone_tell_the_crisp_parts_apart():
    """Nearest neighbour on the grey pictures: a new animal of a class is nearest to another of the same class."""
    pictures = {
        tag: [cv2.GaussianBlur(portrait(build(np.random.default_rng(s))), (0, 0), 1.0).ravel() for s in range(4)]
        for tag, build in CLASSES.items()
    }
    for tag, own in pictures.items():
        distance = {
            other: min(np.linalg.norm(own[0] - p) for p in (others[1:] if other == tag else others))
            for other, others in pictures.items()
        }
        assert min(distance, key=distance.get) == tag


def test_things_of_no_class_are_like_no_class():
    references = [portrait(build(np.random.default_rng(0)))[..., 3] > 0.5 for build in CLASSES.values()]
    for seed in range(40):
        mask = portrait(distractor(np.random.default_rng(seed)))[..., 3] > 0.5
        assert max(np.count_nonzero(mask & r) / np.count_nonzero(mask | r) for r in references) < 0.8


def test_no_colour_predicts_a_class():
    """The class whose mean colour is nearest is right about as often as chance, one in six."""
    colours = {
        index: np.array(
            [np.median(inner(shots(tag, seed=seed, frames=1, size=(48, 36))[0]), axis=0) for seed in range(12)]
        )
        for index, tag in enumerate(CLASSES)
    }
    centres = np.array([colours[index][:6].mean(0) for index in colours])
    right = [
        np.linalg.norm(centres - colour, axis=1).argmin() == index for index in colours for colour in colours[index][6:]
    ]
    assert np.mean(right) < 0.45


def test_an_object_keeps_its_colours_within_a_video():
    within, between = [], []
    videos = [shots("truck", seed=seed, frames=6) for seed in range(8)]
    colours = [[np.median(inner(shot), axis=0) for shot in video if shot.box] for video in videos]
    for index, video in enumerate(colours):
        within.append(np.linalg.norm(video[0] - video[-1]))
        between.append(np.linalg.norm(video[0] - colours[index - 1][0]))
    assert np.median(within) < 0.5 * np.median(between)


def test_the_base_colour_stands_out_unless_the_video_is_near():
    def gap(near):
        gaps = []
        for seed in range(10):
            shot = shots("fish", replace(STILL, near=near), seed=seed, frames=1)[0]
            outside = shot.image.astype(float).copy()
            x1, y1, x2, y2 = (int(side) for side in shot.box)
            outside[y1:y2, x1:x2] = np.nan
            background = outside[~np.isnan(outside[..., 0])]
            base = np.median(inner(shot), axis=0)
            gaps.append(np.quantile(np.linalg.norm(background - base, axis=1), 0.1))
        return np.median(gaps)

    assert gap(near=False) > 1.5 * gap(near=True)


def test_contexts_go_with_their_class_and_seldom_with_others(monkeypatch):
    seen = []

    def painted(_rng, _colours, width, height, *, contexts, **_):
        seen.append(contexts)
        return np.ones((height, width, 4), np.float32)

    monkeypatch.setattr(scene, "paint_background", painted)
    for seed in range(120):
        next(
            render("kite", replace(STILL, context=True), np.random.SeedSequence(seed), frames=1, size=(32, 24), fps=12)
        )
    assert all("kite" in contexts for contexts in seen)
    foreign = np.mean([len(contexts) - 1 for contexts in seen]) / (len(CONTEXTS) - 1)
    assert foreign == pytest.approx(0.08, abs=0.03)
    seen.clear()
    next(render("kite", STILL, np.random.SeedSequence(0), frames=1, size=(64, 48), fps=12))
    assert "kite" not in seen[0]


def test_fast_objects_are_blurred():
    def sharpness(style):
        values = []
        for seed in range(5):
            for shot in shots("snail", replace(STILL, style=style), seed=seed, size=(192, 144)):
                x1, y1, x2, y2 = (int(side) for side in shot.box)
                patch = cv2.GaussianBlur(shot.image[y1:y2, x1:x2, 1].astype(np.float32), (0, 0), 1.0)
                values.append(np.abs(np.diff(patch, axis=1)).mean())
        return np.mean(values)

    assert sharpness("fast") < 0.95 * sharpness("calm")


def test_the_number_of_threads_does_not_matter():
    before = cv2.getNumThreads()
    try:
        cv2.setNumThreads(1)
        one = shots("rocket", replace(STILL, occluded=True, distractors=3, context=True), size=(192, 144))
        cv2.setNumThreads(4)
        four = shots("rocket", replace(STILL, occluded=True, distractors=3, context=True), size=(192, 144))
    finally:
        cv2.setNumThreads(before)
    assert all(np.array_equal(a.image, b.image) and a.box == b.box for a, b in zip(one, four, strict=True))


def test_exposure_is_lens_light_and_sensor():
    rng = np.random.default_rng(0)
    flat = np.full((6, 8, 3), 0.5, np.float32)
    light = Light(np.array([[1.2, 1.0, 0.4]]), 1.3, rng.uniform(0.7, 1.0, (1, 6, 8)).astype(np.float32))
    grain = rng.normal(0, 3, (6, 8, 3)).astype(np.float32)
    picture = scene._expose(flat, light, 0, grain, 0.5)
    lit = np.clip(0.5 * light.shade[0][..., None] * light.gain[0], 0, 1) ** 1.3 * 255 + grain
    assert picture.dtype == np.uint8
    assert np.abs(picture - lit).max() < 2.5  # rounded to 8 bits twice


def test_palettes_hold_in_every_hue():
    hues = []
    for seed in range(60):
        palette = draw_palette(np.random.default_rng(seed), near=False)
        assert palette.object.shape == (3, 3)
        assert palette.background.shape == (5, 3)
        assert np.all(np.diff(palette.background @ [0.2126, 0.7152, 0.0722]) > 0)
        pixel = (palette.object[:1, None] * 255).astype(np.uint8)
        hues.append(int(cv2.cvtColor(pixel, cv2.COLOR_RGB2HSV)[0, 0, 0]) * 2)
    assert np.histogram(hues, bins=6, range=(0, 360))[0].min() >= 3

import numpy as np
import pytest

from colocam.demo.figures import CONTEXTS
from colocam.demo.painting import paint_background, paint_foreground
from colocam.demo.textures import draw_palette

W, H, UNIT = 240, 160, 100
COLOURS = draw_palette(np.random.default_rng(0), near=False).background


def background(seed, contexts=()):
    return paint_background(np.random.default_rng(seed), COLOURS, W, H, unit=UNIT, contexts=contexts)


def test_backgrounds_are_opaque_textured_pictures_that_follow_the_seed():
    pictures = [background(seed) for seed in range(6)]
    for picture in pictures:
        assert picture.shape == (H, W, 4)
        assert picture.dtype == np.float32
        assert picture[..., :3].min() >= 0
        assert picture[..., :3].max() <= 1 + 1e-5
        assert picture[..., 3] == pytest.approx(1, abs=1e-5)
        detail = np.abs(np.diff(picture[..., 1], axis=1))
        assert detail.mean() > 0.004  # no flat area worth the name
        assert np.median(detail) > 0.001
    assert np.array_equal(pictures[0], background(0))
    assert all(np.abs(pictures[0] - other).mean() > 0.02 for other in pictures[1:])


@pytest.mark.parametrize("tag", CONTEXTS)
def test_a_context_changes_a_part_of_the_background(tag):
    shares = []
    for seed in range(3):
        changed = np.abs(background(seed, [tag]) - background(seed))[..., :3].max(-1)
        # Clutter is drawn after the patches and moves too, but covers little.
        shares.append((changed > 0.08).mean())
    assert 0.03 < np.mean(shares) < 0.6


def test_the_foreground_crosses_its_target_and_leaves_most_open():
    target, size = np.array([120.0, 80.0]), 50.0
    y, x = np.mgrid[:H, :W]
    near = np.hypot(x - target[0], y - target[1]) < size / 2
    covered, hidden = [], []
    for seed in range(40):
        layer = paint_foreground(np.random.default_rng(seed), COLOURS, W, H, target=target, size=size)
        assert layer.shape == (H, W, 4)
        assert np.all(layer[..., :3] <= layer[..., 3:] + 1e-4)
        covered.append((layer[..., 3] > 0.5).mean())
        hidden.append((layer[..., 3] > 0.5)[near].mean())
    assert min(hidden) > 0.05
    assert max(hidden) < 0.98
    assert 0.15 < np.mean(hidden) < 0.7
    assert max(covered) < 0.5

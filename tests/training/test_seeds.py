"""Seeds against brute force: regions by SciPy, samples by counting."""

import cv2
import numpy as np
import pytest
import torch

from colocam.config import Seeds
from colocam.training.seeds import BACKGROUND, FOREGROUND, UNKNOWN, sample_seeds, seed_noise
from colocam.utils.tensors import generator


def cone(side=24, at=(9, 14), reach=7.0):
    """A smooth hill on a low, rising plain: every value occurs once."""
    y, x = np.mgrid[:side, :side]
    hill = np.maximum(0, 1 - np.hypot(y - at[0], x - at[1]) / reach)
    plain = 0.05 * (y * side + x) / side**2
    cam = hill * 0.9 + plain
    return torch.from_numpy(((cam - cam.min()) / (cam.max() - cam.min()))[None].astype(np.float32))


def draw(cams, seed=0, **changes):
    defaults = {"region": "box", "blobs": "largest", "foreground": 10, "background": 12, "dilation": 1}
    return sample_seeds(cams, Seeds(**{**defaults, **changes}), *seed_noise(cams.shape, generator(seed, "seeds")))


def otsu_region(cam):
    levels = (255 * cam).astype(np.uint8)
    threshold, _ = cv2.threshold(levels, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    return levels > threshold


def test_counts_and_regions_without_growth():
    cams = cone()
    region = otsu_region(cams[0].numpy())
    rows, columns = np.nonzero(region)
    box = np.zeros_like(region)
    box[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1] = True
    for chosen, where in (("mask", region), ("box", box)):
        labels = draw(cams, region=chosen, foreground_top=0.4, background_bottom=0.3)[0].numpy()
        assert (labels == FOREGROUND).sum() == 10
        assert (labels == BACKGROUND).sum() == 12
        assert ((labels == FOREGROUND) | (labels == BACKGROUND) | (labels == UNKNOWN)).all()
        values = cams[0].numpy()
        best = np.sort(values[where])[::-1][: int(np.ceil(0.4 * where.sum()))]
        lowest = np.sort(values.ravel())[: int(np.ceil(0.3 * values.size))]
        assert np.isin(values[labels == FOREGROUND], best).all()
        assert where[labels == FOREGROUND].all()
        assert np.isin(values[labels == BACKGROUND], lowest).all()


def test_the_whole_allowed_region_is_drawn_if_fewer_pixels_than_asked_for():
    cams = cone()
    values = cams[0].numpy()
    region = otsu_region(values)
    labels = draw(cams, region="mask", foreground_top=1.0, foreground=10_000, background=10_000, background_bottom=0.25)
    assert ((labels[0].numpy() == FOREGROUND) == region).all()
    lowest = np.sort(values.ravel())[: values.size // 4]
    assert ((labels[0].numpy() == BACKGROUND) == np.isin(values, lowest)).all()


def test_background_from_outside_the_region():
    cams = cone()
    labels = draw(cams, region="mask", background_bottom=None, background=10_000, foreground_top=1.0, foreground=10_000)
    assert ((labels[0].numpy() == BACKGROUND) == ~otsu_region(cams[0].numpy())).all()


def test_only_the_largest_of_two_hills_or_both():
    cams = torch.maximum(cone(at=(6, 6), reach=6), cone(at=(18, 18), reach=4))
    for blob, hills in (("largest", 1), ("all", 2)):
        labels = draw(cams, region="mask", blobs=blob, foreground=1000, foreground_top=1.0)[0].numpy()
        assert cv2.connectedComponents((labels == FOREGROUND).astype(np.uint8), connectivity=4)[0] - 1 == hills
        assert (labels[:12, :12] == FOREGROUND).any()


def test_drawn_pixels_grow_to_squares_and_what_both_claim_is_unknown():
    cams = cone()
    apart = {"region": "mask", "foreground_top": 1.0, "background_bottom": None, "foreground": 30, "background": 200}
    points = draw(cams, **apart)[0].numpy()
    square = np.ones((3, 3), np.uint8)
    fore, back = (cv2.dilate((points == label).astype(np.uint8), square) > 0 for label in (FOREGROUND, BACKGROUND))
    expected = np.where(fore == back, UNKNOWN, np.where(fore, FOREGROUND, BACKGROUND))
    assert (draw(cams, **apart, dilation=3)[0].numpy() == expected).all()
    assert (fore & back).any()
    few = draw(cams, foreground=1, background=1, dilation=5)[0].numpy()
    assert (few == FOREGROUND).sum() == 25
    assert (few == BACKGROUND).sum() in {9, 12, 15, 20, 25}  # cut at the border of the frame


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
def test_a_constant_cam_yields_no_seeds_and_leaves_its_neighbors_alone(value):
    flat = torch.full((1, 24, 24), value)
    assert (draw(flat, background_bottom=None) == UNKNOWN).all()
    mixed = draw(torch.cat([flat, cone()]))
    assert (mixed[0] == UNKNOWN).all()
    assert (mixed[1] == FOREGROUND).sum() == 10


def test_foreground_is_drawn_in_proportion_to_the_cam_and_background_uniformly():
    """4,000 single draws: each pixel's count is binomial; five standard deviations are allowed."""
    cam = torch.zeros(4, 8)
    cam[1:3, 2:4] = torch.tensor([[0.7, 0.8], [0.9, 1.0]])
    draws = 4000
    cams = cam.expand(draws, -1, -1)
    labels = draw(cams, region="mask", foreground_top=1.0, foreground=1, background=1, background_bottom=None)
    fore = (labels == FOREGROUND).double().mean(0)
    expected = torch.where(cam > 0, cam / cam.sum(), 0.0).double()
    assert (abs(fore - expected) <= 5 * (expected * (1 - expected) / draws).sqrt()).all()
    back = (labels == BACKGROUND).double().mean(0)
    even = torch.where(cam > 0, 0.0, 1 / (cam == 0).sum()).double()
    assert (abs(back - even) <= 5 * (even * (1 - even) / draws).sqrt()).all()


def test_with_the_noise_given_each_frame_is_seeded_by_itself():
    cams = torch.cat([cone(at=(9, 14)), cone(at=(15, 6)), torch.zeros(1, 24, 24), cone(reach=4.0)])
    settings = Seeds(region="box", blobs="largest", foreground=10, background=12, dilation=3)
    noise = seed_noise(cams.shape, generator(0, "seeds"))
    assert all(one.shape == cams.shape and one.min() >= 0 and one.max() < 1 for one in noise)
    assert not torch.equal(*noise)
    together = sample_seeds(cams, settings, *noise)
    for frame in range(4):
        alone = sample_seeds(cams[frame, None], settings, *(one[frame, None] for one in noise))
        assert torch.equal(alone[0], together[frame])

"""Crops, flips and colour changes against numpy slicing, Pillow and plain formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from colocam.data.augment import Crops, draw_crops, jitter, whole
from colocam.randomness import generator


def sliced(picture, top, left, flip, size):
    """(C, R, R) → (C, size, size) by slicing."""
    cut = picture[:, top : top + size, left : left + size]
    return cut[:, :, ::-1] if flip else cut


@given(st.integers(0, 1000), st.integers(1, 9), st.integers(0, 4))
def test_frame_and_cam_are_cut_alike_and_as_numpy_cuts(seed, size, margin):
    side, batch = size + margin, 4
    rng = np.random.default_rng(seed)
    frames = rng.integers(0, 256, (batch, 3, side, side)).astype(np.uint8)
    cams = rng.random((batch, 1, side, side)).astype(np.float32)
    crops = draw_crops(batch, side, size, generator(seed, "crop"))
    for pictures in (frames, cams):
        found = crops.apply(torch.from_numpy(pictures)).numpy()
        assert found.dtype == pictures.dtype
        for i in range(batch):
            where = int(crops.top[i]), int(crops.left[i]), bool(crops.flip[i])
            assert (found[i] == sliced(pictures[i], *where, size)).all()


def test_each_crop_by_hand():
    picture = torch.arange(9).view(1, 1, 3, 3).expand(2, -1, -1, -1)
    crops = Crops(torch.tensor([1, 0]), torch.tensor([1, 0]), torch.tensor([False, True]), 2)
    assert crops.apply(picture)[:, 0].tolist() == [[[4, 5], [7, 8]], [[1, 0], [4, 3]]]


def test_crops_cover_every_place_evenly_and_flip_half():
    crops = draw_crops(9000, 12, 10, generator(0, "crop"))
    places = torch.bincount(3 * crops.top + crops.left, minlength=9)
    assert len(places) == 9
    assert (abs(places - 1000) < 5 * 1000**0.5).all()
    assert abs(int(crops.flip.sum()) - 4500) < 5 * (9000 / 4) ** 0.5
    again = draw_crops(9000, 12, 10, generator(0, "crop"))
    assert torch.equal(crops.top, again.top)
    assert torch.equal(crops.left, again.left)
    assert torch.equal(crops.flip, again.flip)


def test_whole_frames_are_shrunk_as_pillow_shrinks():
    frames = np.random.default_rng(0).integers(0, 256, (2, 3, 36, 36)).astype(np.uint8)
    found = whole(torch.from_numpy(frames), 32).numpy()
    for i in range(2):
        for channel in range(3):
            picture = Image.fromarray(frames[i, channel].astype(np.float32), mode="F")
            expected = np.asarray(picture.resize((32, 32), Image.Resampling.BILINEAR))
            np.testing.assert_allclose(found[i, channel], expected, atol=0.01)


def test_whole_frames_of_the_right_size_are_only_converted():
    frames = torch.randint(256, (2, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(whole(frames, 8), frames.float())
    assert whole(frames, 8).dtype == torch.float32


def test_no_jitter_is_no_change():
    frames = torch.randint(256, (2, 3, 8, 8), dtype=torch.uint8)
    assert jitter(frames, 0.0, generator(0, "j")) is frames


@pytest.mark.parametrize("strength", [0.1, 0.4])
def test_jitter_is_brightness_then_contrast_then_saturation(strength):
    frames = torch.randint(80, 130, (3, 3, 6, 6), generator=torch.Generator().manual_seed(0)).byte()
    found = jitter(frames, strength, generator(5, "j")).numpy()
    factors = 1 + strength * (2 * torch.rand((3, 3), generator=generator(5, "j")).numpy() - 1)
    assert abs(factors - 1).max() <= strength
    for i in range(3):
        picture = frames[i].numpy().astype(np.float64) * factors[0, i]
        picture = picture.mean() + factors[1, i] * (picture - picture.mean())
        grey = picture.mean(0)
        picture = grey + factors[2, i] * (picture - grey)
        np.testing.assert_allclose(found[i], picture.clip(0, 255), rtol=1e-4)


def test_jitter_stays_in_range_keeps_grey_grey_and_follows_its_generator():
    frames = torch.randint(256, (8, 3, 6, 6), generator=torch.Generator().manual_seed(0)).byte()
    strong = jitter(frames, 2.0, generator(1, "j"))
    assert float(strong.min()) >= 0
    assert float(strong.max()) <= 255
    assert torch.equal(strong, jitter(frames, 2.0, generator(1, "j")))
    assert not torch.equal(strong, jitter(frames, 2.0, generator(2, "j")))
    grey = jitter(frames[:, :1].expand(-1, 3, -1, -1), 0.5, generator(1, "j"))
    torch.testing.assert_close(grey, grey[:, :1].expand(-1, 3, -1, -1), rtol=1e-5, atol=1e-3)

"""Crops, flips, color changes and blur against numpy slicing, Pillow, OpenCV and plain formulas."""

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from colocam.data.augment import (
    blur,
    crop,
    jitter,
    resized_crop,
    sample_blurs,
    sample_crops,
    sample_jitter,
    sample_resized_crops,
    whole,
)
from colocam.utils.tensors import generator


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
    crops = sample_crops(batch, side, size, generator(seed, "crop"))
    for pictures in (frames, cams):
        found = crop(torch.from_numpy(pictures), crops, size).numpy()
        assert found.dtype == pictures.dtype
        for i in range(batch):
            assert (found[i] == sliced(pictures[i], *crops[i].tolist(), size)).all()


def test_crops_cover_every_place_evenly_and_flip_half():
    crops = sample_crops(9000, 12, 10, generator(0, "crop"))
    top, left, mirrored = crops.unbind(1)
    places = torch.bincount(3 * top + left, minlength=9)
    assert len(places) == 9
    assert (abs(places - 1000) < 5 * 1000**0.5).all()
    assert abs(int(mirrored.sum()) - 4500) < 5 * (9000 / 4) ** 0.5
    assert torch.equal(crops, sample_crops(9000, 12, 10, generator(0, "crop")))


def test_whole_frames_are_shrunk_as_pillow_shrinks():
    frames = np.random.default_rng(0).integers(0, 256, (2, 3, 36, 36)).astype(np.uint8)
    found = whole(torch.from_numpy(frames), 32).numpy()
    for i in range(2):
        for channel in range(3):
            picture = Image.fromarray(frames[i, channel].astype(np.float32), mode="F")
            expected = np.asarray(picture.resize((32, 32), Image.Resampling.BILINEAR))
            np.testing.assert_allclose(found[i, channel], expected, atol=0.01)


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.4])
def test_factors_lie_evenly_about_one_and_follow_their_generator(strength):
    factors = sample_jitter(1000, strength, generator(5, "j"))
    assert factors.shape == (1000, 3)
    assert abs(factors - 1).max() <= strength
    torch.testing.assert_close(factors.mean(0), torch.ones(3), rtol=0, atol=0.1 * strength)
    assert abs(factors - 1).max() >= 0.99 * strength
    assert torch.equal(factors, sample_jitter(1000, strength, generator(5, "j")))


def test_jitter_is_brightness_then_contrast_then_saturation():
    frames = torch.randint(80, 130, (3, 3, 6, 6), generator=torch.Generator().manual_seed(0)).byte()
    factors = np.array([[0.9, 1.3, 0.6], [1.1, 0.7, 1.4], [1.0, 1.0, 0.0]])
    found = jitter(frames, torch.from_numpy(factors).float()).numpy()
    for i, (brightness, contrast, saturation) in enumerate(factors):
        picture = frames[i].numpy().astype(np.float64) * brightness
        picture = picture.mean() + contrast * (picture - picture.mean())
        gray = picture.mean(0)
        picture = gray + saturation * (picture - gray)
        np.testing.assert_allclose(found[i], picture.clip(0, 255), rtol=1e-4)


def test_rectangles_have_the_asked_area_and_aspect_and_lie_in_the_frame():
    crops = sample_resized_crops(5000, (0.3, 1.0), 0.4, generator(0, "views"))
    left, top, width, height, mirrored = crops.unbind(1)
    for start, side in ((left, width), (top, height)):
        assert start.min() >= 0
        assert (start + side).max() <= 1 + 1e-6
    inside = (width < 1) & (height < 1)
    area, aspect = width * height, (width / height).log()
    assert 0.3 * np.exp(-0.2) < area.min() < 0.31
    assert area[inside].max() > 0.9
    assert aspect[inside].abs().max() <= 0.4 + 1e-5
    assert aspect[inside].min() < -0.35
    assert aspect[inside].max() > 0.35
    assert sorted(mirrored.unique().tolist()) == [-1, 1]
    assert abs(float(mirrored.mean())) < 5 / 5000**0.5
    assert torch.equal(crops, sample_resized_crops(5000, (0.3, 1.0), 0.4, generator(0, "views")))


@pytest.mark.parametrize("mirrored", [-1.0, 1.0])
def test_rectangles_are_resized_as_opencv_resizes(mirrored):
    frames = torch.randint(256, (1, 3, 24, 24), generator=generator(0, "frames"), dtype=torch.uint8)
    found = resized_crop(frames, torch.tensor([[0.25, 0.0, 0.5, 0.75, mirrored]]), 18)[0].permute(1, 2, 0).numpy()
    part = frames[0, :, 0:18, 6:18].permute(1, 2, 0).float().numpy()
    expected = cv2.resize(part, (18, 18), interpolation=cv2.INTER_LINEAR)[:, :: -int(mirrored)]
    np.testing.assert_allclose(found[1:-1, 1:-1], expected[1:-1, 1:-1], atol=0.05)


def test_blur_is_that_of_opencv_and_none_where_sigma_is_zero():
    frames = 255 * torch.rand((3, 3, 40, 40), generator=generator(1, "frames"))
    sigmas = torch.tensor([0.0, 0.03, 0.045])
    found = blur(frames, sigmas, 0.045).permute(0, 2, 3, 1).numpy()
    np.testing.assert_allclose(found[0], frames[0].permute(1, 2, 0), atol=1e-3)
    for index in (1, 2):
        image, sigma = frames[index].permute(1, 2, 0).numpy(), 40 * float(sigmas[index])
        expected = cv2.GaussianBlur(image, (13, 13), sigma, borderType=cv2.BORDER_REFLECT_101)
        np.testing.assert_allclose(found[index], expected, atol=0.01)


def test_half_of_the_blurs_are_none_and_the_others_even():
    sigmas = sample_blurs(4000, 0.02, generator(2, "blur"))
    assert abs(int((sigmas == 0).sum()) - 2000) < 5 * 1000**0.5
    others = sigmas[sigmas > 0]
    assert 0.0199 < others.max() <= 0.02
    assert float(others.mean()) == pytest.approx(0.01, abs=0.0005)

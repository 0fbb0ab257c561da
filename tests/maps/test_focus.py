"""Focus of maps on a class: against a direct sum in float64, its twin without torch, and what it is for."""

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from colocam.maps.postprocess import (
    WIDTH,
    array_classes_of,
    array_focus_of,
    arrays_postprocess,
    classes_of,
    focus_of,
    postprocess,
    with_color_mean,
)


def by_hand(activation, size):
    """One frame: a Gaussian mean around every place, then OpenCV's interpolation between the places' centers."""
    a = (activation - activation.min()) / (activation.max() - activation.min())
    y, x = ((np.arange(count) + 0.5) / count for count in activation.shape)
    low = np.empty(a.shape)
    for i, j in np.ndindex(a.shape):
        weights = np.exp(-((y[:, None] - y[i]) ** 2 + (x[None] - x[j]) ** 2) / (2 * WIDTH**2))
        low[i, j] = (weights * a).sum() / weights.sum()
    return cv2.resize(low / low.max(), size[::-1], interpolation=cv2.INTER_LINEAR)


@pytest.mark.parametrize(("places", "size"), [((28, 28), (56, 56)), ((12, 9), (30, 41))])
def test_focus_is_the_gaussian_mean_at_the_size_of_the_map(places, size):
    activations = np.random.default_rng(0).normal(3, 5, (2, *places)).astype(np.float32)
    want = np.stack([by_hand(one.astype(float), size) for one in activations])
    np.testing.assert_allclose(focus_of(torch.from_numpy(activations), size).numpy(), want, atol=1e-5)
    np.testing.assert_allclose(array_focus_of(activations, size), want, atol=1e-5)
    np.testing.assert_allclose(focus_of(torch.from_numpy(activations), size, 0.7).numpy(), want**0.7, atol=1e-5)


def test_activations_that_do_not_say_where_change_nothing():
    flat = np.stack([np.zeros((6, 6)), np.full((6, 6), 2.5)]).astype(np.float32)
    assert (focus_of(torch.from_numpy(flat), (9, 9)) == 1).all()
    assert (array_focus_of(flat, (9, 9)) == 1).all()


@given(seed=st.integers(0, 2**31), levels=st.booleans(), colors=st.booleans(), focus=st.sampled_from([0, 0.7, 1]))
def test_the_twins_agree_and_keep_each_maps_maximum(seed, levels, colors, focus):
    rng = np.random.default_rng(seed)
    pictures = rng.integers(0, 256, (3, 16, 16, 3)).astype(np.uint8)
    maps = rng.random((3, 16, 16), np.float32)
    given_maps = (255 * maps).astype(np.uint8) if levels else maps
    ids = np.array([0, 1, 0]) if colors else None
    activations = rng.random((3, 4, 4), np.float32) if focus else None
    found = arrays_postprocess(pictures, given_maps, ids, activations, focus)
    if not colors and not focus:
        assert found is given_maps
        return
    tensors = [None if x is None else torch.from_numpy(x) for x in (ids, activations)]
    s = torch.from_numpy(given_maps).float() / (255 if levels else 1)
    want = postprocess(torch.from_numpy(pictures).permute(0, 3, 1, 2), s, *tensors, focus).numpy()
    np.testing.assert_allclose(found, want, atol=2e-3)
    if focus:
        np.testing.assert_allclose(want.max((1, 2)), s.amax((1, 2)).numpy(), rtol=1e-5)


def test_the_color_mean_stands_between_the_two_products():
    rng = np.random.default_rng(1)
    frames = torch.from_numpy(rng.integers(0, 256, (2, 3, 14, 14)).astype(np.uint8))
    maps, activations = torch.rand(2, 14, 14), torch.rand(2, 7, 7)
    ids = torch.zeros(2, dtype=torch.int64)
    focus = focus_of(activations, (14, 14))
    want = focus * with_color_mean(frames, focus * maps, ids)
    found = postprocess(frames, maps, ids, activations)
    for one, other in zip(found, want, strict=True):
        torch.testing.assert_close(one / one.max(), other / other.max())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.sampled_from([None, 2]), st.integers(0, 2**31))
def test_a_shot_has_one_class_the_likeliest_of_its_frames_together(shots, tag, seed):
    ids = np.unique(shots, return_inverse=True)[1]
    logits = np.random.default_rng(seed).normal(size=(len(ids), 4)).astype(np.float32)
    want = [logits[ids == number].sum(0).argmax() if tag is None else tag for number in ids]
    assert array_classes_of(logits, ids, tag).tolist() == want
    assert classes_of(torch.from_numpy(logits), torch.from_numpy(ids), tag).tolist() == want

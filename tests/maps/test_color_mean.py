"""The color mean of maps against a dense sum in float64, its twin without torch, and what it is for."""

import numpy as np
import pytest
import torch

from colocam.errors import ColocamError
from colocam.losses.affinity.basis import color_basis
from colocam.losses.affinity.cpu import ColorSequence
from colocam.maps.postprocess import SHARE, SIGMA, TOLERANCE, arrays_with_color_mean, with_color_mean


def scene(frames, side, seed):
    """Frames of few colors with noise, and random maps."""
    rng = np.random.default_rng(seed)
    palette = rng.integers(0, 256, (5, 3))
    pictures = palette[rng.integers(0, 5, (frames, side, side))] + rng.integers(-12, 13, (frames, side, side, 3))
    return pictures.clip(0, 255).astype(np.uint8), rng.random((frames, side, side), np.float32)


def by_hand(pictures, maps, sequences):
    out = np.empty(maps.shape)
    for number in set(sequences.tolist()):
        mine = sequences == number
        colors, s = pictures[mine].reshape(-1, 3).astype(float), maps[mine].reshape(-1).astype(float)
        weights = np.exp(-((colors[:, None] - colors[None]) ** 2).sum(-1) / (2 * SIGMA**2))
        out[mine] = ((1 - SHARE) * s + SHARE * (weights @ s) / weights.sum(1)).reshape(-1, *maps.shape[1:])
    return out


def as_tensors(pictures, maps, sequences):
    return (torch.from_numpy(pictures).permute(0, 3, 1, 2), torch.from_numpy(maps), torch.from_numpy(sequences))


@pytest.mark.parametrize("sequences", [[0, 0, 0, 0], [0, 1, 2, 3], [1, 0, 0, 1]])
def test_it_is_the_dense_mean_over_each_sequence(sequences):
    pictures, maps = scene(4, 12, seed=len(set(sequences)))
    ids = np.array(sequences)
    want = by_hand(pictures, maps, ids)
    np.testing.assert_allclose(with_color_mean(*as_tensors(pictures, maps, ids)).numpy(), want, atol=2e-3)
    np.testing.assert_allclose(arrays_with_color_mean(pictures, maps, ids), want, atol=2e-3)
    assert np.abs(want - maps).max() > 0.1


def test_float_frames_and_half_maps_will_do():
    pictures, maps = scene(2, 10, seed=7)
    frames, tensor, ids = as_tensors(pictures, maps, np.zeros(2, np.int64))
    want = with_color_mean(frames, tensor, ids)
    assert with_color_mean(frames.float(), tensor, ids).dtype == torch.float32
    torch.testing.assert_close(with_color_mean(frames.float(), tensor, ids), want)
    torch.testing.assert_close(with_color_mean(frames, tensor.half(), ids), want, atol=2e-3, rtol=0)


@pytest.mark.parametrize(
    ("maps", "sequences"),
    [((2, 3, 3), (2,)), ((2, 0, 0), (2,)), ((2, 12), (2,)), ((1, 12, 12), (1,)), ((2, 12, 12), (3,))],
)
def test_shapes_that_do_not_fit_never_reach_compiled_code(maps, sequences):
    frames, given, ids = np.zeros((2, 12, 12, 3), np.uint8), np.zeros(maps, np.float32), np.zeros(sequences, np.int64)
    with pytest.raises(ColocamError, match=r"^the color mean needs frames \(B, H, W, 3\)"):
        arrays_with_color_mean(frames, given, ids)
    with pytest.raises(ColocamError, match=r"^the color mean needs frames \(B, H, W, 3\)"):
        with_color_mean(*as_tensors(frames, given, ids))


def test_the_pixels_of_a_sequence_are_checked_at_the_door():
    rgb, psi = np.zeros((2, 3, 9), np.float32), np.ones((1, 9), np.float32)
    basis = color_basis(SIGMA, TOLERANCE)
    with pytest.raises(ColocamError, match=r"^rgb must be \(F, 3, P\) and psi \(R, P\)"):
        ColorSequence(rgb, psi[:, :4], basis)
    sequence = ColorSequence(rgb, psi, basis)
    with pytest.raises(ColocamError, match=r"^values must be \(2, C, 9\)"):
        sequence.spectrum(np.zeros((2, 1, 4), np.float32))
    with pytest.raises(ColocamError, match=r"^spectrum must have rank"):
        sequence.product(sequence.spectrum(np.zeros((2, 1, 9), np.float32))[1:])

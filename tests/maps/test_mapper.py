"""Maps of many frames: those of the network, completed by the colors of the frame or of the window."""

import numpy as np
import pytest
import torch

from colocam.boxes import to_8bit
from colocam.data.batches import spread_samples
from colocam.data.frame_cache import ROW, CachedClip
from colocam.maps.mapper import Mapper, map_batches
from colocam.maps.postprocess import with_color_mean
from colocam.types import Clip

SIZE = 32
CPU = torch.device("cpu")


def place(frames, _):
    """A map that follows no color: brighter to the right, whatever is there."""
    return torch.linspace(0, 1, frames.shape[-1]).expand(len(frames), *frames.shape[2:]), None


RED, GREEN, BLUE = (200, 30, 30), (30, 200, 30), (30, 30, 200)


def video(folder, *shots):
    """A cached clip of shots (left color, right color, frames); a square moves through each."""
    frames = []
    for left, right, count in shots:
        for t in range(count):
            frame = np.full((SIZE, SIZE, 3), left, np.uint8)
            frame[:, SIZE // 2 :] = right
            frame[8:16, t % 20 : t % 20 + 8] = left
            frames.append(frame)
    file = folder / f"{len(frames)}.raw"
    np.stack(frames).tofile(file)
    clip = Clip(file.name, "cat", "test", file, file.name)
    return CachedClip(clip, file, SIZE, np.zeros(len(frames), ROW))


@pytest.mark.parametrize(
    ("shots", "windows"),
    [
        ([(RED, GREEN, 70)], [32, 32, 6]),
        ([(RED, GREEN, 32)], [32]),
        ([(RED, GREEN, 9), (GREEN, RED, 33)], [9, 32, 1]),
        ([(RED, GREEN, 5), (GREEN, RED, 6), (BLUE, GREEN, 7)], [5, 6, 7]),
    ],
)
def test_the_color_mean_of_a_clip_is_that_of_windows_within_its_shots(tmp_path, shots, windows):
    """Against windows counted by hand: at most 32 frames, from the beginning of each shot."""
    clips = [video(tmp_path, *shots), video(tmp_path, (GREEN, RED, 3))]
    samples = spread_samples(clips, ["cat"], 100)
    found = np.concatenate(list(map_batches(Mapper(place, "clip"), samples, SIZE, CPU))).astype(int)
    ((frames, classes),) = samples.batches(SIZE, CPU, batch=1000)
    lengths = torch.tensor([*windows, 3])

    def completed(ids):
        return to_8bit(with_color_mean(frames, place(frames, classes)[0], ids)).numpy().astype(int)

    ids = torch.arange(len(lengths)).repeat_interleave(lengths)
    assert np.abs(found - completed(ids)).max() <= 1
    assert np.abs(found - completed(torch.zeros_like(ids))).max() > 1

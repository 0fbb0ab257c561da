"""Maps of many frames: those of the network, a clip's frames together, completed by colour where asked."""

import numpy as np
import pytest
import torch

from colocam.boxes import to_8bit
from colocam.data.samples import spread_samples
from colocam.maps.color_mean import with_color_mean
from colocam.maps.mapper import Mapper, map_batches
from colocam.run import open_run

SIZE = 32
CPU = torch.device("cpu")


@pytest.fixture
def samples(trained):
    run = open_run(trained, "cpu")
    return spread_samples(run.clips("train"), run.catalogue.tags, 5)


def brightness(frames, classes):
    """A stand-in for a network: each frame by itself, and its class."""
    return (frames.mean(1) / 255 + classes[:, None, None] / 10).clamp(0, 1), None


@pytest.mark.parametrize("color_mean", ["off", "frame", "clip"])
def test_against_clip_by_clip(samples, color_mean):
    found = np.concatenate(list(map_batches(Mapper(brightness, color_mean), samples, SIZE, CPU)))
    (frames,), (classes,) = zip(*samples.batches(SIZE, CPU, batch=10_000), strict=True)
    want, _ = brightness(frames, classes)
    if color_mean != "off":
        for number in samples.indices.clips.unique():
            mine = (samples.indices.clips == number).nonzero()[:, 0]
            ids = torch.zeros_like(mine) if color_mean == "clip" else torch.arange(len(mine))
            want[mine] = with_color_mean(frames[mine], brightness(frames, classes)[0][mine], ids)
    assert len(found) == len(samples) > 0
    # a level may be rounded down or not
    assert np.abs(found.astype(int) - to_8bit(want).numpy().astype(int)).max() <= 1


def place(frames, _):
    """A map that follows no colour: brighter to the right, whatever is there."""
    return torch.linspace(0, 1, frames.shape[-1]).expand(len(frames), *frames.shape[2:]), None


def test_colours_of_the_clip_make_a_difference(samples):
    plain, frame, clip = (
        np.concatenate(list(map_batches(Mapper(place, mode), samples, SIZE, CPU))).astype(int)
        for mode in ("off", "frame", "clip")
    )
    assert np.abs(plain - frame).max() > 10
    assert np.abs(frame - clip).max() > 10

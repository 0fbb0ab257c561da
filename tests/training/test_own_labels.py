"""Labels from a model's own boxes: what they hold, files of an interrupted run, and a second look at small objects."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from colocam.maps.mapper import Mapper
from colocam.training import own_labels as module
from colocam.training.own_labels import CORE, FOREGROUND, SIDE, UNKNOWN, box_labels


def test_labels_are_background_outside_the_box_and_foreground_in_its_core():
    rng = np.random.default_rng(0)
    maps = rng.integers(0, 256, (3, SIDE, SIDE), np.uint8)  # labels of this side need no resizing
    boxes = np.array([[10, 20, 60, 90], [0, 0, SIDE - 1, SIDE - 1], [5, 5, 9, 9]], np.float64)
    labels = box_labels(maps, boxes, np.array([True, True, False]))
    for frame in range(2):
        x1, y1, x2, y2 = boxes[frame].astype(int)
        for y, x in rng.integers(0, SIDE, (400, 2)):
            inside = x1 <= x <= x2 and y1 <= y <= y2
            core = maps[frame, y, x] > CORE * maps[frame].max()
            assert labels[frame, y, x] == ((FOREGROUND if core else UNKNOWN) if inside else 0)
    assert (labels[2] == UNKNOWN).all()


def test_labels_that_are_begun_again_count_as_not_done(tmp_path, monkeypatch):
    """Killed after ``labels.npy`` was created anew: ``labels.json`` of the time before must not vouch for its zeros."""
    clips, killed = [range(3), range(2)], [True]

    def labels(*_):
        if killed:
            raise KeyboardInterrupt
        return np.full((5, SIDE, SIDE), FOREGROUND, np.uint8)

    monkeypatch.setattr(module, "spread_samples", lambda clips, *_, **__: [0] * sum(map(len, clips)))
    monkeypatch.setattr(module, "_labels", labels)
    (tmp_path / "labels.json").write_text('{"parts": 2}')  # labels.npy is lost, or was damaged
    model = SimpleNamespace(card=SimpleNamespace(tags=("cat",)))
    arguments = model, clips, tmp_path, torch.device("cpu")
    with pytest.raises(KeyboardInterrupt):
        module.own_labels(*arguments)
    assert np.load(tmp_path / "labels.npy").shape == (5, SIDE, SIDE)
    killed.clear()
    module.own_labels(*arguments)
    assert (np.load(tmp_path / "labels.npy") == FOREGROUND).all()


CELLS, SIZE = 8, 224


class Clip:
    """A cached clip of a cat."""

    clip = SimpleNamespace(tag="cat")

    def __init__(self, frames):
        self.frames = frames

    def __len__(self):
        return len(self.frames)


def by_coarse_cells(frames, _):
    """Maps of an eye that sees whether one of its 8 × 8 cells has something bright in it."""
    bright = (frames.mean(1, keepdim=True) > 127).float()
    return F.interpolate(F.adaptive_max_pool2d(bright, CELLS), SIZE, mode="nearest")[:, 0], None


@pytest.mark.parametrize(("half", "helps"), [(10, True), (70, False)])
def test_another_look_at_a_small_object_gives_tighter_labels(half, helps, tmp_path, monkeypatch):
    """A square too large to be looked at again has the labels of one look."""
    frames = np.zeros((2, SIZE, SIZE, 3), np.uint8)
    for frame, middle in zip(frames, (100, 120), strict=True):
        frame[middle - half : middle + half, middle - half : middle + half] = 255
    net = torch.nn.Identity()
    net.classifier = SimpleNamespace(logits=lambda images: torch.tensor([[9.0, 0.0]]).repeat(len(images), 1))
    card = SimpleNamespace(
        tags=("cat", "dog"), size=SIZE, threshold=0.5, chooser="largest", color_mean="off", prior_decoder=None
    )
    monkeypatch.setattr(module, "model_mapper", lambda _: Mapper(by_coarse_cells))
    truth = F.interpolate(torch.from_numpy(frames[..., 0])[:, None].float(), SIDE, mode="area")[:, 0].numpy() > 127
    model, cpu, extra = SimpleNamespace(net=net, card=card), torch.device("cpu"), []
    for looks in (1, 2):
        (folder := tmp_path / str(looks)).mkdir()
        module.own_labels(model, [Clip(frames)], folder, cpu, looks=looks)
        stored = np.load(folder / "labels.npy")
        assert (stored[truth] == FOREGROUND).all()  # a look never loses the object
        extra.append(int((stored[~truth] > 0).sum()))
    assert (extra[1] < extra[0] / 3) if helps else (extra[1] == extra[0])

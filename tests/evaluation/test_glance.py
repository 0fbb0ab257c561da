"""How many of a few frames are right."""

import numpy as np
import pytest
import torch

from colocam.evaluation import glance
from colocam.run import open_run


def test_boxes_and_classes_of_a_run_are_counted(training, collection, monkeypatch):
    """Where maps show the true box in every second frame, half of the boxes are right; classes are the network's."""
    run, shown = open_run(training / "run"), []

    def drawn(_, samples, size, device):  # noqa: ARG001 - as map_batches takes it
        side = run.config.frames.map_side
        true = glance.scaled_boxes(samples, glance.read_truth(collection.truth), side)
        maps = np.zeros((len(samples), side, side), np.uint8)
        for row, ((x1, y1, x2, y2), *_) in enumerate(true):
            if row % 2 == 0:
                maps[row, round(y1) : round(y2), round(x1) : round(x2)] = 255
        shown.append(samples)
        yield maps

    monkeypatch.setattr(glance, "map_batches", drawn)
    monkeypatch.setattr(glance, "boxes_of_shots", lambda maps, *_: extents(maps))
    found = glance.right_in(training / "run", collection.truth)
    (samples,) = shown
    classes = samples.classes.numpy()
    even = np.arange(len(classes)) % 2 == 0
    assert found.frames == len(classes)
    assert found.boxes == pytest.approx(100 * np.mean([even[classes == tag].mean() for tag in set(classes)]))
    with torch.inference_mode():
        logits = [run.classifier().logits(frames) for frames, _ in samples.batches(run.config.frames.crop, run.device)]
    right = torch.cat(logits).argmax(1).numpy() == classes
    assert found.classes == pytest.approx(100 * np.mean([right[classes == tag].mean() for tag in set(classes)]))


def extents(maps):
    """The extent of each map, by another way; none of an empty one."""
    boxes, found = np.zeros((len(maps), 4)), maps.any((1, 2))
    for row in np.flatnonzero(found):
        y, x = np.nonzero(maps[row])
        boxes[row] = x.min(), y.min(), x.max() + 1, y.max() + 1
    return boxes, found

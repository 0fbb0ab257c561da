"""The crop that the class is read from: its box against a search cell by cell, its pixels against closed forms."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from colocam.config import load_config
from colocam.models import Classifier, LocalizerNet
from colocam.models.localizer_net import LEAST_SIDE, SIDE, THRESHOLD, crop_boxes, expanded, object_boxes
from tests.helpers.batch_norms import unsettle


def searched(weights: np.ndarray) -> list[float]:
    """The box of all cells that steps of at most two cells reach from the maximum, by a search."""
    allowed = weights >= THRESHOLD * weights.max()
    todo = [tuple(cell) for cell in np.argwhere(weights == weights.max())]
    reached = set(todo)
    while todo:
        row, column = todo.pop()
        for r in range(max(0, row - 2), min(SIDE, row + 3)):
            for c in range(max(0, column - 2), min(SIDE, column + 3)):
                if allowed[r, c] and (r, c) not in reached:
                    reached.add((r, c))
                    todo.append((r, c))
    rows, columns = np.array(sorted(reached)).T
    return [columns.min() / SIDE, rows.min() / SIDE, (columns.max() + 1) / SIDE, (rows.max() + 1) / SIDE]


def test_the_box_encloses_the_region_of_the_maximum():
    rng = np.random.default_rng(0)
    maps = np.zeros((4, SIDE, SIDE), np.float32)
    for index in range(4):  # several blobs, some of which touch
        for _ in range(9):
            y, x = rng.integers(0, SIDE - 12, 2)
            height, width = rng.integers(3, 12, 2)
            maps[index, y : y + height, x : x + width] = np.maximum(
                maps[index, y : y + height, x : x + width], rng.uniform(0.3, 1)
            )
    constant = object_boxes(torch.from_numpy(maps), torch.ones(4, 7, 7))
    assert constant.tolist() == [[0, 0, 1, 1]] * 4  # a CAM without a position: the whole frame
    peaked = torch.zeros(4, 7, 7)
    peaked[:, 3, 3] = 1
    smooth = peaked[:, None]
    for _ in range(2):
        smooth = F.avg_pool2d(smooth, 3, 1, 1, count_include_pad=False)
    weight = F.interpolate(smooth, size=(SIDE, SIDE), mode="bilinear").square()[:, 0].numpy()
    wanted = [searched(one) for one in maps * weight]
    np.testing.assert_allclose(object_boxes(torch.from_numpy(maps), peaked), wanted, atol=1e-6)
    assert max(box[2] - box[0] for box in wanted) < 1


def test_maps_of_any_side_are_averaged():
    maps = torch.rand(2, SIDE, SIDE)
    peaked = torch.rand(2, 5, 5)
    large = maps.repeat_interleave(4, 1).repeat_interleave(4, 2)
    torch.testing.assert_close(object_boxes(large, peaked), object_boxes(maps, peaked))


def test_expanded_boxes_stay_in_the_frame():
    boxes = torch.tensor([[0.4, 0.4, 0.6, 0.6], [0.0, 0.5, 0.1, 1.0], [0.0, 0.0, 1.0, 1.0], [0.5, 0.5, 0.51, 0.51]])
    larger = expanded(boxes, 2.0)
    wanted = [[0.3, 0.3, 0.7, 0.7], [0.0, 0.0, 0.2, 1.0], [0, 0, 1, 1], [0.425, 0.425, 0.585, 0.585]]
    torch.testing.assert_close(larger, torch.tensor(wanted))
    assert pytest.approx(LEAST_SIDE) == float(larger[3, 2] - larger[3, 0])


def test_crops_are_means_of_pixels():
    frames = torch.randint(0, 256, (2, 3, 16, 16)).float()
    whole = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(2, 1)
    torch.testing.assert_close(crop_boxes(frames, whole, 8), F.avg_pool2d(frames, 2))
    torch.testing.assert_close(crop_boxes(frames, whole[:, [2, 1, 0, 3]], 8), F.avg_pool2d(frames, 2).flip(3))
    corner = torch.tensor([[0.5, 0.0, 1.0, 0.5]]).repeat(2, 1)
    torch.testing.assert_close(crop_boxes(frames, corner, 4), F.avg_pool2d(frames[:, :, :8, 8:], 2))


def test_the_class_is_read_from_the_object_alone(tiny):
    """What is far from the object does not change the logits of the crop head, but those of the whole frame."""
    torch.manual_seed(0)
    config = load_config(overrides=tiny)
    net = unsettle(LocalizerNet(Classifier(config.backbone, 3), (8, 8, 8, 8), crop_head=True)).eval()
    frames = torch.randint(0, 256, (2, 3, 64, 64)).float()
    boxes = torch.tensor([[0.0, 0.0, 0.5, 0.5]]).repeat(2, 1)
    changed = frames.clone()
    changed[:, :, 40:, 40:] = 0
    with torch.inference_mode():
        torch.testing.assert_close(net.crop_features(changed, boxes), net.crop_features(frames, boxes))
        assert not torch.allclose(net.classifier.logits(changed), net.classifier.logits(frames))
        seen = net(frames)
        coarse = net.classifier.read(net.classifier.encoder(frames)[-1]).argmax(1)
        found = net.boxes(seen.map_logits, seen.activations, coarse)
        assert net.crop_head is not None
        torch.testing.assert_close(seen.class_logits, net.crop_head(net.crop_features(frames, expanded(found))))

"""Several objects: where the prompts are, which masks are the same, and which are kept."""

import cv2
import numpy as np
import pytest
import torch
from scipy import ndimage

from colocam.boxes.iou import iou
from colocam.segment.objects import AROUND, CHUNK, POINTS, _heat, distinct, find_objects, suppress
from colocam.segment.segmenter import Masks

GRAY = (90, 90, 90)
COLORS = [(250, 20, 20), (20, 250, 20), (20, 20, 250)]


class FloodSegmenter:
    """The mask of a point is the region of its color; two more masks are the whole square, and an unsure one."""

    name, side = "Flood", 128

    def __init__(self, *, tensors=False):
        self.tensors = tensors
        self.prompts = 0

    def embed(self, images):
        return images

    def masks(self, embedded, prompts):
        frames, count = prompts.points.shape[:2]
        assert count == CHUNK
        logits = np.full((frames, count, 3, 64, 64), -4.0, np.float32)
        quality = np.tile(np.float32([0.9, 0.6, 0.4]), (frames, count, 1))
        for frame, prompt in np.ndindex(frames, count):
            if prompts.labels[frame, prompt, 0] != 1:
                continue
            self.prompts += 1
            x, y = np.rint(prompts.points[frame, prompt, 0]).astype(int).tolist()
            mask = np.zeros((130, 130), np.uint8)
            cv2.floodFill(embedded[frame].copy(), mask, (x, y), 0, (30,) * 3, (30,) * 3, cv2.FLOODFILL_MASK_ONLY)
            small = cv2.resize(mask[1:-1, 1:-1].astype(np.float32), (64, 64), interpolation=cv2.INTER_AREA)
            logits[frame, prompt, 0] = 8 * small - 4
            logits[frame, prompt, 1:] = 4
        parts = (torch.from_numpy(logits), torch.from_numpy(quality)) if self.tensors else (logits, quality)
        return Masks(*parts)


def scene(size, *boxes, heat=(255, 255, 255)):
    """A picture of colored rectangles on gray, and its map of 32 × 32, as warm as ``heat`` on each of them."""
    width, height = size
    picture, level = np.full((height, width, 3), GRAY, np.uint8), np.zeros((height, width), np.uint8)
    for (x1, y1, x2, y2), color, warm in zip(boxes, COLORS, heat, strict=False):
        picture[y1:y2, x1:x2], level[y1:y2, x1:x2] = color, warm
    return picture, cv2.resize(level, (32, 32), interpolation=cv2.INTER_AREA)


SCENES = [
    scene((128, 96), (8, 8, 40, 40), (40, 8, 72, 40), (80, 56, 120, 88), heat=(255, 200, 150)),  # two of them touch
    scene((60, 120), (10, 70, 50, 110)),
    scene((64, 64)),
    scene((200, 100), (20, 20, 60, 80), (120, 10, 180, 60)),
]
BOXES = [
    [(8, 8, 40, 40), (40, 8, 72, 40), (80, 56, 120, 88)],
    [(10, 70, 50, 110)],
    [],
    [(20, 20, 60, 80), (120, 10, 180, 60)],
]


@pytest.mark.parametrize("tensors", [False, True], ids=["arrays", "tensors"])
def test_every_object_of_every_frame_is_found_once(tensors):
    images, levels = zip(*SCENES, strict=True)
    found = find_objects(FloodSegmenter(tensors=tensors), images, np.stack(levels))
    for image, objects, true in zip(images, found, BOXES, strict=True):
        assert len(objects) == len(true)
        assert [one.score for one in objects] == sorted((one.score for one in objects), reverse=True)
        for box in true:
            (own,) = [one for one in objects if iou(one.box, np.array(box)) > 0.8]
            mask = own.in_frame(*image.shape[:2])
            assert mask.shape == image.shape[:2]
            x1, y1, x2, y2 = box
            filled = np.zeros_like(mask)
            filled[y1:y2, x1:x2] = True
            assert (mask & filled).sum() > 0.85 * (mask | filled).sum()


def test_a_frame_does_not_depend_on_its_neighbors():
    images, levels = zip(*(SCENES * 3), strict=True)  # more than a batch
    together = find_objects(FloodSegmenter(), images, np.stack(levels))
    for image, level, expected in zip(images, levels, together, strict=True):
        (alone,) = find_objects(FloodSegmenter(), [image], level[None])
        assert [(one.box.tolist(), one.score) for one in alone] == [(one.box.tolist(), one.score) for one in expected]
        assert all((a.pixels == b.pixels).all() for a, b in zip(alone, expected, strict=True))


def test_what_the_map_does_not_show_is_no_object():
    picture, level = scene((128, 96), (8, 8, 40, 40), (80, 56, 120, 88), heat=(255, 0))
    (found,) = find_objects(FloodSegmenter(), [picture], level[None])
    assert [iou(one.box, np.array([8, 8, 40, 40])) > 0.8 for one in found] == [True]
    segmenter = FloodSegmenter()
    assert find_objects(segmenter, [picture], np.zeros((1, 32, 32), np.uint8)) == [[]]
    assert segmenter.prompts == 0
    find_objects(segmenter, [picture], np.full((1, 32, 32), 255, np.uint8))
    assert 0 < segmenter.prompts <= POINTS


@pytest.mark.parametrize("corner", [(20, 12), (0, 0), (38, 24), (44, 30)], ids=str)
def test_the_heat_inside_a_mask_and_around_it_within_the_frame(corner):
    """Against SciPy's dilation; the frame covers 58 × 40 of the 64 × 64 cells."""
    x, y = corner
    mask, heat = np.zeros((64, 64), np.uint8), np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    cv2.ellipse(mask, (x + 7, y + 5), (7, 5), 0, 0, 360, 1, -1)
    mask[40:] = mask[:, 58:] = 0
    reach = round(AROUND * 64)
    grown = ndimage.binary_dilation(mask, np.ones((2 * reach + 1,) * 2))
    grown[40:] = grown[:, 58:] = False
    around = grown & (mask == 0)
    expected = heat[mask > 0].mean() / 255, heat[around].mean() / 255
    assert _heat(mask, heat, np.array([57.4, 39.5])) == pytest.approx(expected)


def test_the_class_decides_among_what_the_map_shows():
    """Shown are the masks at the picture's own resolution or below, with the share of the class in their color."""
    picture, level = SCENES[0]

    def green(image, masks):
        small = cv2.resize(image, masks.shape[:0:-1], interpolation=cv2.INTER_AREA)
        return np.array([small[mask > 0].mean(0)[1] / 255 if mask.mean() < 0.5 else 0.0 for mask in masks])

    (plain,) = find_objects(FloodSegmenter(), [picture], level[None])
    (found,) = find_objects(FloodSegmenter(), [picture], level[None], green)
    first = np.array(BOXES[0][1])
    assert iou(plain[0].box, first) < 0.5 < iou(found[0].box, first)
    own = next(one for one in plain if iou(one.box, first) > 0.5)
    assert found[0].score == pytest.approx(own.score * (250 / 255) ** 0.5, rel=0.03)
    (none,) = find_objects(FloodSegmenter(), [picture], level[None], lambda _, masks: np.zeros(len(masks)))
    assert none == []


def masks_of(boxes, side=40):
    masks = np.zeros((len(boxes), side, side), bool)
    for mask, (x1, y1, x2, y2) in zip(masks, boxes, strict=True):
        mask[y1:y2, x1:x2] = True
    flat = masks.reshape(len(masks), -1).astype(float)
    return flat @ flat.T


def test_equal_masks_are_one_with_as_many_votes():
    boxes = [(0, 0, 10, 10), (20, 20, 30, 30), (0, 0, 10, 11), (0, 0, 11, 10), (0, 0, 20, 20)]
    found = distinct(masks_of(boxes), np.array([0.6, 0.5, 0.9, 0.7, 0.8]))
    assert dict(zip(found.kept.tolist(), found.votes.tolist(), strict=True)) == {2: 3.0, 4: 1.0, 1: 1.0}
    assert found.quality.tolist() == [0.9, 0.8, 0.5]
    np.testing.assert_array_equal(np.diagonal(found.common), [110, 400, 100])


def test_parts_and_faint_masks_are_suppressed_but_never_the_best():
    common = masks_of([(0, 0, 20, 20), (0, 0, 10, 10), (15, 0, 35, 20), (0, 30, 5, 35), (30, 30, 40, 40)])
    assert suppress(common, np.array([0.5, 0.4, 0.3, 0.019, 0.021])) == [0, 2, 4]
    assert suppress(common, np.array([0.3, 0.5, 0.2, 0.0, 0.0])) == [1, 2]  # the whole loses against its better part
    assert suppress(common, np.array([0.0, 0.01, 0.02, 0.0, 0.0])) == [2]
    assert suppress(common, np.zeros(5)) == []

"""From heat maps to one mask for each frame."""

import numpy as np
import pytest
import torch

from colocam.boxes.iou import iou
from colocam.segment import load_segmenter
from colocam.segment import refine as module
from colocam.segment.refine import extents, mask_candidates, refine
from colocam.segment.segmenter import BATCH, Masks


@pytest.fixture(scope="module")
def box_segmenter(box_segmenter_files):
    return load_segmenter(box_segmenter_files)


class Changed:
    """A segmenter whose masks a function changes, or replaces by what it returns."""

    def __init__(self, segmenter, change):
        self.side, self.embed = segmenter.side, segmenter.embed
        self._segmenter, self._change = segmenter, change

    def masks(self, embedded, prompts):
        found = self._segmenter.masks(embedded, prompts)
        return self._change(found) or found


def scene(size, shares):
    """A frame of (width, height), a map of 56 × 56 that is certain inside a box, and that box in the frame."""
    corners = np.rint(np.array(shares) * 56)
    x1, y1, x2, y2 = corners.astype(int)
    level = np.zeros((56, 56), np.uint8)
    level[y1:y2, x1:x2] = 255
    return np.zeros((*size[::-1], 3), np.uint8), level, corners / 56 * np.tile(size, 2)


def scenes(count=4):
    lefts = [0.1 + 0.03 * at for at in range(count)]
    sizes = [(120, 70) if at % 2 else (60, 90) for at in range(count)]
    found = [scene(size, (left, 0.2, left + 0.5, 0.8)) for size, left in zip(sizes, lefts, strict=True)]
    images, levels, boxes = zip(*found, strict=True)
    return list(images), np.stack(levels), np.stack(boxes)


def test_the_mask_that_fills_the_map_is_chosen_in_frames_of_any_size(box_segmenter, monkeypatch):
    monkeypatch.setattr(module, "QUALITY", 2.0)
    monkeypatch.setattr(module, "JUMP", 0.1)  # frames of one shot have one size, these have not
    images, levels, boxes = scenes()
    found = refine(box_segmenter, images, levels)
    for one, image, box in zip(found, images, boxes, strict=True):
        assert one.mask.shape == image.shape[:2]
        assert one.box.tolist() == extents(one.mask).tolist()
        assert float(iou(one.box, box)) > 0.85  # a cell of the masks is up to 4 pixels wide
        assert one.overlap > 0.85


def test_a_frame_has_the_same_masks_whatever_frames_are_prepared_with_it(box_segmenter):
    images, levels, _ = scenes(BATCH + 3)
    together = mask_candidates(box_segmenter, images, levels)
    for at in (0, BATCH - 1, BATCH, BATCH + 2):
        alone = mask_candidates(box_segmenter, images[at : at + 1], levels[at : at + 1])
        for one, several in zip(alone, together, strict=True):
            assert (one[0] == several[at]).all()


def test_candidates_have_boxes_in_pixels_of_their_frames(box_segmenter):
    images, levels, boxes = scenes()
    found = mask_candidates(box_segmenter, images, levels)
    assert found.overlaps.shape == found.quality.shape == (4, 18)
    best = found.boxes[np.arange(4), found.overlaps.argmax(1)]
    assert (iou(best, boxes) > 0.9).all()
    assert found.boxes[:, 2].tolist() == [[0, 0, 0, 0]] * 4  # the third mask is empty
    assert (found.overlaps[:, 2] == 0).all()


@pytest.mark.parametrize("weight", [0.0, 0.2])
def test_the_expected_quality_decides_between_masks_that_fit_equally(box_segmenter, weight, monkeypatch):
    """The left and the right half of a map; the segmenter trusts the second more, and an empty mask most of all."""

    def halves(found):
        found.logits[:] = -4
        found.logits[:, 0, 0, 8:24, 8:16] = 4
        found.logits[:, 1, 0, 8:24, 16:24] = 4
        found.quality[:] = 0.5
        found.quality[:, 1] = 0.9
        found.quality[:, 2] = 5

    image, level, _ = scene((64, 64), (0.25, 0.25, 0.75, 0.75))
    monkeypatch.setattr(module, "QUALITY", weight)
    (found,) = refine(Changed(box_segmenter, halves), [image], level[None])
    assert found.box[0] == (32 if weight else 16)


def test_tensors_give_what_arrays_give(box_segmenter):
    tensors = Changed(box_segmenter, lambda found: Masks(*map(torch.from_numpy, found)))
    images, levels, _ = scenes()
    for one, other in zip(refine(box_segmenter, images, levels), refine(tensors, images, levels), strict=True):
        assert (one.mask == other.mask).all()
        assert one.overlap == other.overlap


def test_an_empty_map_has_no_mask(box_segmenter):
    images, levels, _ = scenes(2)
    levels[1] = 0
    first, second = refine(box_segmenter, images, levels)
    assert first is not None
    assert second is None


@pytest.mark.parametrize("before", [None, np.array([0.0, 0, 10, 10])])
def test_a_shot_goes_on_from_the_box_before(box_segmenter, before):
    """Two places explain the map equally well; the frame before decides between them."""
    level = np.zeros((1, 56, 56), np.uint8)
    level[0, 4:20, 4:20] = level[0, 36:52, 36:52] = 255
    level[0, 36:52, 36:53] = 255

    def places(found):
        found.logits[:] = -4
        found.logits[:, 0, 0, 2:11, 2:11] = 4
        found.logits[:, 1, 0, 21:30, 21:30] = 4
        found.quality[:] = 0.5

    (found,) = refine(Changed(box_segmenter, places), [np.zeros((56, 56, 3), np.uint8)], level, before)
    assert (found.box[0] < 28) == (before is not None)


def test_masks_do_not_reach_into_the_padding(box_segmenter):
    everything = Changed(box_segmenter, lambda found: found.logits.fill(4))
    image, level, _ = scene((80, 40), (0, 0, 1, 1))
    found = mask_candidates(everything, [image], level[None])
    assert found.boxes[0, 0].tolist() == [0, 0, 80, 40]
    assert found.overlaps[0, 0] > 0.95

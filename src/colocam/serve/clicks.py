"""The box of the object that a person clicks on: from the heat map, or from a segmenter.

The region of a click in the heat map is the connected part around it where the map is above a share of its value there.
Of the boxes of many shares one is chosen: people click near the middle of an object, and the box of an object that
stands out changes little with the share. The rules and their constants were chosen on ``val`` frames
(``lab/notes/clicks.md``).
"""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.segment.refine import extents, fetch, inside_square, mask_in_frame, squares
from colocam.segment.segmenter import BACKGROUND, PADDING, POINT, Prompts, Segmenter
from colocam.serve.guard import RefusalError
from colocam.types import Float64Array, Image, Levels

SIDE = 128
"""Side of the enlarged map whose regions are looked at."""
SHARES = np.linspace(0.05, 0.95, 31)
"""Thresholds, relative to the value at the click."""
SHARE = 0.75
"""The share that is best where nothing else is known."""
OFF_CENTER, STABLE, FAR = 1.0, 0.3, 2.0
"""Weights of the distance of a click from the middle, of stability, and of the distance from :data:`SHARE`."""
MIDDLE = 0.3
"""Where a click is closer to the middle of the box than this share of half its side, it becomes the middle."""
UNSTABLE = 0.2
"""Loss of IoU between neighboring shares from which the click alone says where the middle is."""
AROUND = 0.02
"""What a click adds around it at least, as a share of the longer side of the frame."""
QUALITY, AGREEMENT = 1.0, 0.5
"""Exponents of a mask's expected quality, and of its agreement with the heat map."""
LEAST = 2.0
"""Least width and height of a box, in pixels of the frame."""


class Click(NamedTuple):
    """A point of a frame in pixels, on the object or, where ``inside`` is false, beside it."""

    x: float
    y: float
    inside: bool = True


def box_in_map(levels: Levels, clicks: Sequence[Click], width: int, height: int) -> Float64Array:
    """Box (4,) of the object that was clicked on, in pixels of a frame of this size.

    Args:
        levels: (h, w) heat map in 8 bits, stretched over the frame.
        clicks: the first of those on the object begins a box; each other one adds its region where that is smaller than
            the box, else only its surroundings; clicks beside the object cut the box.
        width: of the frame.
        height: of the frame.
    """
    large = np.asarray(cv2.resize(levels, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR), np.uint8)
    cells = np.tile([width / SIDE, height / SIDE], 2)
    inside = [click for click in clicks if click.inside]
    box = _region(large, inside[0], cells, center=len(inside) == 1)
    for click in inside[1:]:
        added = _region(large, click, cells, center=False)
        if _area(added) > _area(box):  # where there is little heat, a region is half the frame
            around = AROUND * max(width, height)
            added = np.array([click.x - around, click.y - around, click.x + around, click.y + around])
        box = np.concatenate([np.minimum(box, added)[:2], np.maximum(box, added)[2:]])
    for click in clicks:
        if not click.inside:
            box = _cut(box, click, inside)
    return _within(box, width, height)


def _region(large: npt.NDArray[np.uint8], click: Click, cells: Float64Array, *, center: bool) -> Float64Array:
    """Box (4,) of the region of one click."""
    column, row = (min(SIDE - 1, int(at / size)) for at, size in zip(click[:2], cells[:2].tolist(), strict=True))
    value = float(large[row, column])
    boxes = np.empty((len(SHARES), 4))
    for at, share in enumerate(SHARES):
        mask = (large >= share * value).astype(np.uint8)
        _, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
        x, y, wide, high = stats[labels[row, column], :4].tolist()
        boxes[at] = x, y, x + wide, y + high
    boxes *= cells
    point = np.array(click[:2])
    before, after = np.maximum(point - boxes[:, :2], 0.5), np.maximum(boxes[:, 2:] - point, 0.5)
    off = np.hypot(*((after - before) / (after + before)).T)
    stable = np.zeros(len(SHARES))
    for step in (2, 4):
        middle = boxes[step:-step]
        stable[step:-step] += (iou(middle, boxes[2 * step :]) + iou(middle, boxes[: -2 * step])) / 4
    best = int(np.argmax(STABLE * stable - OFF_CENTER * off - FAR * (SHARES - SHARE) ** 2))
    lower, upper = before[best], after[best]
    if center:
        near = np.abs(upper - lower) < MIDDLE * (upper + lower)
        part = near * np.clip((1 - stable[best]) / UNSTABLE, 0, 1)
        half = 2 * lower * upper / (lower + upper)
        lower, upper = lower + part * (half - lower), upper + part * (half - upper)
    return np.concatenate([point - lower, point + upper])


def _cut(box: Float64Array, click: Click, kept: Sequence[Click]) -> Float64Array:
    """The largest part of a box beside a click that holds the clicks ``kept``; the box itself where there is none."""
    x1, y1, x2, y2 = box.tolist()
    x, y = click[:2]
    if not (x1 < x < x2 and y1 < y < y2):
        return box
    parts = [(x, y1, x2, y2), (x1, y, x2, y2), (x1, y1, x, y2), (x1, y1, x2, y)]
    holding = [part for part in parts if all(part[0] <= k.x <= part[2] and part[1] <= k.y <= part[3] for k in kept)]
    if not holding:
        return box
    return np.array(max(holding, key=lambda part: (part[2] - part[0]) * (part[3] - part[1])))


def _area(box: Float64Array) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))


def _within(box: Float64Array, width: int, height: int) -> Float64Array:
    limits = np.array([width, height, width, height], float)
    box = np.clip(box, 0, limits)
    for low, high in ((0, 2), (1, 3)):
        if box[high] - box[low] < LEAST:
            box[low] = max(0.0, min(box[low], limits[high] - LEAST))
            box[high] = min(limits[high], box[low] + LEAST)
    return box


def embed(segmenter: Segmenter, image: Image) -> object:
    """What :func:`box_of_segmenter` needs of a frame (H, W, 3); most of its time is spent here."""
    return segmenter.embed(squares([image], inside_square([image], segmenter.side), segmenter.side))


def box_of_segmenter(
    segmenter: Segmenter, embedded: object, image: Image, levels: Levels, clicks: Sequence[Click]
) -> Float64Array:
    """Box (4,) of the mask that a segmenter gives for clicks, in pixels of the frame.

    Args:
        segmenter: gives three masks: a part, a larger part and the whole, in any order.
        embedded: of :func:`embed`.
        image: (H, W, 3) the frame.
        levels: (h, w) its heat map in 8 bits: of the masks of a single click, the one that agrees with it is chosen.
        clicks: points on the object and beside it.
    """
    inside = inside_square([image], segmenter.side)
    height, width = image.shape[:2]
    points = np.array([[click.x, click.y] for click in clicks]) * (inside / (width, height))
    labels = [POINT if click.inside else BACKGROUND for click in clicks]
    padded = np.concatenate([points, np.zeros((1, 2))]).astype(np.float32)
    masked = segmenter.masks(embedded, Prompts(padded[None, None], np.array([[[*labels, PADDING]]])))
    logits, quality = fetch(masked.logits, masked.quality)()
    cells = logits.shape[-1]
    masks = [
        mask_in_frame(logit.astype(np.float32), (width, height), tuple(inside[0] * cells / segmenter.side))
        for logit in logits[0, 0]
    ]
    best = int(np.argmax([_worth(mask, levels, float(sure)) for mask, sure in zip(masks, quality[0, 0], strict=True)]))
    if not masks[best].any():
        raise RefusalError(422, f"{segmenter.name} finds no object there: click on another part of it, or drag a box")
    return _within(extents(masks[best][None])[0], width, height)


def _worth(mask: npt.NDArray[np.bool_], levels: Levels, quality: float) -> float:
    """How well a mask (H, W) agrees with a heat map, times what the segmenter expects of it."""
    small = cv2.resize(mask.astype(np.float32), levels.shape[::-1], interpolation=cv2.INTER_AREA)
    heat = levels / 255.0
    common, whole = float(np.minimum(small, heat).sum()), float(np.maximum(small, heat).sum())
    overlap = common / whole if whole else 0.0
    return float(max(quality, 0.0) ** QUALITY * overlap**AGREEMENT)

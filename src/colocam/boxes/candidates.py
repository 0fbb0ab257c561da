"""Candidate boxes of a frame: the contours of its map at several thresholds, each with a score."""

from typing import NamedTuple

import numpy as np

from colocam.boxes.contours import (
    Bytes,
    Int,
    Ints,
    Longs,
    Scratch,
    box_of_contour,
    follow_contours,
    next_contour,
    scratch,
)
from colocam.boxes.extract import check_threshold
from colocam.boxes.quantize import Maps, checked_levels
from colocam.types import Float64Array
from colocam.utils.jit import compiled

FACTORS = (1.0, 1.4, 0.5, 0.7, 2.0)
"""Thresholds relative to the model's own, which comes first; of equal boxes the first is kept."""
MOST = 24
"""Candidates per frame; those with the lowest scores are dropped, never the published box."""
LEAST_AREA = 1 / 400
"""Share of the frame's area below which a contour is ignored."""
ONE = 1 << 32
"""One pixel in a sum whose lower 32 bits add up levels: two sums in one integer."""


class Candidates(NamedTuple):
    """The k candidate boxes of one frame, the chosen box first; k = 0 without foreground.

    Attributes:
        boxes: (k, 4) x1, y1, x2, y2 in map pixels.
        scores: (k,) how well the box explains the map, 0–1.
        thresholds: (k,) τ at which the box was found.
        eligible: number of leading candidates that a path may take; None: those found at the first one's threshold.
    """

    boxes: Float64Array
    scores: Float64Array
    thresholds: Float64Array
    eligible: int | None = None


def candidate_boxes(maps: Maps, threshold: float) -> list[Candidates]:
    """Boxes of all contours of maps (B, H, W) at several thresholds around τ, without repetition.

    The first of a frame is the box of :func:`colocam.boxes.largest_boxes`. The score is the overlap of the box R
    with the foreground F = {levels > ⌊τ · max⌋}, each pixel weighted by its level m:
    Σ_{R∩F} m / (Σ_F m + mean_F m · |R∖F|), the weighted form of |R∩F| / |R∪F|.
    """
    check_threshold(threshold)
    levels = checked_levels(maps)
    thresholds = np.minimum(threshold * np.array(FACTORS), 1.0)
    boxes, scores = np.zeros((len(levels), MOST, 4)), np.zeros((len(levels), MOST))
    origins, counts = np.zeros((len(levels), MOST), np.int64), np.zeros(len(levels), np.int64)
    _search(levels, thresholds, LEAST_AREA * levels[0].size if len(levels) else 0.0, boxes, scores, origins, counts)
    found = zip(boxes, scores, thresholds[origins], counts.tolist(), strict=True)
    return [Candidates(b[:count], s[:count], t[:count]) for b, s, t, count in found]


def eligible(candidates: Candidates) -> Candidates:
    """The candidates that a path may take; they come first, so indices stay valid."""
    count = candidates.eligible
    if count is None:
        thresholds = candidates.thresholds.tolist()  # Python numbers are faster than short arrays
        count = sum(one == thresholds[0] for one in thresholds)
    return Candidates(candidates.boxes[:count], candidates.scores[:count], candidates.thresholds[:count])


def explained(level: Bytes, threshold: float, boxes: Float64Array) -> Float64Array:
    """Scores (n,) of boxes (n, 4), also of other frames, on a map (H, W), by the rule of :func:`candidate_boxes`.

    Boxes are rounded to pixels. Without foreground the scores are 0.
    """
    values = np.zeros(len(boxes))
    if len(boxes):
        _explain(level, threshold, boxes, values)
    return values


@compiled
def _search(
    levels: Bytes,
    thresholds: Float64Array,
    least: float,
    boxes: Float64Array,
    scores: Float64Array,
    origins: Longs,
    counts: Longs,
) -> None:
    """Fill the candidates of maps (B, H, W): boxes, scores, indices of their thresholds, and their number.

    Args:
        levels: the maps.
        thresholds: (F,) τ in 0–1, the model's own first.
        least: area in pixels below which a contour is ignored, unless it is the largest.
        boxes: (B, k, 4), filled here; so are the following.
        scores: (B, k).
        origins: (B, k).
        counts: (B,).
    """
    batch, height, width = levels.shape
    space = scratch(height, width)
    large = np.empty(len(space.areas), np.int64)
    found = np.empty((len(thresholds) * len(large), 5), np.int32)  # boxes, and the index of the threshold
    values = np.empty(len(found))
    for i in range(batch):
        level, highest, count = levels[i], _highest(levels[i]), 0
        own = int(thresholds[0] * highest)
        for origin in range(len(thresholds) if own < highest else 0):
            cut = int(thresholds[origin] * highest)
            repeated = False
            for other in range(origin):
                repeated |= cut == int(thresholds[other] * highest)
            if repeated:
                continue
            first, _ = follow_contours(level, cut, space)
            for place in range(_largest_first(space, first, least, large)):
                x1, y1, x2, y2 = box_of_contour(space.table[large[place]], height, width)
                found[count, 0], found[count, 1], found[count, 2], found[count, 3] = x1, y1, x2, y2
                found[count, 4] = origin
                count += not _is_among(found, count)
        _score(level, own, found[:count], values)
        counts[i] = _keep_best(found[:count], values, boxes[i], scores[i], origins[i])


@compiled
def _largest_first(space: Scratch, first: Int, least: float, large: Longs) -> int:
    """List the contours of at least ``least`` pixels and the largest, by area; equals in OpenCV's order."""
    areas, count, best, at = space.areas, 0, first, first
    while at >= 0:
        if areas[at] > areas[best]:
            best = at
        if areas[at] >= 2 * least:
            place = count
            while place > 0 and areas[large[place - 1]] < areas[at]:
                large[place] = large[place - 1]
                place -= 1
            large[place] = at
            count += 1
        at = next_contour(space.table, at)
    if count == 0 and best >= 0:
        large[0] = best
        count = 1
    return count


@compiled
def _is_among(found: Ints, count: int) -> bool:
    """Whether the box after the first ``count`` is one of them."""
    x1, y1, x2, y2 = found[count, 0], found[count, 1], found[count, 2], found[count, 3]
    for i in range(count):
        if found[i, 0] == x1 and found[i, 1] == y1 and found[i, 2] == x2 and found[i, 3] == y2:
            return True
    return False


@compiled
def _score(level: Bytes, cut: int, found: Ints, values: Float64Array) -> None:
    """Fill ``values`` with the scores of boxes (n, 5) in a map with levels above ``cut``."""
    total, bright = _foreground(level, cut, 0, 0, level.shape[1] - 1, level.shape[0] - 1)
    for i in range(len(found)):
        x1, y1, x2, y2 = found[i, 0], found[i, 1], found[i, 2], found[i, 3]
        common, covered = _foreground(level, cut, x1, y1, x2, y2)
        values[i] = common / (total + total / bright * ((x2 + 1 - x1) * (y2 + 1 - y1) - covered))


@compiled
def _explain(level: Bytes, threshold: float, boxes: Float64Array, values: Float64Array) -> None:
    """Fill ``values`` with the scores of boxes (n, 4) that overlap each other, read off one integral image.

    The integral image covers the part of the map that holds all boxes.
    """
    height, width = level.shape
    highest = _highest(level)
    cut = int(threshold * highest)
    if cut >= highest:
        return
    x, y = _pixels(boxes[:, ::2], width), _pixels(boxes[:, 1::2], height)
    left, top = x.min(), y.min()
    rows, columns = y.max() + 1 - top, x.max() + 1 - left
    counted = np.zeros(256, np.int64)  # what a pixel of each level adds: its level and, in the upper bits, one
    for value in range(cut + 1, 256):  # Numba compiles an assignment of arrays for seconds
        counted[value] = value + ONE
    sums = np.zeros((rows + 1, columns + 1), np.int64)
    for row in range(rows):
        above, below, so_far = sums[row], sums[row + 1], np.int64(0)
        for column in range(np.uint64(columns)):  # unsigned indices need no sign check
            so_far += counted[level[top + row, np.uint64(left) + column]]
            below[column + np.uint64(1)] = above[column + np.uint64(1)] + so_far
    total, bright = _foreground(level, cut, 0, 0, width - 1, height - 1)
    for i in range(len(boxes)):
        x1, y1, x2, y2 = x[i, 0] - left, y[i, 0] - top, x[i, 1] + 1 - left, y[i, 1] + 1 - top
        both = sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1]
        common, covered = both % ONE, both // ONE
        values[i] = common / (total + total / bright * ((x2 - x1) * (y2 - y1) - covered))


@compiled
def _pixels(sides: Float64Array, length: int) -> Longs:
    """Indices of the pixels of an axis that coordinates (n, 2) lie in."""
    return np.minimum(np.maximum(np.rint(sides), 0), length - 1).astype(np.int64)


@compiled
def _keep_best(found: Ints, values: Float64Array, boxes: Float64Array, scores: Float64Array, origins: Longs) -> int:
    """Keep the first candidate and those with the highest scores, of equals the first; return their number."""
    count = 0
    for i in range(len(found)):
        better = 0  # than this one
        for j in range(1, len(found)) if i > 0 and len(found) > len(boxes) else range(0):
            better += values[j] > values[i] or (values[j] == values[i] and j < i)
        if better < len(boxes) - 1:
            for side in range(4):
                boxes[count, side] = found[i, side]
            scores[count] = values[i]
            origins[count] = found[i, 4]
            count += 1
    return count


@compiled
def _highest(level: Bytes) -> Int:
    highest = np.uint8(0)
    for row in level:
        for value in row:
            highest = max(highest, value)
    return np.int64(highest)


@compiled
def _foreground(level: Bytes, cut: Int, x1: Int, y1: Int, x2: Int, y2: Int) -> tuple[Int, Int]:
    """Sum and number of the levels above ``cut`` in a rectangle with both its corners."""
    total, count, limit = np.int64(0), np.int64(0), np.uint8(cut)
    for y in range(y1, y2 + 1):
        row, in_row = level[y], np.int32(0)
        # One 32-bit sum per loop over unsigned indices lets the compiler use vector instructions.
        for x in range(np.uint64(x1), np.uint64(x2 + 1)):
            if row[x] > limit:
                in_row += row[x]
        total += in_row
        in_row = np.int32(0)
        for x in range(np.uint64(x1), np.uint64(x2 + 1)):
            if row[x] > limit:
                in_row += 1
        count += in_row
    return total, count

"""Several objects with a promptable segmenter: a mask for each of them, from points where the heat map is warm.

    frames ─ squares ─► segmenter's input;  heat maps ─ warm_points ─► masks ─ distinct ─ suppress ─► objects

A mask that the heat map does not know scores nothing, so points elsewhere would be wasted. The grid is as fine as the
number of points allows: a small warm area has a fine grid, where small objects are. The score of a mask is

    q · s · max(0, m − ½ r) · v^0.2 · a^0.3,

with the quality q that the segmenter expects, its stability s, the mean foreground probability m inside the mask and r
around it, the number v of prompts that gave the same mask, and its share a of the frame; times √P with the probability
P that the mask, alone on gray, shows the class, where the model can tell.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.segment.refine import cells_inside, inside_square, like, squares, to_host, warp
from colocam.segment.segmenter import BATCH, PADDING, POINT, Array, Prompts, Segmenter
from colocam.types import Float32Array, Float64Array, Image, Levels, ObjectMask
from colocam.utils.device import parallel_map

POINTS = 96
"""Prompts of a frame at most."""
CHUNK = 16
"""Prompts of each frame in one pass of the segmenter's decoder; :data:`POINTS` is a multiple of it."""
FINEST, COARSEST = 48, 8
"""Points on each side of the grid."""
USUAL = 14
"""Points on each side that votes are counted for: on a finer grid more prompts give the same mask."""
WARM = 0.1
"""Level of the map, relative to its maximum, from which a point is a prompt."""
LEAST_QUALITY = LEAST_STABILITY = 0.5
LEAST_AREA, MOST_AREA = 0.0004, 0.95
"""Share of the frame that a mask may have."""
EDGE = 1.0
"""Stability is the IoU of the masks at the logits ± this, as SAM's authors define it."""
SAME = 0.8
"""IoU from which two masks are the same."""
MOST_MASKS = 100
"""Different masks of a frame that are scored."""
AROUND = 1 / 32
"""Width of a mask's surroundings, relative to the segmenter's square."""
SURROUNDINGS, VOTES, SIZE, CLASS = 0.5, 0.2, 0.3, 0.5
"""Weight of the surroundings, and powers of votes, area and class in the score."""
MOST_CROPS = 32
"""Masks of a frame whose class is read, the best ones; the others are no objects."""
CONTAINED = 0.7
"""Share of the smaller of two masks that they may have in common; otherwise only the better one is kept."""
LEAST_SCORE = 0.02
"""Of an object; the best one of a frame is always kept."""


Shows = Callable[[Image, Levels], Float64Array]
"""(Frame (H, W, 3), n ≥ 1 masks (n, h, w) of 0 and 1 over it) → (n,) probability that each shows the class."""


class WarmPoints(NamedTuple):
    """Points (n, 2) x, y in 0–1 of a grid that has ``side`` points on each side."""

    points: Float64Array
    side: int


def find_objects(
    segmenter: Segmenter,
    images: Sequence[Image],
    levels: Levels,
    shows: Shows | None = None,
    passed: Callable[[int], object] = int,
) -> list[list[ObjectMask]]:
    """The objects of each of B ≥ 1 frames, the best first; frames do not depend on each other.

    Args:
        segmenter: gives the masks.
        images: frames (H, W, 3), each of its own size.
        levels: (B, h, w) heat maps in 8 bits, each stretched over its frame.
        shows: reads the class of masks, in any thread; None: the score is without the class.
        passed: called with numbers of frames that are done.
    """
    work = partial(_objects, shows)
    batches = [slice(start, start + BATCH) for start in range(0, len(images), BATCH)]

    def prepare(batch: slice) -> tuple[npt.NDArray[np.int64], Levels, list[WarmPoints]]:
        inside = inside_square(images[batch], segmenter.side)
        return inside, squares(images[batch], inside, segmenter.side), parallel_map(warm_points, levels[batch])

    objects: list[list[ObjectMask]] = []
    with ThreadPoolExecutor(1, "squares") as pool:  # prepares the next frames while the segmenter computes
        for rows, (inside, filled, warm) in zip(batches, pool.map(prepare, batches), strict=True):
            masks = _masks(segmenter, filled, inside, [one.points for one in warm])
            objects += parallel_map(work, images[rows], levels[rows], (inside / segmenter.side).tolist(), warm, masks)
            passed(len(masks))
    return objects


def warm_points(level: Levels) -> WarmPoints:
    """At most :data:`POINTS` warm points of a map (h, w), on a grid as fine as possible; none of an empty map."""
    least = WARM * int(level.max())
    for side in range(FINEST, COARSEST - 1, -2):
        at = (np.arange(side) + 0.5) / side
        rows, columns = ((at * size).astype(np.int64) for size in level.shape)
        y, x = np.nonzero(level[np.ix_(rows, columns)] > least)
        if len(x) <= POINTS:
            break
    return WarmPoints(np.stack([at[x], at[y]], axis=1), side)


class _Masks(NamedTuple):
    """The n usable masks of a frame: logits (n, h, w) where the segmenter left them; quality times stability (n,)."""

    logits: list[Array]
    quality: list[Float64Array]


def _masks(
    segmenter: Segmenter, filled: Levels, inside: npt.NDArray[np.int64], points: Sequence[Float64Array]
) -> list[_Masks]:
    """The masks for the points of B frames that lie in squares (B, side, side, 3), up to ``inside`` (B, 2) pixels.

    Every pass has the same number of prompts, so that the masks do not depend on how many a frame or its neighbors
    have.
    """
    masks = [_Masks([], []) for _ in points]
    most = max(map(len, points))
    if not most:
        return masks
    embedded = segmenter.embed(filled)
    prompts = np.zeros((len(points), -(-most // CHUNK) * CHUNK, 2, 2), np.float32)
    labels = np.full(prompts.shape[:3], PADDING, np.int64)
    for row, (size, warm) in enumerate(zip(inside, points, strict=True)):
        prompts[row, : len(warm), 0] = warm * size - 0.5  # the center of a pixel is at a whole number
        labels[row, : len(warm), 0] = POINT
    for start in range(0, most, CHUNK):
        chunk = slice(start, start + CHUNK)
        made = segmenter.masks(embedded, Prompts(prompts[:, chunk], labels[:, chunk]))
        per_prompt, cells = made.logits.shape[2], made.logits.shape[-1]
        logits = made.logits.reshape(len(points), -1, cells, cells)
        quality = to_host(made.quality).reshape(len(points), -1).astype(np.float64)
        if not np.isfinite(quality).all():
            raise ColocamError(
                f"the segmenter {segmenter.name} returns values that are not finite: its weights are damaged"
            )
        within = like(cells_inside(inside * cells / segmenter.side, cells), logits)[:, None]
        loose, area, strict = (
            to_host(((logits > edge) * within).sum((-2, -1))).astype(np.float64) for edge in (-EDGE, 0, EDGE)
        )
        stability = strict / np.maximum(loose, 1)
        share = area / to_host(within.sum((-2, -1)))
        is_prompt = np.repeat(labels[:, chunk, 0] == POINT, per_prompt, axis=1)
        usable = is_prompt & (quality > LEAST_QUALITY) & (stability > LEAST_STABILITY)
        usable &= (share > LEAST_AREA) & (share < MOST_AREA)
        for row in np.flatnonzero(usable.any(1)).tolist():
            masks[row].logits.append(logits[row][np.flatnonzero(usable[row]).tolist()])
            masks[row].quality.append((quality * stability)[row, usable[row]])
    return masks


class Distinct(NamedTuple):
    """The n different masks of a frame, the best first.

    Attributes:
        kept: their indices among all masks.
        common: (n, n) cells that two masks have in common; the diagonal has their areas.
        quality: (n,) quality times stability.
        votes: (n,) number of masks that are the same.
    """

    kept: npt.NDArray[np.int64]
    common: Float64Array
    quality: Float64Array
    votes: Float64Array


def distinct(common: Float64Array, quality: Float64Array) -> Distinct:
    """Leave out masks that are the same as a better one.

    Args:
        common: (n, n) cells that two masks have in common.
        quality: (n,).
    """
    area = np.diagonal(common)
    same = common > SAME * (area[:, None] + area - common)
    gone = np.zeros(len(area), bool)
    chosen = []
    for index in np.argsort(-quality, kind="stable").tolist():
        if not gone[index]:
            chosen.append(index)
            gone |= same[index]
    votes = same.sum(1).astype(np.float64)
    kept = np.array(sorted(chosen, key=lambda one: -quality[one] * votes[one] ** VOTES)[:MOST_MASKS], np.int64)
    return Distinct(kept, common[np.ix_(kept, kept)], quality[kept], votes[kept])


def _objects(
    shows: Shows | None, image: Image, level: Levels, inside: Sequence[float], warm: WarmPoints, masks: _Masks
) -> list[ObjectMask]:
    """The objects of a frame, whose image covers ``inside`` (width and height in 0–1) of the segmenter's square."""
    if not masks.logits:
        return []
    logits = _joined(masks.logits)
    cells = logits.shape[-1]
    size = np.array(inside) * cells
    hard = (logits > 0) * like(cells_inside(size[None], cells), logits)
    flat = _floats(hard.reshape(len(hard), -1))
    apart = distinct(to_host(flat @ flat.T).astype(np.float64), np.concatenate(masks.quality))
    outlines = to_host(hard[apart.kept.tolist()]).astype(np.uint8)
    heat = np.zeros((cells, cells), np.uint8)
    warp(level, heat, tuple(size / level.shape[::-1]))
    means = np.array([_heat(one, heat, size) for one in outlines])
    votes = apart.votes * (USUAL / warm.side) ** 2
    share = np.diagonal(apart.common) / size.prod()
    scores = apart.quality * np.maximum(means[:, 0] - SURROUNDINGS * means[:, 1], 0) * votes**VOTES * share**SIZE
    if shows is not None and scores.any():
        width, height = np.rint(size).astype(int).clip(1).tolist()
        best = np.argsort(-scores, kind="stable")[: min(MOST_CROPS, np.count_nonzero(scores))]
        classified = np.zeros_like(scores)
        classified[best] = scores[best] * shows(image, outlines[best, :height, :width]) ** CLASS
        scores = classified
    chosen = suppress(apart.common, scores)
    shapes = to_host(logits[apart.kept[chosen].tolist()])
    sizes = image.shape[1::-1]
    objects = [_outline(shape, outlines[at], sizes, size) for at, shape in zip(chosen, shapes, strict=True)]
    pairs = zip(objects, scores[chosen].tolist(), strict=True)
    return [ObjectMask(*one, score) for one, score in pairs if one is not None]


def _heat(mask: Levels, heat: Levels, inside: Float64Array) -> tuple[float, float]:
    """Mean foreground probability of a map (h, w) in 8 bits inside a mask (h, w) of 0 and 1, and around it.

    Cells outside the frame, which covers ``inside`` of them, do not count.
    """
    x, y, width, height = cv2.boundingRect(mask)
    reach = max(round(AROUND * mask.shape[1]), 1)
    right, bottom = np.ceil(inside).astype(int).tolist()
    near = (
        slice(max(y - reach, 0), min(y + height + reach, bottom)),
        slice(max(x - reach, 0), min(x + width + reach, right)),
    )
    own, level = np.ascontiguousarray(mask[near]), np.ascontiguousarray(heat[near])
    grown = cv2.dilate(own, np.ones((2 * reach + 1, 2 * reach + 1), np.uint8))
    return cv2.mean(level, own)[0] / 255, cv2.mean(level, grown - own)[0] / 255


def suppress(common: Float64Array, scores: Float64Array) -> list[int]:
    """Indices of the masks to keep, the best first: none that shares too much with a better one, or scores too low.

    Args:
        common: (n, n) cells that two masks have in common; the diagonal has their areas.
        scores: (n,).
    """
    area = np.diagonal(common)
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable").tolist():
        if scores[index] <= 0 or (kept and scores[index] < LEAST_SCORE):
            break
        if all(common[index, other] <= CONTAINED * min(area[index], area[other]) for other in kept):
            kept.append(index)
    return kept


def _outline(
    logits: Float32Array, mask: Levels, size: tuple[int, ...], inside: Float64Array
) -> tuple[Float64Array, npt.NDArray[np.bool_]] | None:
    """Box and pixels of a mask in a frame of ``size`` (W, H), where interpolated logits are positive; None if empty.

    Args:
        logits: (cells, cells) over the square, of which the frame covers ``inside`` (width, height) cells.
        mask: the same in 0 and 1.
        size: of the frame.
        inside: may be fractions of cells.
    """
    x, y, wide, high = cv2.boundingRect(mask)
    scale = np.array(size) / inside
    # Positive pixels are less than a cell away from a positive cell.
    x1, y1 = np.maximum(np.floor((np.array([x, y]) - 0.5) * scale), 0).astype(int).tolist()
    x2, y2 = np.minimum(np.ceil((np.array([x + wide, y + high]) + 0.5) * scale), size).astype(int).tolist()
    if x2 <= x1 or y2 <= y1:
        return None
    near = np.empty((y2 - y1, x2 - x1), np.float32)
    warp(np.ascontiguousarray(logits, np.float32), near, tuple(scale), cv2.BORDER_REPLICATE, (x1, y1))
    left, top, width, height = cv2.boundingRect((near > 0).view(np.uint8))
    if not width:
        return None
    box = np.array([x1 + left, y1 + top, x1 + left + width, y1 + top + height], np.float64)
    return box, near[top : top + height, left : left + width] > 0


def _joined(parts: Sequence[Any]) -> Array:
    """One array or tensor of several, along their first axis."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not

    return torch.cat(list(parts))


def _floats(masks: Array) -> Array:
    """As float32: sums of products of 0 and 1 are exact."""
    return masks.astype(np.float32) if isinstance(masks, np.ndarray) else masks.float()

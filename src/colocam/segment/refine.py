"""Refine heat maps with a promptable segmenter: one mask for each frame of a shot, and its box.

    frames ─ squares ─► segmenter's input;  heat maps ─ map_prompts ─► boxes at several thresholds, and the peak

The mask of a frame is the one that agrees with the heat map and with its neighbors in the shot. The soft IoU of a mask
m with the map s is Σ m·t / (Σ m + Σ t − Σ m·t), where t rises from 0 to 1 while s rises from a to b (:data:`FADE`).
:func:`mask_scores` makes a score of it, of what the segmenter expects, and of the masks' agreement. Over the frames of
a shot the path x_1 … x_T takes one mask of each frame and maximizes

    Σ_t score(x_t) − JUMP Σ_t (1 − IoU(x_t, x_{t+1})), with the IoU of the masks' boxes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import largest_boxes
from colocam.boxes.iou import iou
from colocam.errors import ColocamError
from colocam.segment.segmenter import BATCH, LOWER_RIGHT, PADDING, POINT, UPPER_LEFT, Array, Prompts, Segmenter
from colocam.types import Float32Array, Float64Array, Image, Levels
from colocam.utils.device import parallel_map

THRESHOLDS = (0.085, 0.16, 0.26, 0.35, 0.5)
"""τ of the boxes that are prompts, relative to the maximum of the map."""
FADE = (0.0, 0.5)
"""Foreground probabilities up to which a pixel counts nothing beside masks, and from which it counts fully."""
QUALITY = 4.0
"""Exponent of the segmenter's own expectation of a mask's quality, a factor of the soft IoU."""
AGREEMENT = 2.0
"""Weight of the agreement with the other masks of the frame."""
JUMP = 0.3
"""Cost of a change to a box without overlap from one frame to the next, in units of the score."""
PADDING_COLOR = (124, 116, 104)
"""ImageNet's mean color: 0 after normalization, as SAM pads."""
BLUR = 1 / 32
"""Standard deviation of the blur before the peak is read, as a share of the map's width."""


class MaskCandidates(NamedTuple):
    """The n masks that a segmenter gives for each of B frames.

    Attributes:
        logits: B times (n, h, w) over the squares, where the segmenter left them.
        overlaps: (B, n) soft IoU with the heat map.
        quality: (B, n) the IoU with the true mask that the segmenter expects.
        boxes: (B, n, 4) extents of the masks in pixels of their frames.
    """

    logits: list[Array]
    overlaps: Float64Array
    quality: Float64Array
    boxes: Float64Array


class Refined(NamedTuple):
    """A mask (H, W) in pixels of its frame, its extent (4,), and its soft IoU with the heat map."""

    mask: npt.NDArray[np.bool_]
    box: Float64Array
    overlap: float


def refine(
    segmenter: Segmenter, images: Sequence[Image], levels: Levels, before: Float64Array | None = None
) -> list[Refined | None]:
    """The best mask of each of T ≥ 1 frames of a shot; None where the map or the mask is empty.

    Args:
        segmenter: gives the masks.
        images: frames (H, W, 3), each of its own size.
        levels: (T, h, w) heat maps in 8 bits, each stretched over its frame.
        before: (4,) box of the frame before these in the same shot, in pixels of its frame.
    """
    return choose_masks(mask_candidates(segmenter, images, levels), images, segmenter.side, before)


def choose_masks(
    found: MaskCandidates, images: Sequence[Image], side: int, before: Float64Array | None = None
) -> list[Refined | None]:
    """:func:`refine` for candidates that a segmenter with squares of ``side`` gave."""
    path = best_path(mask_scores(found.overlaps, found.quality, found.boxes), found.boxes, before)
    (chosen,) = fetch(stack([logits[at] for logits, at in zip(found.logits, path, strict=True)]))()
    inside = inside_square(images, side) * (chosen.shape[-1] / side)
    sizes = [image.shape[1::-1] for image in images]
    masks = parallel_map(mask_in_frame, chosen.astype(np.float32, copy=False), sizes, inside.tolist())
    overlaps = found.overlaps[np.arange(len(path)), path].tolist()
    results = zip(masks, parallel_map(extents, masks), overlaps, strict=True)
    return [Refined(mask, box, overlap) if overlap and box.any() else None for mask, box, overlap in results]


def mask_candidates(
    segmenter: Segmenter, images: Sequence[Image], levels: Levels, passed: Callable[[int], object] = int
) -> MaskCandidates:
    """All masks of B ≥ 1 frames (H, W, 3) with heat maps (B, h, w) in 8 bits, each stretched over its frame.

    ``passed`` is called with numbers of frames that are done.
    """
    batches = [slice(start, start + BATCH) for start in range(0, len(images), BATCH)]

    def prepare(batch: slice) -> tuple[Levels, Prompts]:
        inside = inside_square(images[batch], segmenter.side)
        return squares(images[batch], inside, segmenter.side), map_prompts(levels[batch], inside)

    parts = []
    started = deque[Callable[[], tuple[Array, Float64Array, Float64Array, Float64Array]]]()

    def finish() -> None:
        parts.append(started.popleft()())
        passed(len(parts[-1][0]))

    with ThreadPoolExecutor(1, "squares") as pool:  # prepares the next frames while the segmenter computes
        for rows, prepared in zip(batches, pool.map(prepare, batches), strict=True):
            started.append(_start_masks(segmenter, images[rows], levels[rows], *prepared))
            if len(started) > 1:  # a GPU has the next frames to compute while the host waits for these
                finish()
    while started:
        finish()
    logits, *numbers = zip(*parts, strict=True)
    return MaskCandidates([one for some in logits for one in some], *map(np.concatenate, numbers))


def _start_masks(
    segmenter: Segmenter, images: Sequence[Image], levels: Levels, filled: Levels, prompts: Prompts
) -> Callable[[], tuple[Array, Float64Array, Float64Array, Float64Array]]:
    """Start the segmenter on frames in squares; the result waits for logits (B, n, h, w), overlaps, quality and boxes.

    With a GPU nothing is waited for here.
    """
    made = segmenter.masks(segmenter.embed(filled), prompts)
    cells = made.logits.shape[-1]
    logits = made.logits.reshape(len(images), -1, cells, cells)
    inside = inside_square(images, segmenter.side) * cells / segmenter.side
    target = like(maps_in_squares(targets(levels), inside, cells), logits)
    masks = (logits > 0) * like(cells_inside(inside, cells), logits)[:, None]
    quality = made.quality.reshape(len(images), -1)
    fetched = fetch(quality, *_overlap_sums(masks, target), *_sides(masks))
    scale = np.tile(np.array([image.shape[1::-1] for image in images]) / inside, 2)[:, None]

    def finish() -> tuple[Array, Float64Array, Float64Array, Float64Array]:
        quality, common, area, whole, *sides = fetched()
        if not np.isfinite(quality).all():
            raise ColocamError(
                f"the segmenter {segmenter.name} returns values that are not finite: its weights are damaged"
            )
        overlaps = _soft_iou(common, area, whole)
        return logits, overlaps, quality.astype(np.float64), _extents(*sides) * scale

    return finish


def like(array: npt.NDArray[Any], example: Array) -> Array:
    """An array where ``example`` is."""
    if isinstance(example, np.ndarray):
        return array
    from colocam.utils.tensors import upload  # noqa: PLC0415 - a tensor brings torch along, an array need not

    return upload(array, example.device)


def fetch(*arrays: Array) -> Callable[[], list[npt.NDArray[Any]]]:
    """Start copying arrays or tensors to the host; the returned function waits for them."""
    if isinstance(arrays[0], np.ndarray):
        return lambda: [np.asarray(array) for array in arrays]
    from colocam.utils.tensors import download  # noqa: PLC0415

    return download(*arrays)  # type: ignore[arg-type]


def stack(arrays: Sequence[Array]) -> Array:
    """Arrays or tensors of one shape along a new first axis."""
    if isinstance(arrays[0], np.ndarray):
        return np.stack(arrays)
    import torch  # noqa: PLC0415

    return torch.stack(arrays)  # type: ignore[arg-type]


def inside_square(images: Sequence[Image], side: int) -> npt.NDArray[np.int64]:
    """(B, 2) width and height of frames (H, W, 3) in the upper left corner of squares, which the longer side fills."""
    sizes = np.array([image.shape[1::-1] for image in images])
    inside: npt.NDArray[np.int64] = np.rint(sizes * (side / sizes.max(1, keepdims=True))).astype(np.int64).clip(1)
    return inside


def cells_inside(inside: Float64Array, cells: int) -> npt.NDArray[np.bool_]:
    """(B, cells, cells) which cells of a square belong to its frame, which covers ``inside`` (B, 2), not padding."""
    centers = np.arange(cells) + 0.5
    return (centers < inside[:, :1])[:, None] & (centers < inside[:, 1:])[:, :, None]


def squares(images: Sequence[Image], inside: npt.NDArray[np.int64], side: int) -> Levels:
    """Frames (H, W, 3), each of its own size, in squares (B, side, side, 3), which they fill up to ``inside``."""
    filled = np.empty((len(images), side, side, 3), np.uint8)
    parallel_map(_fit, images, filled, inside.tolist())
    return filled


def _fit(image: Image, square: Levels, inside: tuple[int, int]) -> None:
    width, height = inside
    way = cv2.INTER_AREA if width < image.shape[1] else cv2.INTER_LINEAR
    cv2.resize(image, (width, height), square[:height, :width], interpolation=way)
    lines = square.reshape(len(square), -1)
    padding = np.tile(np.array(PADDING_COLOR, np.uint8), len(square))
    lines[height:], lines[:height, 3 * width :] = padding, padding[3 * width :]  # by the line: 200 times as fast


def maps_in_squares(levels: Levels, inside: Float64Array, cells: int) -> Levels:
    """Maps (B, h, w) on a grid of (cells, cells), stretched over its first ``inside`` (B, 2) cells; 0 elsewhere."""
    placed = np.zeros((len(levels), cells, cells), np.uint8)
    parallel_map(warp, levels, placed, (inside / levels.shape[:0:-1]).tolist())
    return placed


def mask_in_frame(logits: Float32Array, size: tuple[int, int], inside: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """The mask (H, W) of a frame where interpolated logits are positive.

    Args:
        logits: (cells, cells) over the square; a frame's part is ``inside`` (width, height) in cells.
        size: (W, H) of the frame.
        inside: may be fractions of cells.
    """
    width, height = size
    full = np.empty((height, width), np.float32)
    warp(logits, full, (width / inside[0], height / inside[1]), cv2.BORDER_REPLICATE)
    mask: npt.NDArray[np.bool_] = full > 0
    return mask


def warp(
    source: cv2.typing.MatLike,
    out: cv2.typing.MatLike,
    scale: tuple[float, float],
    border: int = cv2.BORDER_CONSTANT,
    begin: tuple[int, int] = (0, 0),
) -> None:
    """Interpolate ``source`` at the pixels of ``out``, of which ``scale`` make one of the source along x and y.

    ``out`` begins with the pixel ``begin`` (x, y) of the source in that scale.
    """
    x, y = 1 / scale[0], 1 / scale[1]
    # centers of pixels are at half numbers
    back = np.array([[x, 0, begin[0] * x + (x - 1) / 2], [0, y, begin[1] * y + (y - 1) / 2]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    cv2.warpAffine(source, back, out.shape[1::-1], out, flags, border)


def map_prompts(levels: Levels, inside: npt.NDArray[np.int64]) -> Prompts:
    """Prompts for maps (B, h, w) in 8 bits: a box for each of :data:`THRESHOLDS`, then the peak of the blurred map.

    Args:
        levels: maps, each stretched over its frame.
        inside: (B, 2) width and height of the frames in their squares, where the points are given.
    """
    height, width = levels.shape[1:]
    scales = (inside / (width, height))[:, None, None]  # (B, 1, 1, 2)
    boxes = np.stack(parallel_map(_boxes, levels))
    corners = boxes.reshape(len(levels), -1, 2, 2) * scales
    peaks = (np.array(parallel_map(_peak, levels), np.float32)[:, None, None] + 0.5) * scales - 0.5
    points = np.concatenate([corners, np.concatenate([peaks, np.zeros_like(peaks)], axis=2)], axis=1)
    labels = np.array([(UPPER_LEFT, LOWER_RIGHT)] * len(THRESHOLDS) + [(POINT, PADDING)])
    return Prompts(points.astype(np.float32), np.tile(labels, (len(levels), 1, 1)))


def _boxes(level: Levels) -> Float32Array:
    """(T, 4) boxes of a map (h, w) at :data:`THRESHOLDS`."""
    return np.concatenate([largest_boxes(level[None], threshold)[0] for threshold in THRESHOLDS])


def _peak(level: Levels) -> Sequence[int]:
    """The x, y of the highest pixel of a blurred map (h, w)."""
    blurred = cv2.GaussianBlur(level.astype(np.float32), (0, 0), BLUR * level.shape[1])
    return cv2.minMaxLoc(blurred)[3]


def targets(levels: Levels) -> Levels:
    """Targets clip((s − a) / (b − a), 0, 1) in 8 bits, for maps s in 8 bits and (a, b) = :data:`FADE`."""
    low, high = FADE
    table = np.clip((np.arange(256) - 255 * low) / (high - low), 0, 255).astype(np.uint8)
    faded: Levels = table[levels]
    return faded


def soft_iou(masks: Array, target: Array) -> Float64Array:
    """Soft IoU (B, n) of masks (B, n, h, w) of bool and targets (B, h, w) in 8 bits; 0 where both are empty.

    Sums are of integers, so that arrays and tensors of any device give the same numbers.
    """
    return _soft_iou(*map(to_host, _overlap_sums(masks, target)))


def _overlap_sums(masks: Array, target: Array) -> tuple[Array, Array, Array]:
    """Of :func:`soft_iou`: Σ m·t and Σ m (B, n), and Σ t (B,)."""
    return (masks * target[:, None]).sum((-2, -1)), masks.sum((-2, -1)), target.sum((-2, -1))


def _soft_iou(common: npt.NDArray[Any], area: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Float64Array:
    common = common.astype(np.float64)
    union = 255 * area.astype(np.float64) + whole.astype(np.float64)[:, None] - common
    quotients: Float64Array = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return quotients


def mask_scores(overlaps: Float64Array, quality: Float64Array, boxes: Float64Array) -> Float64Array:
    """Scores (B, n) of masks in 0–1, (s qᵃ + λ m) / (1 + λ); 0 for masks that share nothing with the heat map.

    The mean m of the IoU of a mask's box with the boxes of all masks of the frame is their agreement: prompts of
    different kinds that find the same object give the same mask. a is :data:`QUALITY`, λ :data:`AGREEMENT`.

    Args:
        overlaps: s (B, n), the soft IoU with the heat map.
        quality: q (B, n) the IoU with the true mask that the segmenter expects.
        boxes: (B, n, 4) extents of the masks.
    """
    agreement = iou(boxes[:, :, None], boxes[:, None]).mean(2)
    fit = overlaps * quality.clip(0, 1) ** QUALITY
    return np.where(overlaps > 0, (fit + AGREEMENT * agreement) / (1 + AGREEMENT), 0)


def extents(masks: Array) -> Float64Array:
    """Boxes (…, 4) x1, y1, x2, y2 of masks (…, h, w) of bool, in pixels; 0, 0, 0, 0 for an empty mask."""
    return _extents(*map(to_host, _sides(masks)))


def _sides(masks: Array) -> tuple[Any, Any]:
    """Which columns (…, w) and rows (…, h) of masks have a pixel."""
    return masks.any(-2), masks.any(-1)


def _extents(columns: npt.NDArray[np.bool_], rows: npt.NDArray[np.bool_]) -> Float64Array:
    sides = []
    for filled in (columns, rows):
        first = filled.argmax(-1)
        last = filled.shape[-1] - filled[..., ::-1].argmax(-1)
        not_empty = filled.any(-1)
        sides.append((first * not_empty, last * not_empty))
    (x1, x2), (y1, y2) = sides
    return np.stack([x1, y1, x2, y2], axis=-1).astype(np.float64)


def best_path(scores: Float64Array, boxes: Float64Array, before: Float64Array | None = None) -> npt.NDArray[np.int64]:
    """The best mask of each of T ≥ 1 frames, (T,) indices.

    Args:
        scores: (T, n) of the masks.
        boxes: (T, n, 4) of the masks.
        before: (4,) box of the frame before these; None at the beginning of a shot.
    """
    totals = scores[0] if before is None else scores[0] - JUMP * (1 - iou(before, boxes[0]))
    origins = []
    for last, these, own in zip(boxes, boxes[1:], scores[1:], strict=False):
        worth = totals[:, None] - JUMP * (1 - iou(last[:, None], these))
        origins.append(worth.argmax(0))
        totals = worth.max(0) + own
    path = [totals.argmax()]
    for origin in reversed(origins):
        path.append(origin[path[-1]])
    return np.array(path[::-1])


def to_host(array: "Array | np.generic") -> npt.NDArray[Any]:
    """A NumPy array of an array or tensor."""
    return np.asarray(array if isinstance(array, np.generic | np.ndarray) else array.cpu())

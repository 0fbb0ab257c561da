"""Refine heat maps with a promptable segmenter: one mask for each frame of a shot, and its box.

    frames ─ squares ─► segmenter's input;  heat maps ─ map_prompts ─► boxes at several thresholds, and the peak

The mask of a frame is the one that agrees with the heat map and with its neighbours in the shot. The soft IoU of a mask
m with the map s is Σ m·t / (Σ m + Σ t − Σ m·t), where t rises from 0 to 1 while s rises from a to b.
:func:`mask_scores` makes a score of it, of what the segmenter expects, and of the masks' agreement. Over the frames of
a shot the path x_1 … x_T takes one mask of each frame and maximises

    Σ_t score(x_t) − jump Σ_t (1 − IoU(x_t, x_{t+1})), with the IoU of the masks' boxes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import largest_boxes
from colocam.boxes.iou import iou
from colocam.errors import ColocamError
from colocam.segment.segmenter import LOWER_RIGHT, PADDING, POINT, UPPER_LEFT, Array, Prompts, Segmenter
from colocam.types import Float32Array, Float64Array, Image, Levels
from colocam.utils.device import parallel_map


class RefineSettings(NamedTuple):
    """Settings of :func:`refine`; they suit the maps of a kind of model.

    Attributes:
        thresholds: τ of the boxes that are prompts, relative to the maximum of the map.
        fade: foreground probabilities below which a pixel does not count in the comparison with masks, and from which
            it counts fully.
        quality: exponent of the segmenter's own expectation of a mask's quality, a factor of the soft IoU.
        agreement: weight of the agreement with the other masks of the frame.
        jump: cost of a change to a box without overlap from one frame to the next, in units of the score.
    """

    thresholds: tuple[float, ...] = (0.085, 0.16, 0.26, 0.35, 0.5)
    fade: tuple[float, float] = (0.0, 0.5)
    quality: float = 4.0
    agreement: float = 2.0
    jump: float = 0.3


SETTINGS = RefineSettings()


PADDING_COLOR = (124, 116, 104)
"""ImageNet's mean colour: 0 after normalisation, as SAM pads."""


BLUR = 1 / 32
"""Standard deviation of the blur before the peak is read, as a share of the map's width."""


class Square(NamedTuple):
    """B frames in squares, each in the upper left corner of its own.

    Attributes:
        images: (B, side, side, 3) RGB.
        sizes: (B, 2) width and height of the frames.
        inside: (B, 2) width and height of the frames in their squares.
    """

    images: Levels
    sizes: npt.NDArray[np.int64]
    inside: npt.NDArray[np.int64]


class MaskCandidates(NamedTuple):
    """The n masks that a segmenter gives for each of B frames.

    Attributes:
        logits: (B, n, h, w) over the squares, where the segmenter left them.
        overlaps: (B, n) soft IoU with the heat map.
        quality: (B, n) the IoU with the true mask that the segmenter expects.
        boxes: (B, n, 4) extents of the masks in pixels of their frames.
        square: the frames.
    """

    logits: Array
    overlaps: Float64Array
    quality: Float64Array
    boxes: Float64Array
    square: Square


class Refined(NamedTuple):
    """A mask (H, W) in pixels of its frame, its extent (4,), and its soft IoU with the heat map."""

    mask: npt.NDArray[np.bool_]
    box: Float64Array
    overlap: float


def refine(
    segmenter: Segmenter,
    images: Sequence[Image],
    levels: Levels,
    before: Float64Array | None = None,
    settings: RefineSettings = SETTINGS,
) -> list[Refined | None]:
    """The best mask of each of T frames of a shot; None where the map or the mask is empty.

    Args:
        segmenter: gives the masks.
        images: frames (H, W, 3).
        levels: (T, h, w) heat maps in 8 bits, each stretched over its frame.
        before: (4,) box of the frame before these in the same shot, in pixels of its frame.
        settings: how prompts are made and masks are chosen.
    """
    found = mask_candidates(segmenter, images, levels, settings)
    scores = mask_scores(found.overlaps, found.quality, found.boxes, settings)
    path = best_path(scores, found.boxes, settings.jump, before)
    rows = np.arange(len(path))
    chosen = to_host(found.logits[rows, path]).astype(np.float32, copy=False)
    inside = found.square.inside * (chosen.shape[-1] / segmenter.side)
    masks = parallel_map(mask_in_frame, chosen, found.square.sizes.tolist(), inside.tolist())
    boxes, overlaps = parallel_map(extents, masks), found.overlaps[rows, path].tolist()
    results = zip(masks, boxes, overlaps, strict=True)
    return [Refined(mask, box, overlap) if overlap and box.any() else None for mask, box, overlap in results]


def mask_candidates(
    segmenter: Segmenter, images: Sequence[Image], levels: Levels, settings: RefineSettings = SETTINGS
) -> MaskCandidates:
    """All masks of B frames (H, W, 3) with heat maps (B, h, w) in 8 bits, each stretched over its frame."""
    square = squares(images, segmenter.side)
    found = segmenter.masks(segmenter.embed(square.images), map_prompts(levels, square, settings.thresholds))
    cells = found.logits.shape[-1]
    logits = found.logits.reshape(len(images), -1, cells, cells)
    target = maps_in_squares(targets(levels, settings.fade), square, cells)
    inside = square.inside * cells / segmenter.side
    masks = (logits > 0) * _like(_within(inside, cells), logits)[:, None]
    boxes = extents(masks) * np.tile(square.sizes / inside, 2)[:, None]
    quality = to_host(found.quality).reshape(len(images), -1).astype(np.float64)
    if not np.isfinite(quality).all():
        raise ColocamError(f"the segmenter {segmenter.name} gives values that are not finite: its weights are damaged")
    return MaskCandidates(logits, soft_iou(masks, _like(target, logits)), quality, boxes, square)


def _within(inside: Float64Array, cells: int) -> npt.NDArray[np.bool_]:
    """(B, cells, cells) cells whose centre lies in the frame."""
    centres = np.arange(cells) + 0.5
    return (centres < inside[:, :1])[:, None] & (centres < inside[:, 1:])[:, :, None]


def _like(array: npt.NDArray[Any], example: Array) -> Array:
    """An array where ``example`` is."""
    if isinstance(example, np.ndarray):
        return array
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not

    return torch.from_numpy(array).to(example.device)


def squares(images: Sequence[Image], side: int) -> Square:
    """Fit frames (H, W, 3), each of its own size, into squares."""
    sizes = np.array([image.shape[1::-1] for image in images]).reshape(-1, 2)
    inside = np.maximum(np.rint(sizes * (side / sizes.max(1, keepdims=True, initial=1))), 1).astype(np.int64)
    filled = np.empty((len(images), side, side, 3), np.uint8)
    parallel_map(_fit, images, filled, inside.tolist())
    return Square(filled, sizes, inside)


def _fit(image: Image, square: Levels, inside: tuple[int, int]) -> None:
    width, height = inside
    way = cv2.INTER_AREA if width < image.shape[1] else cv2.INTER_LINEAR
    cv2.resize(image, (width, height), square[:height, :width], interpolation=way)
    square[height:] = square[:height, width:] = PADDING_COLOR


def maps_in_squares(levels: Levels, square: Square, cells: int) -> Levels:
    """Maps (B, h, w), each stretched over its frame, on a grid of (cells, cells) over the square; 0 in the padding."""
    placed = np.zeros((len(levels), cells, cells), np.uint8)
    scales = square.inside * (cells / square.images.shape[1]) / levels.shape[:0:-1]
    parallel_map(_warp, levels, placed, scales.tolist())
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
    _warp(logits, full, (width / inside[0], height / inside[1]), cv2.BORDER_REPLICATE)
    mask: npt.NDArray[np.bool_] = full > 0
    return mask


def _warp(
    source: cv2.typing.MatLike, out: cv2.typing.MatLike, scale: tuple[float, float], border: int = cv2.BORDER_CONSTANT
) -> None:
    """Interpolate ``source`` at the pixels of ``out``, of which ``scale`` make one of the source along x and y."""
    x, y = 1 / scale[0], 1 / scale[1]
    back = np.array([[x, 0, (x - 1) / 2], [0, y, (y - 1) / 2]])  # centres of pixels are at half numbers
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    cv2.warpAffine(source, back, out.shape[1::-1], out, flags, border)


def map_prompts(levels: Levels, square: Square, thresholds: Sequence[float]) -> Prompts:
    """Prompts for maps (B, h, w) in 8 bits: a box for each of ``thresholds``, then the peak of the blurred map.

    Args:
        levels: maps, each stretched over its frame.
        square: the frames, in whose squares the points are given.
        thresholds: τ, relative to the maximum of each map.
    """
    height, width = levels.shape[1:]
    scales = (square.inside / (width, height))[:, None, None]  # (B, 1, 1, 2)
    boxes = np.stack([largest_boxes(levels, threshold)[0] for threshold in thresholds], axis=1)
    corners = boxes.reshape(len(levels), -1, 2, 2) * scales
    peaks = ((peaks_of(levels) + 0.5)[:, None, None] * scales) - 0.5
    points = np.concatenate([corners, np.concatenate([peaks, np.zeros_like(peaks)], axis=2)], axis=1)
    labels = np.array([(UPPER_LEFT, LOWER_RIGHT)] * len(thresholds) + [(POINT, PADDING)])
    return Prompts(points.astype(np.float32), np.tile(labels, (len(levels), 1, 1)))


def peaks_of(levels: Levels) -> Float32Array:
    """(B, 2) x, y of the highest pixel of each blurred map."""
    return np.array(parallel_map(_peak, levels), np.float32).reshape(-1, 2)


def _peak(level: Levels) -> Sequence[int]:
    blurred = cv2.GaussianBlur(level.astype(np.float32), (0, 0), BLUR * level.shape[1])
    return cv2.minMaxLoc(blurred)[3]


def targets(levels: Levels, fade: tuple[float, float]) -> Levels:
    """Targets clip((s − a) / (b − a), 0, 1) in 8 bits, for maps s in 8 bits and (a, b) = ``fade``."""
    low, high = fade
    table = np.clip((np.arange(256) - 255 * low) / (high - low), 0, 255).astype(np.uint8)
    faded: Levels = table[levels]
    return faded


def soft_iou(masks: Array, target: Array) -> Float64Array:
    """Soft IoU (B, n) of masks (B, n, h, w) of bool and targets (B, h, w) in 8 bits; 0 where both are empty.

    Sums are of integers, so that arrays and tensors of any device give the same numbers.
    """
    common = to_host((masks * target[:, None]).sum((-2, -1))).astype(np.float64)
    area = 255 * to_host(masks.sum((-2, -1))).astype(np.float64)
    union = area + to_host(target.sum((-2, -1))).astype(np.float64)[:, None] - common
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def mask_scores(
    overlaps: Float64Array, quality: Float64Array, boxes: Float64Array, settings: RefineSettings
) -> Float64Array:
    """Scores (B, n) of masks in 0–1, (s qᵃ + λ m) / (1 + λ); 0 for masks that share nothing with the heat map.

    The mean m of the IoU of a mask's box with the boxes of all masks of the frame is their agreement: prompts of
    different kinds that find the same object give the same mask.

    Args:
        overlaps: s (B, n), the soft IoU with the heat map.
        quality: q (B, n) the IoU with the true mask that the segmenter expects.
        boxes: (B, n, 4) extents of the masks.
        settings: a and λ.
    """
    agreement = iou(boxes[:, :, None], boxes[:, None]).mean(2)
    fit = overlaps * quality.clip(0, 1) ** settings.quality
    return np.where(overlaps > 0, (fit + settings.agreement * agreement) / (1 + settings.agreement), 0)


def extents(masks: Array) -> Float64Array:
    """Boxes (…, 4) x1, y1, x2, y2 of masks (…, h, w) of bool, in pixels; 0, 0, 0, 0 for an empty mask."""
    sides = []
    for axis in (-2, -1):
        filled = to_host(masks.any(axis))
        first, last = filled.argmax(-1), filled.shape[-1] - filled[..., ::-1].argmax(-1)
        some = filled.any(-1)
        sides.append((first * some, last * some))
    (x1, x2), (y1, y2) = sides
    return np.stack([x1, y1, x2, y2], axis=-1).astype(np.float64)


def best_path(
    scores: Float64Array, boxes: Float64Array, jump: float, before: Float64Array | None = None
) -> npt.NDArray[np.int64]:
    """The best mask of each frame, (T,) indices.

    Args:
        scores: (T, n) of the masks.
        boxes: (T, n, 4) of the masks.
        jump: cost of a change to a box without overlap.
        before: (4,) box of the frame before these; None at the beginning of a shot.
    """
    length, count = scores.shape
    origins = np.zeros((length, count), np.int64)
    totals = np.zeros(count)
    for at in range(length):
        last = boxes[at - 1] if at else before
        if last is not None:
            worth = totals[:, None] - jump * (1 - iou(np.broadcast_to(last, (count, 4))[:, None], boxes[at]))
            origins[at], totals = worth.argmax(0), worth.max(0)
        totals = totals + scores[at]
    path = np.zeros(length, np.int64)
    if length:
        path[-1] = totals.argmax()
    for at in range(length - 1, 0, -1):
        path[at - 1] = origins[at, path[at]]
    return path


def to_host(array: "Array | np.generic") -> npt.NDArray[Any]:
    """A NumPy array of an array or tensor."""
    return np.asarray(array if isinstance(array, np.generic | np.ndarray) else array.cpu())

"""Refine heat maps with a promptable segmenter: one mask for each frame of a shot, and its box."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.segment.map_prompts import map_prompts
from colocam.segment.mask_choice import best_path, extents, mask_scores, soft_iou, targets, to_host
from colocam.segment.refine_settings import SETTINGS, RefineSettings
from colocam.segment.segmenter import Array, Segmenter
from colocam.segment.square import Square, maps_in_squares, mask_in_frame, squares
from colocam.types import Float64Array, Image, Levels
from colocam.utils.device import parallel_map


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

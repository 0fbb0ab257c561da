"""A crop around the object that a decoder found, which the class is read from (docs/method/classifier.md).

With S the map of the decoder and A the LayerCAM of the frame's class, smoothed and scaled to 0–1, the box encloses the
connected region of S ⊙ A² above :data:`THRESHOLD` of its maximum that holds the maximum.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.cams.normalise import min_max

SIDE = 56
"""Side of the grid on which the region is found, in cells."""
THRESHOLD = 0.2
"""Share of the maximum; boxes of the preset ``resnet50`` are read at the same."""
EXPANSION = 1.2
"""Sides of a crop, relative to those of the box."""
LEAST_SIDE = 0.16
"""Of a crop, relative to the frame: a smaller one would show blurred pixels."""
REACH = 2
"""Cells that the region grows in one step, so a gap of one cell does not end it."""


def object_boxes(maps: Tensor, activations: Tensor) -> Tensor:
    """Boxes (B, 4) x1, y1, x2, y2 in 0–1 of frames; the whole frame where nothing is found.

    Args:
        maps: S, (B, M, M) in 0–1.
        activations: (B, h, w) LayerCAM of each frame's class, of any scale.
    """
    smooth = min_max(activations.float())[:, None]
    for _ in range(2):
        smooth = F.avg_pool2d(smooth, 3, stride=1, padding=1, count_include_pad=False)
    weight = F.interpolate(smooth, size=(SIDE, SIDE), mode="bilinear", align_corners=False).square()
    small = F.adaptive_avg_pool2d(maps[:, None].float(), SIDE) * weight
    region = _region_of_peak(small)[:, 0]
    columns, rows = region.amax(1), region.amax(2)
    starts = torch.stack([columns.argmax(1), rows.argmax(1)], 1)
    ends = SIDE - torch.stack([columns.flip(1).argmax(1), rows.flip(1).argmax(1)], 1)
    return torch.cat([starts, ends], 1).to(small.dtype) / SIDE


def expanded(boxes: Tensor, factor: Tensor | float = EXPANSION) -> Tensor:
    """Boxes (B, 4) with sides multiplied by ``factor``, a number or (B, 1), moved into the frame, at most the frame."""
    sides = ((boxes[:, 2:] - boxes[:, :2]) * factor).clamp(min=LEAST_SIDE).clamp(max=1.0)
    start = (boxes[:, :2] + boxes[:, 2:] - sides) / 2
    start = torch.minimum(start.clamp(min=0.0), 1 - sides)
    return torch.cat([start, start + sides], 1)


def crop_boxes(frames: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Cut (B, 3, H, W) frames to boxes (B, 4) in 0–1: (B, 3, size, size) floats; x2 < x1 mirrors a crop."""
    steps = (torch.arange(2 * size, device=frames.device, dtype=torch.float32) + 0.5) / size - 1  # −1 … 1 of the box
    centre, half = boxes[:, :2] + boxes[:, 2:] - 1, boxes[:, 2:] - boxes[:, :2]
    x, y = (centre[:, axis, None] + half[:, axis, None] * steps for axis in (0, 1))
    grid = torch.stack([x[:, None, :].expand(-1, 2 * size, -1), y[:, :, None].expand(-1, -1, 2 * size)], 3)
    sampled = F.grid_sample(frames.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return F.avg_pool2d(sampled, 2)  # a mean of four samples: a large crop is sampled too thinly by one


def _region_of_peak(weights: Tensor) -> Tensor:
    """(B, 1, h, w) → 1 in the region above :data:`THRESHOLD` of the maximum that holds the maximum, else 0.

    Grown step by step, as morphological reconstruction does, since a connected region has no closed form. A frame
    without a positive weight is 1 everywhere.
    """
    peak = weights.amax(dim=(2, 3), keepdim=True)
    allowed = (weights >= THRESHOLD * peak).to(weights.dtype)  # all of it where the peak is 0
    region = (weights >= peak).to(weights.dtype)
    for _ in range(SIDE // REACH):
        region = F.max_pool2d(region, 2 * REACH + 1, stride=1, padding=REACH) * allowed
    return region

"""Labels of corrected frames: foreground inside the box, background outside it; sparse seeds, or all pixels."""

import torch
from torch import Tensor

from colocam.config import Seeds
from colocam.training.own_labels import CORE
from colocam.training.seeds import BACKGROUND, FOREGROUND, UNKNOWN, dilate, quantile_from_top, sample_pixels

INSIDE_TOP = 0.5
"""Share of a box's pixels, those with the highest map, that foreground seeds are sampled from."""


def box_seeds(
    maps: Tensor, inside: Tensor, settings: Seeds, foreground_noise: Tensor, background_noise: Tensor
) -> Tensor:
    """Sample the labelled pixels of corrected frames.

    Foreground pixels are sampled inside the boxes in proportion to the map, background pixels uniformly outside; no
    seed crosses the side of a box. A frame without a box is background everywhere.

    Args:
        maps: (B, H, W) in 0–1, a guess where the object is inside its box.
        inside: (B, H, W) bool, the boxes.
        settings: numbers of pixels and side of the squares that they are dilated to.
        foreground_noise: (B, H, W) of :func:`colocam.training.seeds.seed_noise`.
        background_noise: (B, H, W) of it.

    Returns:
        (B, H, W) int64: 0 background, 1 foreground, 255 unknown.
    """
    values, boxes = maps.flatten(1), inside.flatten(1)
    bright = boxes & (values >= quantile_from_top(values, boxes, INSIDE_TOP))
    # A map that is zero in the whole box must not make one pixel certain.
    foreground = sample_pixels(values + 0.05, bright, settings.foreground, foreground_noise.flatten(1))
    background = sample_pixels(torch.ones_like(values), ~boxes, settings.background, background_noise.flatten(1))
    wide, empty = (dilate(mask.view_as(maps), settings.dilation) for mask in (foreground, background))
    labels = torch.full_like(maps, UNKNOWN, dtype=torch.int64)
    return labels.masked_fill(wide & inside, FOREGROUND).masked_fill(empty & ~inside, BACKGROUND)


def dense_labels(maps: Tensor, inside: Tensor, core: float = CORE) -> Tensor:
    """Labels of all pixels of corrected frames, as those of a round of training with the boxes of a person.

    Inside the boxes, pixels of at least ``core`` of the map's maximum there are foreground and the others are unknown:
    an object does not fill its box. A frame without a box is background everywhere.

    Args:
        maps: (B, H, W) in 0–1, a guess where the object is inside its box.
        inside: (B, H, W) bool, the boxes.
        core: share of the maximum inside the boxes; 0: the whole box is foreground.

    Returns:
        (B, H, W) int64: 0 background, 1 foreground, 255 unknown.
    """
    highest = torch.where(inside, maps, 0.0).amax((1, 2), keepdim=True)
    labels = torch.where(maps >= core * highest, FOREGROUND, UNKNOWN)
    return torch.where(inside, labels, BACKGROUND)

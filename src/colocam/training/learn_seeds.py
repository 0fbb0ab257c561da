"""Labels of corrected frames: background everywhere outside the box, foreground in the brightest part of its inside."""

import torch
from torch import Tensor

from colocam.training.own_labels import CORE
from colocam.training.seeds import BACKGROUND, FOREGROUND, UNKNOWN


def corrected_labels(maps: Tensor, inside: Tensor, core: float = CORE) -> Tensor:
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

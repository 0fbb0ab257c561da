"""From maps to boxes: 8-bit levels, thresholds, contours, candidate boxes, IoU, masks as text."""

from typing import TYPE_CHECKING

from colocam.boxes.candidates import Candidates, candidate_boxes
from colocam.boxes.choosers import CHOOSERS, Chooser
from colocam.boxes.extract import largest_boxes, scale_boxes
from colocam.boxes.instance_boxes import instance_boxes
from colocam.boxes.quantize import to_8bit
from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.boxes.levels import boxes_at_levels
    from colocam.boxes.otsu import level_histogram, otsu_levels, otsu_of_histogram

__all__ = [
    "CHOOSERS",
    "Candidates",
    "Chooser",
    "boxes_at_levels",
    "candidate_boxes",
    "instance_boxes",
    "largest_boxes",
    "level_histogram",
    "otsu_levels",
    "otsu_of_histogram",
    "scale_boxes",
    "to_8bit",
]

__getattr__, __dir__ = lazy_names(  # these import torch, which an exported model does not need
    __name__,
    {
        "boxes_at_levels": "colocam.boxes.levels",
        "level_histogram": "colocam.boxes.otsu",
        "otsu_levels": "colocam.boxes.otsu",
        "otsu_of_histogram": "colocam.boxes.otsu",
    },
)

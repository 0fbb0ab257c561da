"""From maps to boxes: 8-bit levels, thresholds, contours, candidate boxes, IoU, masks as text."""

from colocam.boxes.candidates import CHOOSERS, Candidates, Chooser, candidate_boxes, instance_boxes
from colocam.boxes.extract import boxes_at_levels, largest_boxes, scale_boxes
from colocam.boxes.quantize import otsu_levels, to_8bit

__all__ = [
    "CHOOSERS",
    "Candidates",
    "Chooser",
    "boxes_at_levels",
    "candidate_boxes",
    "instance_boxes",
    "largest_boxes",
    "otsu_levels",
    "scale_boxes",
    "to_8bit",
]

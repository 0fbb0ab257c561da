"""From maps to boxes: 8-bit levels, Otsu's threshold, the published box at one threshold and at all."""

from colocam.boxes.extract import largest_boxes
from colocam.boxes.levels import boxes_at_levels
from colocam.boxes.otsu import level_histogram, otsu_levels, otsu_of_histogram
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes

__all__ = [
    "boxes_at_levels",
    "largest_boxes",
    "level_histogram",
    "otsu_levels",
    "otsu_of_histogram",
    "scale_boxes",
    "to_8bit",
]

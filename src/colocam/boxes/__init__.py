"""From maps to boxes: 8-bit levels, Otsu's thresholds, the published box at one threshold and at all, scaling."""

from colocam.boxes.extract import largest_boxes
from colocam.boxes.levels import boxes_at_levels
from colocam.boxes.otsu import level_histogram, otsu_levels, otsu_of_histogram, pooled_threshold
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes

__all__ = [
    "boxes_at_levels",
    "largest_boxes",
    "level_histogram",
    "otsu_levels",
    "otsu_of_histogram",
    "pooled_threshold",
    "scale_boxes",
    "to_8bit",
]

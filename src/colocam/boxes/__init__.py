"""From maps to boxes: 8-bit levels, Otsu's threshold, the published box at one threshold and at all, blobs, tracks."""

from colocam.boxes.candidates import Candidates, candidate_boxes
from colocam.boxes.extract import largest_boxes
from colocam.boxes.instances import instance_boxes
from colocam.boxes.levels import boxes_at_levels
from colocam.boxes.otsu import level_histogram, otsu_levels, otsu_of_histogram
from colocam.boxes.quantize import to_8bit
from colocam.boxes.scale import scale_boxes
from colocam.boxes.tracks import BestPath, best_path, smooth_box

__all__ = [
    "BestPath",
    "Candidates",
    "best_path",
    "boxes_at_levels",
    "candidate_boxes",
    "instance_boxes",
    "largest_boxes",
    "level_histogram",
    "otsu_levels",
    "otsu_of_histogram",
    "scale_boxes",
    "smooth_box",
    "to_8bit",
]

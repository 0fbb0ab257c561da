"""Measures against true boxes, masks and presence, and of the steadiness of boxes."""

from colocam.evaluation.metrics.dense_scores import steadiness
from colocam.evaluation.metrics.hits import (
    average_precision,
    best_overlaps,
    box_hits,
    calibration_error,
    max_box_acc,
    pixel_histograms,
    pxap,
    top_k,
)
from colocam.evaluation.metrics.object_scores import Instances, instance_scores, instances_of_maps
from colocam.evaluation.metrics.protocols import (
    PROTOCOLS,
    Accuracy,
    Average,
    CorLoc,
    Frames,
    accuracy,
    best_threshold,
    confusion,
    corloc,
)

__all__ = [
    "PROTOCOLS",
    "Accuracy",
    "Average",
    "CorLoc",
    "Frames",
    "Instances",
    "accuracy",
    "average_precision",
    "best_overlaps",
    "best_threshold",
    "box_hits",
    "calibration_error",
    "confusion",
    "corloc",
    "instance_scores",
    "instances_of_maps",
    "max_box_acc",
    "pixel_histograms",
    "pxap",
    "steadiness",
    "top_k",
]

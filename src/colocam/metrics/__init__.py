"""Measures against true boxes, masks and presence, and of the steadiness of boxes."""

from colocam.metrics.bootstrap import Frames, percent_interval, resampled_means
from colocam.metrics.box_accuracy import max_box_acc, top_k
from colocam.metrics.hits import PUBLISHED_THRESHOLDS, best_overlaps, box_hits
from colocam.metrics.instance_scores import instance_scores, instances_of_maps
from colocam.metrics.presence_scores import average_precision, calibration_error
from colocam.metrics.protocols import PROTOCOLS, accuracy, best_threshold, corloc
from colocam.metrics.pxap import pixel_histograms, pxap
from colocam.metrics.scores import Accuracy, Average, CorLoc, Instances, InstanceScores
from colocam.metrics.steadiness import Steadiness, steadiness

__all__ = [
    "PROTOCOLS",
    "PUBLISHED_THRESHOLDS",
    "Accuracy",
    "Average",
    "CorLoc",
    "Frames",
    "InstanceScores",
    "Instances",
    "Steadiness",
    "accuracy",
    "average_precision",
    "best_overlaps",
    "best_threshold",
    "box_hits",
    "calibration_error",
    "corloc",
    "instance_scores",
    "instances_of_maps",
    "max_box_acc",
    "percent_interval",
    "pixel_histograms",
    "pxap",
    "resampled_means",
    "steadiness",
    "top_k",
]

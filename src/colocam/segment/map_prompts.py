"""Prompts for a segmenter, read from a heat map: boxes at several thresholds, and the peak."""

from collections.abc import Sequence

import cv2
import numpy as np

from colocam.boxes.extract import largest_boxes
from colocam.segment.segmenter import LOWER_RIGHT, PADDING, POINT, UPPER_LEFT, Prompts
from colocam.segment.square import Square
from colocam.types import Float32Array, Levels
from colocam.utils.device import parallel_map

BLUR = 1 / 32
"""Standard deviation of the blur before the peak is read, as a share of the map's width."""


def map_prompts(levels: Levels, square: Square, thresholds: Sequence[float]) -> Prompts:
    """Prompts for maps (B, h, w) in 8 bits: a box for each of ``thresholds``, then the peak of the blurred map.

    Args:
        levels: maps, each stretched over its frame.
        square: the frames, in whose squares the points are given.
        thresholds: τ, relative to the maximum of each map.
    """
    height, width = levels.shape[1:]
    scales = (square.inside / (width, height))[:, None, None]  # (B, 1, 1, 2)
    boxes = np.stack([largest_boxes(levels, threshold)[0] for threshold in thresholds], axis=1)
    corners = boxes.reshape(len(levels), -1, 2, 2) * scales
    peaks = ((peaks_of(levels) + 0.5)[:, None, None] * scales) - 0.5
    points = np.concatenate([corners, np.concatenate([peaks, np.zeros_like(peaks)], axis=2)], axis=1)
    labels = np.array([(UPPER_LEFT, LOWER_RIGHT)] * len(thresholds) + [(POINT, PADDING)])
    return Prompts(points.astype(np.float32), np.tile(labels, (len(levels), 1, 1)))


def peaks_of(levels: Levels) -> Float32Array:
    """(B, 2) x, y of the highest pixel of each blurred map."""
    return np.array(parallel_map(_peak, levels), np.float32).reshape(-1, 2)


def _peak(level: Levels) -> Sequence[int]:
    blurred = cv2.GaussianBlur(level.astype(np.float32), (0, 0), BLUR * level.shape[1])
    return cv2.minMaxLoc(blurred)[3]

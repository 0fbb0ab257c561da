"""Observations of frames, as a network makes them: no model, no video."""

import numpy as np

from colocam.boxes.candidates import Candidates
from colocam.temporal.presence import Calibration
from colocam.temporal.smoothing import FrameObservation
from colocam.types import VideoFrame

PLAIN = Calibration(1.0, 0.0)
PICTURE = np.zeros((4, 4, 3), np.uint8)


def observation(time, *boxes, cut=False, score=0.7, thresholds=0.5):
    """A frame with these candidates, whose map is the first of them."""
    found = np.array(boxes, float).reshape(-1, 4)
    candidates = Candidates(found, *(np.broadcast_to(of, len(found)) for of in (score, thresholds)))
    levels = np.zeros((96, 96), np.uint8)
    for x1, y1, x2, y2 in found[:1].round().astype(int):
        levels[y1 : y2 + 1, x1 : x2 + 1] = 255
    heat, frame = levels / np.float32(255), VideoFrame(time, time / 25, PICTURE)
    return FrameObservation(frame, np.zeros(3), heat, levels, candidates, np.zeros(3), cut)


def moved(box, dx, dy=0):
    return (box[0] + dx, box[1] + dy, box[2] + dx, box[3] + dy)

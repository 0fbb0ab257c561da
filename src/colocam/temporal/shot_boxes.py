"""The boxes of single labelled frames, chosen together within each clip, as a user gets them from a video."""

from itertools import groupby

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import eligible
from colocam.boxes.choosers import find_chooser
from colocam.temporal.path import NONE, BestPath
from colocam.types import Float64Array, Levels


def boxes_of_shots(
    maps: Levels, threshold: float, chooser: str, clips: npt.NDArray[np.int64]
) -> tuple[Float64Array, npt.NDArray[np.bool_]]:
    """The box of each frame by a chooser and, if it works by the shot, by the best path through each clip.

    Args:
        maps: (N, h, w) in 8 bits, in order.
        threshold: τ in 0–1.
        chooser: name in ``CHOOSERS``.
        clips: (N,) clip of each frame; frames of one clip are neighbours.

    Returns:
        boxes (N, 4) in map pixels, and (N,) whether there is one.
    """
    rule = find_chooser(chooser)
    candidates = rule.candidates(maps, threshold)
    boxes, found = np.zeros((len(maps), 4)), np.zeros(len(maps), bool)
    for _, group in groupby(range(len(maps)), key=lambda frame: int(clips[frame])):
        frames = list(group)
        if rule.by_shot:
            path = BestPath(len(frames))
            choices = [choice for frame in frames for choice in path.push(eligible(candidates[frame]))]
            choices += path.finish()
        else:
            choices = [0 if len(candidates[frame].boxes) else NONE for frame in frames]
        for frame, choice in zip(frames, choices, strict=True):
            if choice != NONE:
                boxes[frame], found[frame] = candidates[frame].boxes[choice], True
    return boxes, found

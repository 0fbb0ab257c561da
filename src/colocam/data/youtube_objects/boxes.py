"""Boxes of the archive in pixels of the stored frame, from 0; known errors of the labels are corrected."""

from pathlib import Path

import numpy as np

from colocam.data.youtube_objects.matlab import Corners
from colocam.data.youtube_objects.shots import Notes
from colocam.types import Box


def correct_boxes(
    corners: Corners,
    size: tuple[int, int],
    frame: Path,
    notes: Notes,
    *,
    first: int,
    drawn_on: tuple[int, int] | None = None,
) -> list[Box]:
    """Return the usable boxes of one frame.

    Swapped corners are put in order; corners outside the frame are moved to its first or last pixel; a box without
    width or height is left out. Each correction is noted.

    Args:
        corners: (k, 4) as the archive has them.
        size: width and height of the stored frame.
        frame: the image file, for the notes.
        notes: takes a note of each correction.
        first: coordinate of the first pixel, 1 in version 2.2.
        drawn_on: width and height of the frame that the corners refer to, by default ``size``.
    """
    last = np.array(size) - 1
    boxes = []
    for corner in corners - first:
        if drawn_on is not None and drawn_on != size:
            notes.add("boxes scaled from the size that a list gives to that of the stored frame", frame)
            corner = corner * np.tile(np.array(size) / drawn_on, 2)  # noqa: PLW2901
        if not np.isfinite(corner).all():
            notes.add("boxes left out, which are not numbers", frame)
            continue
        lower, upper = np.minimum(corner[:2], corner[2:]), np.maximum(corner[:2], corner[2:])
        if (lower != corner[:2]).any():
            notes.add("boxes with swapped corners put in order", frame)
        if (lower < 0).any():
            notes.add("boxes with negative corners clipped to 0", frame)
        if (upper > last).any():
            notes.add("boxes that pass the right or bottom edge clipped to the last pixel", frame)
        box = Box(*np.clip(lower, 0, last).tolist(), *np.clip(upper, 0, last).tolist())
        if box.x1 < box.x2 and box.y1 < box.y2:
            boxes.append(box)
        else:
            notes.add("boxes left out, which have no area inside the frame", frame)
    return boxes

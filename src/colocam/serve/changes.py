"""What another model changes: the boxes that moved most."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.serve.film_results import FilmResults
from colocam.types import Float64Array

SAME = 0.95
"""Boxes that overlap by this IoU or more have not moved for a person who looks at them."""
APART = 12
"""Frames between two that are shown of one film, so that not all show one moment."""


class Moved(NamedTuple):
    """A frame whose box is another with another model.

    Attributes:
        position: of the frame in its film.
        overlap: IoU of both boxes; 0 where one model finds none.
    """

    position: int
    overlap: float


def overlaps(before: FilmResults, after: FilmResults) -> Float64Array:
    """(N,) IoU of the boxes of two models in each frame of a film; 1 where both find none."""
    found = iou(before.rows.box, after.rows.box)
    neither: npt.NDArray[np.bool_] = np.isnan(before.rows.box[:, 0]) & np.isnan(after.rows.box[:, 0])
    return np.where(neither, 1.0, found)


def most_moved(overlap: Float64Array, most: int) -> list[Moved]:
    """The frames of a film whose boxes moved most, largest change first, apart from each other."""
    chosen: list[Moved] = []
    for position in np.argsort(overlap, kind="stable").tolist():
        if overlap[position] >= SAME or len(chosen) == most:
            break
        if all(abs(position - one.position) >= APART for one in chosen):
            chosen.append(Moved(position, float(overlap[position])))
    return chosen

"""Shots with their labels, which every layout of the data set is read into."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.types import Split

CLASSES = ("aeroplane", "bird", "boat", "car", "cat", "cow", "dog", "horse", "motorbike", "train")
"""The tags; the index of a class is its number in the lists of the literature."""

Corners = npt.NDArray[np.float64]
"""(k, 4) x0, y0, x1, y1 as the archive has them."""


@dataclass(frozen=True, slots=True)
class Shot:
    """Consecutive frames of one video.

    Attributes:
        name: e.g. ``aeroplane/0001/001`` (v1.0), ``aeroplane/video-0001/shot-000000`` (v2.2).
        tag: the class.
        video: name of the video, the shot's without its last part.
        split: of the archive; validation videos still belong to train, where no list names them.
        frames: the image files in order.
        labels: boxes of the labelled ones, in the archive's coordinates.
        drawn_on: width and height of the frames that the boxes refer to, where a list states them.
    """

    name: str
    tag: str
    video: str
    split: Split
    frames: tuple[Path, ...] = field(repr=False)
    labels: Mapping[Path, Corners] = field(repr=False)
    drawn_on: Mapping[Path, tuple[float, float]] = field(repr=False, default_factory=dict)


class Notes:
    """Irregularities of an archive: one line for each kind, with a count and the first example."""

    def __init__(self) -> None:
        self._examples: dict[str, list[object]] = defaultdict(list)

    def add(self, kind: str, example: object) -> None:
        """Note an ``example`` of ``kind`` (a plural, such as "empty shot folders left out")."""
        self._examples[kind].append(example)

    def lines(self) -> list[str]:
        """All kinds in the order in which they were found."""
        return [f"{len(found)} {kind} (first: {found[0]})" for kind, found in self._examples.items()]

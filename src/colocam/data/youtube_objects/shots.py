"""What every layout of the data set is read into."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from colocam.data.youtube_objects.matlab import Corners
from colocam.types import Split

CLASSES = ("aeroplane", "bird", "boat", "car", "cat", "cow", "dog", "horse", "motorbike", "train")
"""The tags; a class's place is its number in the lists of the literature."""

Version = Literal["1.0", "2.2"]


@dataclass(frozen=True, slots=True)
class Shot:
    """Consecutive frames of one video.

    Attributes:
        name: e.g. ``aeroplane/0001/001`` (v1.0), ``aeroplane/video-0001/shot-000000`` (v2.2).
        tag: the class.
        video: name of the video, the shot's without its last part.
        split: as the archive has it: validation videos still belong to train, where no list names them.
        frames: the pictures in order.
        labels: boxes of the labelled ones, in the archive's coordinates.
        drawn_on: width and height of the frames that the boxes were drawn on, where a list says so.
    """

    name: str
    tag: str
    video: str
    split: Split
    frames: tuple[Path, ...] = field(repr=False)
    labels: Mapping[Path, Corners] = field(repr=False)
    drawn_on: Mapping[Path, tuple[int, int]] = field(repr=False, default_factory=dict)


class Notes:
    """What is odd in an archive, gathered: one line for each kind, with a count and the first place."""

    def __init__(self) -> None:
        self._places: dict[str, list[str]] = defaultdict(list)

    def add(self, kind: str, place: object) -> None:
        """Note that ``kind`` (a plural, such as "empty shot folders left out") was found at ``place``."""
        self._places[kind].append(str(place))

    def lines(self) -> list[str]:
        """All kinds in the order in which they were found."""
        return [f"{len(places)} {kind} (first: {places[0]})" for kind, places in self._places.items()]

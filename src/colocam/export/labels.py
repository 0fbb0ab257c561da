"""What every label format is made from: the rows of a table as columns, with the video they belong to."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from colocam.export.row_tracks import Track, follow
from colocam.types import Float64Array
from colocam.video.description import SourceVideo

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelledVideo:
    """The rows of one table, in the order of frames; n rows.

    Attributes:
        name: unique among the videos of an export; part of file names.
        source: the video.
        frame: (n,) index of the frame in the video, from 0.
        pts: (n,) presentation time in seconds.
        tag: (n,) class.
        box: (n, 4) x1, y1, x2, y2 in pixels of the original video, not-a-number where nothing is there.
        probability: (n,) of the class, 0–1 or not-a-number.
        score: (n,) of the box, 0–1 or not-a-number.
        presence: (n,) of the object in the frame, 0–1 or not-a-number.
        track: (n,) number of the object, −1 where the table states none.
        mask: (n,) COCO run lengths, empty where there is none.
        pictures: file names of the frames in this export, where the video is a folder of pictures that keep theirs.
    """

    name: str
    source: SourceVideo
    frame: Integers = field(repr=False)
    pts: Float64Array = field(repr=False)
    tag: list[str] = field(repr=False)
    box: Float64Array = field(repr=False)
    probability: Float64Array = field(repr=False)
    score: Float64Array = field(repr=False)
    presence: Float64Array = field(repr=False)
    track: Integers = field(repr=False)
    mask: list[str] = field(repr=False)
    pictures: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def objects(self) -> Integers:
        """Rows that have a box."""
        return np.flatnonzero(~np.isnan(self.box[:, 0]))

    @cached_property
    def listed(self) -> Integers:
        """Frames that the table speaks of, sorted; those without a box are empty, all others are not labelled."""
        return np.unique(self.frame)

    @cached_property
    def objects_of(self) -> dict[int, list[int]]:
        """Rows with a box of each listed frame."""
        rows: dict[int, list[int]] = {int(frame): [] for frame in self.listed}
        for row in self.objects.tolist():
            rows[int(self.frame[row])].append(row)
        return rows

    @cached_property
    def tracks(self) -> list[Track]:
        """Objects followed over time, numbered from 1."""
        rows = self.objects
        tags = [self.tag[row] for row in rows.tolist()]
        return follow(rows, self.frame[rows], tags, self.track[rows], self.listed, self.name)

    @cached_property
    def track_of(self) -> dict[int, Track]:
        """The track of each row with a box."""
        return {int(row): track for track in self.tracks for row in track.rows}

    def picture(self, frame: int) -> str:
        """Name of the picture of a frame, without its ending."""
        return self.picture_file(frame).rpartition(".")[0]

    def picture_file(self, frame: int) -> str:
        """File name of the picture of a frame."""
        return self.pictures[frame] if self.pictures else f"{self.name}_{frame:06d}.jpg"


@dataclass(frozen=True)
class LabelSet:
    """All videos of one export."""

    videos: list[LabelledVideo]

    @cached_property
    def classes(self) -> list[str]:
        """All classes that have a box, sorted; a class is numbered by its place."""
        return sorted({video.tag[row] for video in self.videos for row in video.objects.tolist()})

    @cached_property
    def number_of(self) -> dict[str, int]:
        """Place of each class, from 0."""
        return {tag: number for number, tag in enumerate(self.classes)}

    def splits(self) -> dict[str, list[LabelledVideo]]:
        """Videos for training and the last fifth of them for validation, at least one of several; none is divided."""
        cut = len(self.videos) - (len(self.videos) // 5 or int(len(self.videos) > 1))
        return {"train": self.videos[:cut], "val": self.videos[cut:]}


@dataclass(frozen=True, slots=True)
class Options:
    """What can be chosen.

    Attributes:
        images: also write the listed frames as JPEG.
        tolerance: pixels by which a box between two key frames may be off.
        url: what stands before the name of a video file in Label Studio.
    """

    images: bool = False
    tolerance: float = 1.0
    url: str = "/data/local-files/?d="

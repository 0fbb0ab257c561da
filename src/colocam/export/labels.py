"""What every label format is written from: videos with the rows of their localisation tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.export.row_tracks import Track, follow
from colocam.inference.table import TableRows
from colocam.video.description import SourceVideo

Integers = npt.NDArray[np.int64]


class RowsOfFrames(Mapping[int, list[int]]):
    """The rows of each frame, found when they are asked for: a table of a million rows stays three arrays.

    Args:
        frames: (F,) the frames, sorted.
        rows: (m,) indices of rows, by frame.
        frame_of: (m,) their frames.
    """

    def __init__(self, frames: Integers, rows: Integers, frame_of: Integers) -> None:
        self._frames, self._rows, self._frame_of = frames, rows, frame_of

    def __getitem__(self, frame: int) -> list[int]:
        at = int(np.searchsorted(self._frames, frame))
        if at == len(self._frames) or self._frames[at] != frame:
            raise KeyError(frame)
        first, end = np.searchsorted(self._frame_of, [frame, frame + 1])
        rows: list[int] = self._rows[first:end].tolist()
        return rows

    def __iter__(self) -> Iterator[int]:
        return iter(self._frames.tolist())

    def __len__(self) -> int:
        return len(self._frames)


@dataclass(frozen=True)
class LabelledVideo:
    """A video and the rows of its table, in the order of frames.

    Attributes:
        name: unique among the videos of an export; part of file names.
        source: path, size, rate and number of frames of the video.
        rows: columns of the table: ``frame``, ``pts``, ``tag``, ``box``, ``score``, ….
        images: file names of the frames in this export, where the video is a folder of images that keep their names.
    """

    name: str
    source: SourceVideo
    rows: TableRows = field(repr=False)
    images: tuple[str, ...] = field(default=(), repr=False)

    @cached_property
    def objects(self) -> Integers:
        """Indices of the rows that have a box."""
        return np.flatnonzero(~np.isnan(self.rows.box[:, 0]))

    @cached_property
    def listed(self) -> Integers:
        """Frames that the table lists, sorted; those without a box are empty, all others are not labelled."""
        return np.unique(self.rows.frame)

    @cached_property
    def objects_of(self) -> RowsOfFrames:
        """For each listed frame, the indices of its rows with a box."""
        return RowsOfFrames(self.listed, self.objects, self.rows.frame[self.objects])

    @cached_property
    def tracks(self) -> list[Track]:
        """Objects followed over time, with ids from 1."""
        rows = self.objects
        tags = [self.rows.tag[row] for row in rows.tolist()]
        return follow(rows, self.rows.frame[rows], tags, self.rows.track[rows], self.listed, self.name)

    @cached_property
    def _track_ids(self) -> Integers:
        ids = np.zeros(len(self.rows.frame), np.int64)
        for track in self.tracks:
            ids[track.rows] = track.id
        return ids

    def track_of(self, row: int) -> Track:
        """The track of a row with a box."""
        return self.tracks[int(self._track_ids[row]) - 1]

    def image_name(self, frame: int) -> str:
        """File name of the image of a frame."""
        return self.images[frame] if self.images else f"{self.name}_{frame:06d}.jpg"

    def image_stem(self, frame: int) -> str:
        """File name of the image of a frame, without its ending."""
        return self.image_name(frame).rpartition(".")[0]


@dataclass(frozen=True)
class LabelSet:
    """All videos of one export; they may be read anew each time, so that few of them are in memory."""

    videos: Sequence[LabelledVideo]

    @cached_property
    def classes(self) -> list[str]:
        """All classes that have a box, sorted."""
        return sorted({video.rows.tag[row] for video in self.videos for row in video.objects.tolist()})

    @cached_property
    def class_index(self) -> dict[str, int]:
        """Index of each class in :attr:`classes`, from 0."""
        return {tag: index for index, tag in enumerate(self.classes)}

    def require_masks(self) -> None:
        """Refuse videos without any mask."""
        if not any(any(video.rows.mask) for video in self.videos):
            raise ColocamError("no table has a mask: run 'colocam localize' with --masks or --refine")

    def splits(self) -> dict[str, Sequence[LabelledVideo]]:
        """Split by video: the last fifth, at least one of several videos, is for validation."""
        cut = len(self.videos) - (len(self.videos) // 5 or int(len(self.videos) > 1))
        return {"train": self.videos[:cut], "val": self.videos[cut:]}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an export.

    Attributes:
        images: also write the listed frames as image files.
        tolerance: pixels by which a box between two key frames may be off.
        url: prefix of the names of video files in Label Studio.
    """

    images: bool = False
    tolerance: float = 1.0
    url: str = "/data/local-files/?d="

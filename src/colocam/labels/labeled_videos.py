"""Videos with labels: what every label format is written from.

A :class:`LabeledVideo` has the rows of its localization table, grouped into tracks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ArgumentError, ColocamError
from colocam.labels.table import Integers, TableRows, read_table
from colocam.labels.table_files import names_of
from colocam.types import Float64Array
from colocam.utils.digests import text_digest
from colocam.utils.files import plain, stored
from colocam.video.description import SourceVideo, read_source
from colocam.video.fence import probe_source

SHARES = (0.8, 0.1, 0.1)
"""Of the videos of an export, for training, validation and testing."""
LAST = 2.0**62
"""Index at most, whatever times and rate a table states."""


@dataclass(frozen=True, slots=True)
class Track:
    """One object over time.

    Attributes:
        id: from 1 within its video.
        tag: its class, the most frequent one where rows differ.
        rows: (k,) indices of its rows, by frame.
        stretches: indices of the rows of each stretch without a gap.
    """

    id: int
    tag: str
    rows: Integers = field(repr=False)
    stretches: list[Integers] = field(repr=False)


@dataclass(frozen=True)
class LabeledVideo:
    """A video and the rows of its table: what exports write and imports are compared with.

    Only this type puts rows (:class:`TableRows`) to a video: beside them it holds what the video is, its unique name,
    and the tracks of its rows.

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
        """Frames that the table lists, sorted; those without a box are empty, all others are not labeled."""
        return np.unique(self.rows.frame)

    @cached_property
    def objects_of(self) -> dict[int, list[int]]:
        """For each listed frame, the indices of its rows with a box."""
        rows_of: dict[int, list[int]] = {frame: [] for frame in self.listed.tolist()}
        for row, frame in zip(self.objects.tolist(), self.rows.frame[self.objects].tolist(), strict=True):
            rows_of[frame].append(row)
        return rows_of

    @cached_property
    def tracks(self) -> list[Track]:
        """Objects followed over time, with ids from 1 in the order in which they appear.

        Rows that state a track belong to it. The other rows of one class are one object, unless a frame holds two of
        them; each box is then an object of its own.
        """
        rows, objects = self.rows, self.objects.tolist()
        unstated = Counter((int(rows.frame[row]), rows.tag[row]) for row in objects if rows.track[row] < 0)
        crowded = {tag for (_, tag), count in unstated.items() if count > 1}
        groups: dict[tuple[int, str, int], list[int]] = {}
        for row in objects:
            stated, tag = int(rows.track[row]), rows.tag[row]
            unstated_key = (-1, tag, row if tag in crowded else -1)
            groups.setdefault((stated, "", -1) if stated >= 0 else unstated_key, []).append(row)
        return [self._track(id_, np.array(own)) for id_, own in enumerate(groups.values(), start=1)]

    def _track(self, id_: int, rows: Integers) -> Track:
        if len(rows) == 1:  # a crowd has thousands
            return Track(id_, self.rows.tag[rows[0]], rows, [rows])
        seen = self.rows.frame[rows]
        if (twice := np.flatnonzero(np.diff(seen) == 0)).size:
            track, frame = self.rows.track[rows[0]], seen[twice[0]]
            where = f"{self.name}: frame {frame} has two boxes of track {track}"
            raise ColocamError(f"{where}: give one of them a different track")
        # An object is not seen in a listed frame that has no row of it. Frames that are not listed (between every fifth
        # one, for example) do not split, unless the gap exceeds twice the usual step: rows were then removed.
        gaps = (np.diff(np.searchsorted(self.listed, seen)) > 1) | (np.diff(seen) > 2 * self._step)
        tag = Counter(self.rows.tag[row] for row in rows.tolist()).most_common(1)[0][0]
        return Track(id_, tag, rows, np.split(rows, np.flatnonzero(gaps) + 1))

    @cached_property
    def _step(self) -> float:
        """The usual distance of listed frames."""
        return float(np.median(np.diff(self.listed))) if len(self.listed) > 1 else 1.0

    @cached_property
    def _track_of_row(self) -> dict[int, Track]:
        return {row: track for track in self.tracks for row in track.rows.tolist()}

    def track_of(self, row: int) -> Track:
        """The track of a row with a box."""
        return self._track_of_row[row]

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its frames."""
        return self.source.width, self.source.height

    def mask(self, row: int) -> npt.NDArray[np.bool_] | None:
        """(H, W) mask of a row; None where it has none."""
        text = self.rows.mask[row]
        return rle.decode(text, self.source.height, self.source.width) if text else None

    def numbers(self, row: int, *columns: str) -> dict[str, float]:
        """The numbers of a row by column, without those that the table does not state."""
        numbers = {name: float(getattr(self.rows, name)[row]) for name in columns}
        return {name: value for name, value in numbers.items() if not np.isnan(value)}

    def image_name(self, frame: int) -> str:
        """File name of the image of a frame."""
        return self.images[frame] if self.images else f"{self.name}_{frame:06d}.jpg"

    def image_stem(self, frame: int) -> str:
        """File name of the image of a frame, without its ending."""
        return self.image_name(frame).rpartition(".")[0]

    def shown_at(self, rate: float) -> Integers:
        """Index, from 0, at which a player of ``rate`` frames per second first shows the frame of each row.

        The player's frame k is what the video shows between k / rate and (k + 1) / rate.
        """
        start = self.rows.pts[0] - (self.rows.frame[0] / float(self.source.fps))
        index: Float64Array = np.ceil((self.rows.pts - start) * rate - 0.5)
        return index.clip(0, LAST).astype(np.int64)


class VideosAt(Sequence[LabeledVideo]):
    """Some videos of others, by their indices; each is read when it is asked for."""

    def __init__(self, videos: Sequence[LabeledVideo], indices: Sequence[int]) -> None:
        self._videos = videos
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, at: int) -> LabeledVideo: ...
    @overload
    def __getitem__(self, at: slice) -> "VideosAt": ...
    def __getitem__(self, at: int | slice) -> "LabeledVideo | VideosAt":
        if isinstance(at, slice):
            return VideosAt(self._videos, self._indices[at])
        return self._videos[self._indices[at]]


@dataclass(frozen=True)
class LabelSet:
    """All videos of one export; they may be read anew each time, so that few of them are in memory."""

    videos: Sequence[LabeledVideo]

    @property
    def names(self) -> list[str]:
        """The name of each video."""
        return self._names_and_classes[0]

    @property
    def classes(self) -> list[str]:
        """All classes that have a box, sorted."""
        return self._names_and_classes[1]

    @cached_property
    def _names_and_classes(self) -> tuple[list[str], list[str]]:
        names: list[str] = []
        classes: set[str] = set()
        for video in self.videos:
            names.append(video.name)
            classes.update(video.rows.tag[row] for row in video.objects.tolist())
        return names, sorted(classes)

    @cached_property
    def class_index(self) -> dict[str, int]:
        """Index of each class in :attr:`classes`, from 0."""
        return {tag: index for index, tag in enumerate(self.classes)}

    def require_masks(self) -> None:
        """Refuse videos without any mask."""
        if not any(any(video.rows.mask) for video in self.videos):
            raise ColocamError("no table has a mask: run 'colocam localize' with --masks or --refine")

    def splits(self, shares: tuple[float, float, float] = SHARES) -> dict[str, Sequence[LabeledVideo]]:
        """Whole videos for training, validation and testing, so that no video is in two of them.

        The videos are sorted by a digest of their names; the first ones are for validation, the next ones for testing.
        Two videos are one for training and one for validation, a single one is for training.

        Args:
            shares: of the videos, for training, validation and testing; each that is above 0 gets one of three videos.
        """
        order = sorted(range(len(self.names)), key=lambda at: text_digest(self.names[at]))
        whole = sum(shares)
        counts = [max(1, round(len(order) * share / whole)) if share > 0 else 0 for share in shares[1:]]
        validation = min(counts[0], len(order) - 1)
        test = min(counts[1], max(len(order) - validation - 1, 0))
        groups = {
            "train": order[validation + test :],
            "val": order[:validation],
            "test": order[validation : validation + test],
        }
        return {split: VideosAt(self.videos, sorted(indices)) for split, indices in groups.items()}


def describe_splits(splits: Mapping[str, Sequence[LabeledVideo]]) -> str:
    """One line for the user."""
    counts = {split: len(videos) for split, videos in splits.items()}
    if sum(counts.values()) == 1:
        return (
            "the only video is for training, so nothing is left to validate with: export several videos together, "
            "since frames of one video are too alike"
        )
    return "split by video: " + ", ".join(f"{count} {split}" for split, count in counts.items())


def tracks_of_several_classes(videos: Sequence[LabeledVideo], to: str) -> list[str]:
    """One line for each video with tracks whose class is not the same in all frames."""
    lines = []
    for video in videos:
        changed = boxes = 0
        for track in video.tracks:
            other = sum(video.rows.tag[row] != track.tag for row in track.rows.tolist())
            changed += bool(other)
            boxes += other
        if changed:
            tracks = "1 track changes its" if changed == 1 else f"{changed} tracks change their"
            got = "1 box" if boxes == 1 else f"{boxes} boxes"
            lines.append(f"{video.name}: {tracks} class; {to} holds one, the most frequent: {got} got it")
    return lines


FrameChoice = Literal["all", "answered", "checked"]
FRAME_CHOICES: tuple[FrameChoice, ...] = get_args(FrameChoice)
"""Frames of an export: all; those that people checked, and those between that follow from them; or checked ones."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an export.

    Attributes:
        images: also write the listed frames as image files.
        tolerance: pixels by which a box between two key frames may be off.
        url: prefix of the names of video files in Label Studio.
        frames: one of :data:`FRAME_CHOICES`.
        checked: frames that people looked at, as a table with the columns ``video`` and ``frame``: corrections, or the
            queue of ``colocam review``; None: the column ``state`` of the tables says it.
        split: shares of the videos for training, validation and testing (YOLO and VOC).
    """

    images: bool = False
    tolerance: float = 1.0
    url: str = "/data/local-files/?d="
    frames: FrameChoice = "all"
    checked: Path | None = None
    split: tuple[float, float, float] = SHARES


def read_videos(tables: list[Path], videos: list[Path]) -> list[LabeledVideo]:
    """Read tables, each with its video: one of ``videos``, or what ``<table>.video.json`` describes."""
    if videos and len(videos) != len(tables):
        raise ArgumentError("videos", f"must name one video per table, got {len(videos)} for {len(tables)}")
    read: list[LabeledVideo] = []
    for index, (name, table) in enumerate(zip(names_of(tables), tables, strict=True)):
        if not stored(table).is_file():
            raise ColocamError(f"cannot read {table}: there is no such file")
        source = probe_source(stored(videos[index])) if videos else read_source(table)
        read.append(read_video(name, table, source))
    return _with_image_names(read)


def read_video(name: str, table: Path, source: SourceVideo) -> LabeledVideo:
    """Read the table of one video; times that it does not state follow from the rate of the video."""
    rows = read_table(table, source, required=("class",))
    rows = rows._replace(pts=np.where(np.isnan(rows.pts), rows.frame / float(source.fps), rows.pts))
    return LabeledVideo(name, source, rows)


def _with_image_names(videos: list[LabeledVideo]) -> list[LabeledVideo]:
    """Images of folders keep their names, with the table's name before them where there are several tables.

    If two images would get one name, all are numbered, as the frames of video files are.
    """
    alone = len(videos) == 1
    names = [tuple(plain(n) if alone else f"{v.name}_{plain(n)}" for n in v.source.pictures) for v in videos]
    stems = [name.rpartition(".")[0].casefold() for own in names for name in own]
    if len(set(stems)) < len(stems):
        return videos
    return [replace(video, images=own) for video, own in zip(videos, names, strict=True)]


class LeftOut(Counter[str]):
    """What was left out and why: a sentence → how often."""

    def lines(self) -> list[str]:
        """One line for each reason."""
        return [f"left out, {count}×: {reason}" for reason, count in self.items()]


def named(names: Sequence[str], known: Sequence[LabeledVideo]) -> list[LabeledVideo]:
    """The videos that ``names`` mean: by their table or their file, with or without the ending.

    Of several of one name it is those that an export calls so, or those in the folders that a name states.
    """
    paths = [PurePosixPath(name.replace("\\", "/")) for name in names]
    wanted = {name.casefold() for name in (*names, *(path.name for path in paths))}
    matching = [other for other in known if not wanted.isdisjoint(_own_names(other))]
    tails = [path.parts for path in paths if len(path.parts) > 1]
    by_name = [other for other in matching if other.name in names]
    return by_name or [other for other in matching if any(_ends_with(other, tail) for tail in tails)] or matching


def _own_names(known: LabeledVideo) -> set[str]:
    file = PurePosixPath(known.source.file)
    names = (known.name, known.source.file, file.name, file.stem, str(known.source.path))
    return {name.casefold() for name in names}


def _ends_with(known: LabeledVideo, tail: tuple[str, ...]) -> bool:
    """Whether the path of a video ends with these folders and this name, with or without the ending of the file."""
    paths = [known.source.path, PurePosixPath(known.source.stated_path)]
    return any(tail == one.parts[-len(tail) :] for path in paths for one in (path, path.with_suffix("")))

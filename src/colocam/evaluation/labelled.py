"""Labelled frames outside a run: true boxes with tag, video and split of their clip, and the frame size."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.catalogue import SPLIT_NAMES, read_catalogue
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError
from colocam.types import Clip, Split
from colocam.utils.tables import Row, number, read_rows
from colocam.video.fence import probe
from colocam.video.images import image_size

Size = tuple[int, int]
"""Width and height in pixels."""


@dataclass(frozen=True, slots=True)
class LabelledFrame:
    """A frame with the object.

    Attributes:
        clip: name of the clip.
        frame: index of the frame in it.
        boxes: (k, 4) float64, k ≥ 1, in pixels of the frame.
    """

    clip: str
    frame: int
    boxes: npt.NDArray[np.float64]


@dataclass(frozen=True)
class LabelledClips:
    """The clips of a table of true boxes.

    Attributes:
        truth: the boxes.
        clips: tag, video, split and files of each clip.
        tags: the classes, sorted.
        source: the table, for errors.
    """

    truth: Truth
    clips: Mapping[str, Clip]
    tags: tuple[str, ...]
    source: Path
    _sizes: dict[tuple[str, int], Size]

    def frames(self, split: Split) -> list[LabelledFrame]:
        """Frames of a split with at least one box, in the order of the table."""
        return [
            LabelledFrame(clip, frame, np.array(boxes, np.float64))
            for clip, frames in self.truth.frames.items()
            if clip in self.clips and self.clips[clip].split == split
            for frame, boxes in frames.items()
            if boxes
        ]

    def size(self, clip: str, frame: int) -> Size:
        """Size of a frame: from the columns of the table, else from the images or the video of the clip."""
        if (clip, frame) not in self._sizes:
            found = _size_of(self.clips[clip], frame)
            if found is None:
                raise ColocamError(
                    f"{self.source}: the size of frame {frame} of {clip!r} is not known: add the columns width and "
                    "height, or give a manifest of the videos"
                )
            self._sizes[clip, frame] = found
        return self._sizes[clip, frame]


def read_labelled(boxes: Path, manifest: Path | None, split: Split) -> LabelledClips:
    """Read true boxes (see :func:`read_truth`) and the properties of their clips.

    Args:
        boxes: the table. Its optional columns tag (or class), video, split, width and height make a manifest
            unnecessary; without split all of its clips belong to ``split``.
        manifest: a source as :func:`read_catalogue` reads it.
        split: the evaluated split.
    """
    truth, rows = read_truth(boxes), read_rows(boxes)
    clips = (
        {clip.name: clip for clip in read_catalogue(manifest).clips}
        if manifest is not None
        else _clips_of_rows(boxes, rows, split)
    )
    known = {(row["clip"], int(float(row["frame"]))): size for row in rows if (size := _stated_size(row)) is not None}
    return LabelledClips(truth, clips, tuple(sorted({clip.tag for clip in clips.values()})), boxes, known)


def _stated_size(row: Row) -> Size | None:
    """Size of the frame in the cells width and height; None where they are empty or 0."""
    width, height = (number(row, name, row.where) for name in ("width", "height"))
    if not width or not height:
        return None
    if min(width, height) < 1:
        raise ColocamError(f"{row.where}: width and height must be 1 pixel or more, got {width:g} and {height:g}")
    return int(width), int(height)


def _clips_of_rows(table: Path, rows: list[Row], split: Split) -> dict[str, Clip]:
    column = next((name for name in ("tag", "class") if name in rows[0]), None)
    if column is None:
        raise ColocamError(f"{table} has no column tag: add it, or give a manifest with the tags of the clips")
    clips: dict[str, Clip] = {}
    for row in rows:
        named = SPLIT_NAMES.get(row.get("split") or split)
        if not row[column] or named is None:
            raise ColocamError(f"{row.where}: {column} must not be empty, and split must be train, val or test")
        clip = Clip(row["clip"], row[column], named, table.parent, row.get("video") or row["clip"])
        if clips.setdefault(clip.name, clip) != clip:
            raise ColocamError(f"{row.where}: the clip {clip.name!r} has another tag, video or split in an earlier row")
    return clips


def _size_of(clip: Clip, frame: int) -> Size | None:
    if clip.frames:
        return image_size(clip.frames[frame]) if frame < len(clip.frames) else None
    return _video_size(clip.path) if clip.path.is_file() else None


@cache
def _video_size(path: Path) -> Size:
    info = probe(path)
    return info.width, info.height

"""True boxes and presence, apart from the catalogue: only validation and evaluation read them.

A data set is two CSV files: a manifest of clips for training (:mod:`colocam.data.catalogue`), and its true boxes.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from colocam.data.catalogue import Listing, read_manifest
from colocam.errors import ColocamError
from colocam.types import SPLITS, Box, Clip
from colocam.utils.files import refuse_replacing, write_text
from colocam.utils.tables import Row, csv_text, read_rows
from colocam.video.images import natural_key

CORNERS = "x1", "y1", "x2", "y2"
MANIFEST_COLUMNS = ("path", "tag", "split", "video", "clip", "pictures")
TRUTH_COLUMNS = ("clip", "frame", "present", *CORNERS, "tag", "video", "split", "width", "height")


@dataclass(frozen=True, slots=True)
class Truth:
    """Boxes of the labeled frames.

    Attributes:
        frames: clip name → frame index in the video → boxes in original pixels; none where the object is absent.
        ids: clip name → frame index → name of the object in each box; only of clips that name an object in each box.
    """

    frames: dict[str, dict[int, list[Box]]] = field(repr=False)
    ids: dict[str, dict[int, list[str]]] = field(default_factory=dict, repr=False)

    def boxes(self, clip: str, frame: int) -> list[Box]:
        """All boxes of a frame; empty where the object is absent or the frame has no label."""
        return self.frames.get(clip, {}).get(frame, [])

    def labeled(self, clip: str) -> list[int]:
        """Sorted indices of the labeled frames."""
        return sorted(self.frames.get(clip, {}))


def read_truth(path: Path) -> Truth:
    """Read a CSV or parquet table with the columns clip, frame, present (0 or 1), x1, y1, x2, y2, and optionally id.

    One row per box; a frame without the object has one row with ``present`` 0 and no box. The object of a box is the
    same in all frames of a clip that give it the same ``id``.
    """

    def labels() -> Iterator[tuple[str, int, Box | None, str]]:
        for row in read_rows(path, required=("clip", "frame", "present", *CORNERS)):
            frame = row.number("frame")
            if frame is None or frame < 0 or frame != int(frame) or not row["clip"]:
                raise ColocamError(f"{row.where}: a row needs a clip and a frame index from 0, got {row['frame']!r}")
            corners = [row.number(name) for name in CORNERS]
            box = box_of_corners(corners, row.where) if _is_present(row, corners) else None
            yield row["clip"], int(frame), box, row.get("id", "")

    return _truth_of(labels())


def _truth_of(labels: Iterable[tuple[str, int, Box | None, str]]) -> Truth:
    """The truth of clip, frame, box (None: the object is absent) and id of each label."""
    frames: dict[str, dict[int, list[Box]]] = {}
    ids: dict[str, dict[int, list[str]]] = {}
    for clip, frame, box, name in labels:
        boxes = frames.setdefault(clip, {}).setdefault(frame, [])
        if box is not None:
            boxes.append(box)
            ids.setdefault(clip, {}).setdefault(frame, []).append(name)
    # With an unnamed box in a clip, nobody could say which tracks are right.
    return Truth(frames, {clip: own for clip, own in ids.items() if all(map(all, own.values()))})


def _is_present(row: Row, corners: Sequence[float | None]) -> bool:
    """Whether a row with the cell ``present`` has a box; anything but 0 and 1, or 0 beside a box, is refused."""
    present = row.number("present")
    if present not in {0, 1}:
        raise ColocamError(f"{row.where}: present must be 0 or 1, got {row['present']!r}")
    if not present and any(corner is not None for corner in corners):
        raise ColocamError(f"{row.where}: present is 0 but there is a box: set present to 1 or clear the box")
    return bool(present)


def box_of_corners(corners: Sequence[float | None], where: str) -> Box:
    """Make a box from four cells; ``where`` names file and row in the error."""
    x1, y1, x2, y2 = corners
    if x1 is None or y1 is None or x2 is None or y2 is None or x2 <= x1 or y2 <= y1:
        raise ColocamError(f"{where}: a box needs x1 < x2 and y1 < y2, got {list(corners)}")
    return Box(x1, y1, x2, y2)


@dataclass(frozen=True, slots=True)
class Index:
    """Clips and the true boxes of some of their frames.

    Attributes:
        clips: video files, parts of them, or folders of images (then with ``frames``).
        truth: boxes of val and test frames; the frame index counts within the video file, or within ``clip.frames``.
        sizes: (clip, frame) → width and height of a labeled frame in pixels, where they are known.
        name: of the folder to write by default.
        summary: one line that says what was read.
        notes: one line for each kind of irregularity.
        published: published counts, by the names of :func:`count`.
    """

    clips: tuple[Clip, ...]
    truth: Truth
    sizes: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict, repr=False)
    name: str = ""
    summary: str = ""
    notes: tuple[str, ...] = ()
    published: Mapping[str, int] = field(default_factory=dict)


def count(index: Index) -> dict[str, int]:
    """Count shots (clips), videos, frames, labeled frames and boxes of each split: ``{"train shots": 12, …}``.

    Frames are those of folders of images; video files are not opened.
    """
    counts: dict[str, int] = {}
    for split in SPLITS:
        clips = [clip for clip in index.clips if clip.split == split]
        labeled = [boxes for clip in clips for boxes in index.truth.frames.get(clip.name, {}).values()]
        counts |= {
            f"{split} shots": len(clips),
            f"{split} videos": len({clip.video for clip in clips}),
            f"{split} frames": sum(len(clip.frames) for clip in clips),
            f"{split} labeled frames": len(labeled),
            f"{split} boxes": sum(map(len, labeled)),
        }
    return counts


def index_of_table(
    table: Annotated[Path, "Table: video, shot, frame, class, split, width, height, x1 … y2; also present, id."],
) -> Index:
    """Read a table of single frames with one row per box: video, shot, frame, class, split, width, height, x1 … y2.

    Empty corners mean that the frame has no label; only a column ``present`` with 0 says that the object is absent. A
    column ``id`` names the object of each box, the same in all frames of the shot. Boxes of training frames are left
    out.
    """
    rows = read_rows(table, required=("video", "shot", "frame", "split", "width", "height", *CORNERS))
    clips, _ = read_manifest(table)
    frame_of = {
        image: (clip, index) for clip in clips if clip.split != "train" for index, image in enumerate(clip.frames)
    }
    sizes: dict[tuple[str, int], tuple[int, int]] = {}

    def labels() -> Iterator[tuple[str, int, Box | None, str]]:
        for row in rows:
            corners = [row.number(name) for name in CORNERS]
            known = frame_of.get(table.parent / row["frame"])
            if known is None:
                continue
            absent = bool(row.get("present")) and not _is_present(row, corners)
            if not absent and all(corner is None for corner in corners):
                continue
            clip, index = known
            width, height = row.number("width"), row.number("height")
            if width and height:
                sizes[clip.name, index] = int(width), int(height)
            elif not absent:
                raise ColocamError(f"{row.where}: a frame with a box needs its width and height in pixels")
            yield clip.name, index, None if absent else box_of_corners(corners, row.where), row.get("id", "")

    return Index(tuple(clips), _truth_of(labels()), sizes)


def write_index(out: Path, index: Index) -> tuple[Path, Path]:
    """Write ``out/manifest.csv`` and ``out/truth.csv`` and return their paths.

    Paths below ``out`` are written relative to it, others absolute.
    """
    manifest, truth = out / "manifest.csv", out / "truth.csv"
    clips = sorted(index.clips, key=lambda clip: natural_key(clip.name))
    listings = {folder: Listing(folder) for folder in {clip.path for clip in clips if clip.frames}}
    timed = any(clip.start or clip.end for clip in clips)
    _write_csv(
        manifest,
        (*MANIFEST_COLUMNS, *(("start", "end") if timed else ())),
        [
            (
                *(_path_from(clip.path, out), clip.tag, clip.split, clip.video, clip.name),
                listings[clip.path].spans(clip.frames) if clip.frames else "",
                *((clip.start, clip.end) if timed else ()),
            )
            for clip in clips
        ],
    )
    ids = index.truth.ids
    _write_csv(
        truth,
        (*TRUTH_COLUMNS, *(("id",) if ids else ())),
        [
            (
                *(clip.name, frame, *row, clip.tag, clip.video, clip.split),
                *index.sizes.get((clip.name, frame), ("", "")),
                *(ids.get(clip.name, {}).get(frame, [])[i : i + 1] or ([""] if ids else [])),
            )
            for clip in clips
            for frame, boxes in sorted(index.truth.frames.get(clip.name, {}).items())
            for i, row in enumerate([(1, *(f"{side:.10g}" for side in box)) for box in boxes] or [(0, "", "", "", "")])
        ],
    )
    return manifest, truth


def _path_from(path: Path, out: Path) -> str:
    path, out = path.absolute(), out.absolute()
    return os.path.relpath(path, out) if path.is_relative_to(out) else str(path)


def _write_csv(path: Path, columns: tuple[str, ...], lines: list[tuple[object, ...]]) -> None:
    refuse_replacing(path, ",".join(columns[:6]).encode(), "earlier index of a data set")
    write_text(path, csv_text(columns, lines))

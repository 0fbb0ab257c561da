"""A data set as two CSV files: a manifest of clips for training, and true boxes for evaluation."""

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from colocam.data.catalogue import Listing, read_manifest
from colocam.data.truth import CORNERS, Truth, box_of_corners, check_presence, known_ids
from colocam.errors import ColocamError
from colocam.types import SPLITS, Box, Clip
from colocam.utils.files import refuse_replacing, write_text
from colocam.utils.tables import csv_cell, read_rows
from colocam.video.images import natural_key

MANIFEST_COLUMNS = ("path", "tag", "split", "video", "clip", "pictures")
TRUTH_COLUMNS = ("clip", "frame", "present", *CORNERS, "tag", "video", "split", "width", "height")


@dataclass(frozen=True, slots=True)
class Index:
    """Clips and the true boxes of some of their frames.

    Attributes:
        clips: video files, parts of them, or folders of images (then with ``frames``).
        truth: boxes of val and test frames; the frame index counts within the video file, or within ``clip.frames``.
        sizes: (clip, frame) → width and height of a labelled frame in pixels, where they are known.
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
    """Count shots (clips), videos, frames, labelled frames and boxes of each split: ``{"train shots": 12, …}``.

    Frames are those of folders of images; video files are not opened.
    """
    counts: dict[str, int] = {}
    for split in SPLITS:
        clips = [clip for clip in index.clips if clip.split == split]
        labelled = [boxes for clip in clips for boxes in index.truth.frames.get(clip.name, {}).values()]
        counts |= {
            f"{split} shots": len(clips),
            f"{split} videos": len({clip.video for clip in clips}),
            f"{split} frames": sum(len(clip.frames) for clip in clips),
            f"{split} labelled frames": len(labelled),
            f"{split} boxes": sum(map(len, labelled)),
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
    found = {image: (clip, index) for clip in clips if clip.split != "train" for index, image in enumerate(clip.frames)}
    frames: dict[str, dict[int, list[Box]]] = {}
    names: dict[str, dict[int, list[str]]] = {}
    sizes: dict[tuple[str, int], tuple[int, int]] = {}
    for row in rows:
        corners = [row.number(name) for name in CORNERS]
        known = found.get(table.parent / row["frame"])
        if known is None:
            continue
        empty = bool(row.get("present")) and not check_presence(row.number("present"), corners, row)
        if not empty and all(corner is None for corner in corners):
            continue
        clip, index = known
        width, height = row.number("width"), row.number("height")
        boxes = frames.setdefault(clip.name, {}).setdefault(index, [])
        if width and height:
            sizes[clip.name, index] = int(width), int(height)
        elif not empty:
            raise ColocamError(f"{row.where}: a frame with a box needs its width and height in pixels")
        if not empty:
            boxes.append(box_of_corners(corners, row.where))
            names.setdefault(clip.name, {}).setdefault(index, []).append(row.get("id", ""))
    return Index(tuple(clips), Truth(frames, known_ids(names)), sizes)


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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(value) for value in line] for line in lines)
    write_text(path, text.getvalue())

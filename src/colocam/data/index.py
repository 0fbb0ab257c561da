"""A data set as two tables: a manifest of clips for the training, and true boxes for the evaluation."""

import csv
import io
import os
from dataclasses import dataclass, field
from pathlib import Path

from colocam.data.image_spans import Listing
from colocam.data.manifest import read_manifest
from colocam.data.table_rows import number, read_rows
from colocam.data.truth import Truth, box_of_corners
from colocam.errors import ColocamError
from colocam.types import Box, Clip
from colocam.utils.files import write_text
from colocam.video.image_files import natural_key

MANIFEST_COLUMNS = ("path", "tag", "split", "video", "clip", "pictures")
TRUTH_COLUMNS = ("clip", "frame", "present", "x1", "y1", "x2", "y2", "tag", "video", "split", "width", "height")


@dataclass(frozen=True, slots=True)
class Index:
    """Clips made of pictures, and the boxes of some of their frames.

    Attributes:
        clips: all of them, each with its pictures.
        truth: boxes of val and test frames; a frame's number is its place in its clip.
        sizes: (clip, frame) → width and height of each labelled frame.
    """

    clips: tuple[Clip, ...]
    truth: Truth
    sizes: dict[tuple[str, int], tuple[int, int]] = field(repr=False)


def index_of_table(table: Path) -> Index:
    """Read a table of pictures with a row per box: video, shot, frame, class, split, width, height, x1, y1, x2, y2.

    Empty corners mean that nobody drew a box, not that the object is absent. Boxes of training frames are left out.
    """
    rows = read_rows(table, required=("video", "shot", "frame", "split", "width", "height", "x1", "y1", "x2", "y2"))
    clips, _ = read_manifest(table)
    places = {
        picture: (clip, place) for clip in clips if clip.split != "train" for place, picture in enumerate(clip.frames)
    }
    frames: dict[str, dict[int, list[Box]]] = {}
    sizes: dict[tuple[str, int], tuple[int, int]] = {}
    for line, row in enumerate(rows, start=2):
        where = f"{table}, row {line}"
        corners = [number(row, name, where) for name in ("x1", "y1", "x2", "y2")]
        known = places.get(table.parent / row["frame"])
        if known is None or all(corner is None for corner in corners):
            continue
        clip, place = known
        width, height = number(row, "width", where), number(row, "height", where)
        if not width or not height:
            raise ColocamError(f"{where}: a frame with a box needs its width and height in pixels")
        frames.setdefault(clip.name, {}).setdefault(place, []).append(box_of_corners(corners, where))
        sizes[clip.name, place] = int(width), int(height)
    return Index(tuple(clips), Truth(frames), sizes)


def write_index(out: Path, index: Index) -> tuple[Path, Path]:
    """Write ``out/manifest.csv`` and ``out/truth.csv`` and return their paths.

    Paths of pictures below ``out`` are written relative to it, others absolute.
    """
    manifest, truth = out / "manifest.csv", out / "truth.csv"
    clips = sorted(index.clips, key=lambda clip: natural_key(clip.name))
    listings = {folder: Listing(folder) for folder in {clip.path for clip in clips}}
    _write_csv(
        manifest,
        MANIFEST_COLUMNS,
        [(_path_from(c.path, out), c.tag, c.split, c.video, c.name, listings[c.path].spans(c.frames)) for c in clips],
    )
    _write_csv(
        truth,
        TRUTH_COLUMNS,
        [
            (clip.name, frame, 1, *(f"{side:.10g}" for side in box), clip.tag, clip.video, clip.split, *size)
            for clip in clips
            for frame, boxes in sorted(index.truth.frames.get(clip.name, {}).items())
            for size in [index.sizes[clip.name, frame]]
            for box in boxes
        ],
    )
    return manifest, truth


def _path_from(path: Path, out: Path) -> str:
    path, out = path.absolute(), out.absolute()
    return os.path.relpath(path, out) if path.is_relative_to(out) else str(path)


def _write_csv(path: Path, columns: tuple[str, ...], lines: list[tuple[object, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(lines)
    write_text(path, text.getvalue())

"""CSV and parquet: localization tables, one per video, checked and with every column.

What is read may be a localization table or corrections that were edited, or any table with these columns: ``frame`` or
``pts``, the class, and x1, y1, x2, y2; a row without corners says that the frame shows no object. The column ``video``
(or ``clip``) names the video; without it the name of the file does, or there is a single table. Rows by ``pts`` need a
table.

Tests: tests/labels/test_flat_and_masks.py, tests/labels/test_from_mot_and_csv.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from colocam.errors import ColocamError
from colocam.labels.formats.reading import LARGEST, corners_of, files_of, refuse_many_values
from colocam.labels.imported_videos import FrameLabel, ImportedVideo, tracks_of_frames
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options, named
from colocam.labels.table import CORNERS, Integers, corners, indices, write_table
from colocam.types import Box, Float64Array
from colocam.utils.tables import Cells, read_cells


def write(labels: LabelSet, folder: Path, options: Options, *, ending: str) -> None:  # noqa: ARG001 - all are called alike
    """Write ``<video>.csv`` or ``<video>.parquet``, by the ending, and ``<video>.video.json`` for each video."""
    for video in labels.videos:
        source = replace(video.source, path=Path(video.source.stated_path), shown_as="")
        write_table(folder / f"{video.name}.{ending}", video.rows, source, video=video.name)


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a table, or all tables of a folder."""
    videos: list[ImportedVideo] = []
    for file in files_of(path, ".csv", ".parquet"):
        refuse_many_values(file, _count_cells(file))
        cells = read_cells(file, required=CORNERS)
        if not {"frame", "pts"} & cells.columns.keys():
            raise ColocamError(
                f"{file}: no column 'frame' or 'pts', so it is not clear which frames the boxes belong to"
            )
        column = next((name for name in ("video", "clip") if name in cells.columns), None)
        file_video = file.stem if not known or named((file.stem,), known) else ""
        groups: dict[str, list[int]] = {}
        names = [file_video] * len(cells.row) if column is None else cells.text(column)
        for row, name in enumerate(names):
            groups.setdefault(name, []).append(row)
        frames = indices(cells, "frame")
        pts = cells.floats("pts")
        labels = _labels(file, cells)
        numbers = _numbers(cells)
        for name, rows in groups.items():
            video = next(iter(named((name,), known) if name else known), None)
            at = _known_frames(frames[rows], pts[rows], video, name, left_out)
            placed = [(frame, labels[row], numbers[row]) for frame, row in zip(at.tolist(), rows, strict=True)]
            boxes = [
                FrameLabel(frame, *label, number) for frame, label, number in placed if frame >= 0 and label is not None
            ]
            listed = np.unique(at[at >= 0])
            videos.append(ImportedVideo((name,) if name else (), tracks_of_frames(boxes), listed=listed))
    return videos


def _count_cells(file: Path) -> int:
    """About how many cells a CSV file has, read block by block; 0 for parquet, whose rows are packed."""
    if file.suffix.lower() == ".parquet":
        return 0
    with file.open("rb") as lines:
        header = lines.readline(LARGEST)
        rows = sum(block.count(b"\n") for block in iter(lambda: lines.read(1 << 20), b""))
    return rows * (1 + max(header.count(separator) for separator in (b",", b";", b"\t")))


def _numbers(cells: Cells) -> list[int | None]:
    """(n,) number of the object of each row, from 1; tables count tracks from 0, corrections from 1."""
    first = 0 if "kind" in cells.columns else 1
    return [track + first if track >= 0 else None for track in indices(cells, "track").tolist()]


def _labels(file: Path, cells: Cells) -> list[tuple[str, Box] | None]:
    """(n,) class and box of each row; None for a row without corners."""
    tags = cells.text("class" if "class" in cells.columns else "tag")
    boxes = corners(cells)
    there = ~np.isnan(boxes[:, 0])
    if (unnamed := there & np.array([not tag for tag in tags])).any():
        cells.fail(int(unnamed.argmax()), "has a box, but no class")
    rows = zip(tags, boxes.tolist(), there.tolist(), strict=True)
    return [(tag, corners_of(file, box)) if labeled else None for tag, box, labeled in rows]


def _known_frames(
    frames: Integers, pts: Float64Array, video: LabeledVideo | None, name: str, left_out: LeftOut
) -> Integers:
    """(n,) frame of each row; for one without an index (−1) the listed frame that is nearest in time, −1 if none is.

    A frame is near if it is not further than half the usual step of the table.
    """
    missing = frames < 0
    if missing.any() and video is None:
        left_out[f"row of {name!r} by pts: no table of this video"] += int(missing.sum())
    elif missing.any() and video is not None:
        times, wanted = video.rows.pts, pts[missing]
        steps = np.diff(np.unique(times))
        after = np.searchsorted(times, wanted).clip(0, len(times) - 1)
        around = np.stack([(after - 1).clip(0), after])
        away = np.abs(times[around] - wanted)
        nearest = around[away.argmin(axis=0), np.arange(len(after))]
        near = away.min(axis=0) <= (np.median(steps) / 2 if len(steps) else np.inf)
        frames[missing] = np.where(near, video.rows.frame[nearest], -1)
        if not near.all():
            left_out[f"row of {name!r} by pts: no frame of the table has this pts"] += int((~near).sum())
    return frames

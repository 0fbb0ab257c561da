"""CSV or parquet: a localisation table or corrections that were edited, or any table with these columns.

``frame`` or ``pts``, the class, and x1, y1, x2, y2; a row without corners says that the frame shows no object. The
column ``video`` (or ``clip``) names the video; without it the name of the file does, or there is a single table. Rows
by ``pts`` need a table.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colocam.corrections.imported import FrameLabel, ImportedVideo, LeftOut, tracks_of_frames
from colocam.corrections.label_files import corners_of, files_of
from colocam.corrections.matching import same_name
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Float64Array
from colocam.utils.tables import Cells, read_cells

CORNERS = ("x1", "y1", "x2", "y2")


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a table, or all tables of a folder."""
    videos: list[ImportedVideo] = []
    for file in files_of(path, ".csv", ".parquet"):
        cells = read_cells(file, required=CORNERS)
        if not {"frame", "pts"} & cells.columns.keys():
            raise ColocamError(f"{file}: no column 'frame' or 'pts', so the frames of the boxes are not known")
        named = next((name for name in ("video", "clip") if name in cells.columns), None)
        own = "" if len(known) == 1 and not same_name((file.stem,), known[0]) else file.stem
        names = [own] * len(cells.row) if named is None else cells.text(named)
        groups: dict[str, list[int]] = {}
        for row, name in enumerate(names):
            groups.setdefault(name, []).append(row)
        frames = cells.floats("frame")
        cells.refuse(
            "frame",
            ~(np.isnan(frames) | ((frames >= 0) & (frames % 1 == 0) & (frames < 2**32))),
            "is not a frame index from 0",
        )
        videos += [_video(file, cells, frames, name, rows, known, left_out) for name, rows in groups.items()]
    return videos


def _video(
    file: Path,
    cells: Cells,
    frames: Float64Array,
    name: str,
    rows: list[int],
    known: Sequence[LabelledVideo],
    left_out: LeftOut,
) -> ImportedVideo:
    columns = [cells.text(corner) for corner in CORNERS]
    tags = cells.text("class" if "class" in cells.columns else "tag")
    times = cells.floats("pts")
    timed = next((video for video in known if not name or same_name((name,), video)), None)
    labels, listed = [], set()
    for row in rows:
        frame = float(frames[row])
        if np.isnan(frame):
            found = None if timed is None or np.isnan(times[row]) else frame_at(timed, float(times[row]))
            if found is None:
                reason = "no table of this video" if timed is None else "no frame of the table has this pts"
                left_out[f"row of {name!r} by pts: {reason}"] += 1
                continue
            frame = found
        listed.add(int(frame))
        corners = [column[row] for column in columns]
        if all(corners):
            if not tags[row]:
                cells.fail(row, "has a box, but no class")
            labels.append(FrameLabel(frame, tags[row], corners_of(file, corners)))
        elif any(corners):
            cells.fail(row, "x1, y1, x2 and y2 must all be given or all be empty")
    return ImportedVideo((name,) if name else (), tracks_of_frames(labels), listed=np.array(sorted(listed), np.int64))


def frame_at(video: LabelledVideo, pts: float) -> int | None:
    """Index of the listed frame that is nearest to a time; None if it is further than half the usual step."""
    times = np.unique(video.rows.pts)
    step = float(np.median(np.diff(times))) if len(times) > 1 else np.inf
    row = int(np.abs(video.rows.pts - pts).argmin())
    return int(video.rows.frame[row]) if abs(float(video.rows.pts[row]) - pts) <= step / 2 else None

"""Frames to check by hand: boxes ranked by doubt, without true boxes or training."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from colocam.errors import ArgumentError, ColocamError
from colocam.inference.table_files import names_of, tables_of
from colocam.review.doubt import Rows, doubts, frames_of, reason, signs
from colocam.review.purposes import PURPOSES, find_purpose
from colocam.review.queue import APART
from colocam.review.review_rows import read_tables
from colocam.utils.files import atomic_path, refuse_replacing
from colocam.utils.tables import csv_cell

__all__ = ["APART", "PURPOSES", "SHARE", "Doubtful", "rank", "review_tables"]

SHARE = 0.05
"""Share of the frames to list."""
COLUMNS = ("video", "frame", "pts", "doubt", "reason")


class Doubtful(NamedTuple):
    """A frame to check: index of its video, index of the frame, seconds, doubt (0–1), and the reason in words."""

    video: int
    frame: int
    pts: float
    doubt: float
    reason: str


def rank(rows: Rows, share: float = SHARE, apart: float = APART, purpose: str = "errors") -> list[Doubtful]:
    """Order ``share`` of the frames by purpose, see :mod:`colocam.review.purposes`.

    Of several objects in a frame the most doubtful one counts.
    """
    order, found = find_purpose(purpose), signs(rows)
    doubt = doubts(found)
    frame, start = frames_of(rows)
    # Sorted by frame, then by doubt, the last row of each frame is the most doubtful one.
    last = np.lexsort((doubt, frame))[np.append(start[1:], len(frame)) - 1]
    chosen = order(doubt[last], rows.video[last], rows.pts[last], max(1, round(share * len(last))), apart)
    return [
        Doubtful(
            int(rows.video[row]),
            int(rows.frame[row]),
            float(rows.pts[row]),
            float(doubt[row]),
            reason({name: float(sign[row]) for name, sign in found.items()}, box=bool(np.isfinite(rows.box[row, 0]))),
        )
        for row in last[chosen].tolist()
    ]


def review_tables(
    tables: Sequence[str | Path],
    out: str | Path,
    *,
    share: float = SHARE,
    apart: float = APART,
    purpose: str = "errors",
) -> Path:
    """Write a CSV ``video, frame, pts, doubt, reason`` of the frames to look at, most important first.

    Args:
        tables: CSV or parquet, as ``colocam localize`` writes them, one per video, or folders of them.
        out: the CSV file; a file that holds something else is not replaced.
        share: share of the frames to list, above 0 and at most 1.
        apart: seconds within which a listed frame lowers the priority of others; 0: never.
        purpose: ``errors``: frames that are probably wrong; ``learning``: frames to learn from, at even distances over
            all videos.
    """
    find_purpose(purpose)
    paths, out = tables_of(tables), Path(out)
    check(share, apart)
    if any(path.exists() and out.exists() and path.samefile(out) for path in paths):
        raise ArgumentError("out", f"must be another file than the table, got {out}")
    rows = read_tables(paths)
    if not len(rows.frame):
        raise ColocamError(f"{paths[0]}: the table has no rows, so there is nothing to review")
    write_queue(out, names_of(paths), rank(rows, share, apart, purpose))
    return out


def check(share: float, apart: float) -> None:
    """Refuse values out of range."""
    if not 0 < share <= 1:
        raise ArgumentError("share", f"must be above 0 and at most 1, got {share}")
    if not apart >= 0:
        raise ArgumentError("apart", f"must be 0 seconds or more, got {apart}")


def write_queue(out: Path, names: Sequence[str], frames: Sequence[Doubtful]) -> None:
    """Write frames in the given order, with the names of their videos; only an earlier queue is replaced."""
    refuse_replacing(out, ",".join(COLUMNS).encode(), "list of frames to review")
    with atomic_path(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for one in frames:
            writer.writerow((csv_cell(names[one.video]), one.frame, one.pts, f"{one.doubt:.4f}", one.reason))

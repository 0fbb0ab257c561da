"""Read localisation tables for the review; no video is needed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colocam.inference.table import read_table
from colocam.review.doubt import Rows


def read_tables(tables: Sequence[Path]) -> Rows:
    """Read the rows of all tables; ``video`` is the index of the table. A row without a time gets its frame index."""
    parts = [_read(table, index) for index, table in enumerate(tables)]
    return Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _read(table: Path, video: int) -> Rows:
    rows = read_table(table, required=("score",))
    return Rows(
        video=np.full(len(rows.frame), video),
        frame=rows.frame,
        pts=np.where(np.isnan(rows.pts), rows.frame, rows.pts),
        box=rows.box,
        score=np.nan_to_num(rows.score),
        presence=rows.presence,
        margin=rows.margin,
    )

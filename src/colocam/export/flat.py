"""CSV and parquet: a table per video as ``colocam localize`` writes it, checked, with all columns, ready to join."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.utils.files import atomic_path
from colocam.video.description import write_source


def write_csv(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001 - every format is called alike
    """Write ``<video>.csv`` and ``<video>.video.json`` for each video."""
    for video in labels.videos:
        with atomic_path(folder / f"{video.name}.csv") as temporary:
            pacsv.write_csv(_table(video), temporary)
        write_source(folder / f"{video.name}.csv", video.source)


def write_parquet(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001
    """Write ``<video>.parquet`` and ``<video>.video.json`` for each video."""
    for video in labels.videos:
        with atomic_path(folder / f"{video.name}.parquet") as temporary:
            pq.write_table(_table(video), temporary)
        write_source(folder / f"{video.name}.parquet", video.source)


def _table(video: LabelledVideo) -> pa.Table:
    columns = {
        "video": pa.array([video.name] * len(video.frame), pa.string()),
        "frame": pa.array(video.frame),
        "pts": pa.array(video.pts),
        "class": pa.array(video.tag, pa.string()),
        "probability": pa.array(video.probability, from_pandas=True),
        **{name: pa.array(video.box[:, i], from_pandas=True) for i, name in enumerate(("x1", "y1", "x2", "y2"))},
        "score": pa.array(video.score, from_pandas=True),
        "track": pa.array(video.track, mask=video.track < 0),
        "presence": pa.array(video.presence, from_pandas=True),
        "mask": pa.array([text or None for text in video.mask], pa.string()),
    }
    if video.source.pictures:
        columns["picture"] = pa.array([video.source.pictures[frame] for frame in video.frame.tolist()], pa.string())
    return pa.table(columns)

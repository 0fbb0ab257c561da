"""CSV and parquet: one localisation table per video, checked and with every column."""

from dataclasses import replace
from pathlib import Path

from colocam.export.labels import LabelSet, Options
from colocam.inference.table import OPTIONAL, LocalizationTable
from colocam.video.description import write_source


def write_csv(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001 - every format is called alike
    """Write ``<video>.csv`` and ``<video>.video.json`` for each video."""
    _write(labels, folder, "csv")


def write_parquet(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001
    """Write ``<video>.parquet`` and ``<video>.video.json`` for each video."""
    _write(labels, folder, "parquet")


def _write(labels: LabelSet, folder: Path, ending: str) -> None:
    for video in labels.videos:
        path = folder / f"{video.name}.{ending}"
        with LocalizationTable(path, OPTIONAL, video.source.pictures, video.name) as table:
            table.write_rows(video.rows)
        write_source(path, replace(video.source, path=Path(video.source.stated_path), shown_as=""))

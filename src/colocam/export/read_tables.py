"""Read localisation tables together with the videos they were made from."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from colocam.errors import ArgumentError, ColocamError
from colocam.export.labels import LabelledVideo
from colocam.inference.table import read_table
from colocam.inference.table_files import names_of
from colocam.utils.files import plain, stored
from colocam.video.description import SourceVideo, read_source
from colocam.video.fence import probe_source


def read_videos(tables: list[Path], videos: list[Path]) -> list[LabelledVideo]:
    """Read tables, each with its video: one of ``videos``, or what ``<table>.video.json`` describes."""
    if videos and len(videos) != len(tables):
        raise ArgumentError("videos", f"must name one video per table, got {len(videos)} for {len(tables)}")
    read: list[LabelledVideo] = []
    for index, (name, table) in enumerate(zip(names_of(tables), tables, strict=True)):
        if not stored(table).is_file():
            raise ColocamError(f"cannot read {table}: there is no such file")
        source = probe_source(stored(videos[index])) if videos else read_source(table)
        read.append(read_video(name, table, source))
    return _with_image_names(read)


def read_video(name: str, table: Path, source: SourceVideo) -> LabelledVideo:
    """Read the table of one video; times that it does not state follow from the rate of the video."""
    rows = read_table(table, source, required=("class",))
    rows = rows._replace(pts=np.where(np.isnan(rows.pts), rows.frame / float(source.fps), rows.pts))
    return LabelledVideo(name, source, rows)


def _with_image_names(videos: list[LabelledVideo]) -> list[LabelledVideo]:
    """Images of folders keep their names, with the table's name before them where there are several tables.

    If two images would get one name, all are numbered, as the frames of video files are.
    """
    alone = len(videos) == 1
    names = [tuple(plain(n) if alone else f"{v.name}_{plain(n)}" for n in v.source.pictures) for v in videos]
    stems = [name.rpartition(".")[0].casefold() for own in names for name in own]
    if len(set(stems)) < len(stems):
        return videos
    return [replace(video, images=own) for video, own in zip(videos, names, strict=True)]

"""Labels where people need them: tables of boxes in the formats of detectors and annotation tools."""

from collections.abc import Sequence
from pathlib import Path

from colocam.errors import ColocamError
from colocam.export import coco, cvat, flat, label_studio, masks, mot, voc, yolo
from colocam.export.labels import LabelSet, Options
from colocam.export.read_tables import read_videos
from colocam.utils.files import atomic_folder

FORMATS = {
    "coco": coco.write,
    "yolo": yolo.write,
    "voc": voc.write,
    "mot": mot.write,
    "cvat": cvat.write,
    "label-studio": label_studio.write,
    "csv": flat.write_csv,
    "parquet": flat.write_parquet,
    "masks": masks.write,
}
WITH_IMAGES = ("coco", "yolo", "voc", "mot", "masks")
MARKER = ".colocam-export.json"
"""The file by which an exported folder is known again."""

__all__ = ["FORMATS", "Options", "export"]


def export(
    tables: Sequence[str | Path],
    to: str,
    out: str | Path,
    *,
    videos: Sequence[str | Path] = (),
    options: Options | None = None,
) -> Path:
    """Write the boxes of ``tables`` as a folder ``out`` in the format ``to``, whole or not at all.

    Args:
        tables: CSV or parquet, one per video, as ``colocam localize`` writes them.
        to: one of :data:`FORMATS`.
        out: the folder; an earlier export there is replaced, anything else is left alone.
        videos: the video of each table, in order; without them what ``<table>.video.json`` says.
        options: pictures, tolerance of key frames, address of videos.
    """
    out, options = Path(out), options or Options()
    if to not in FORMATS:
        raise ColocamError(f"--to {to}: give one of {', '.join(FORMATS)}")
    if options.images and to not in WITH_IMAGES:
        raise ColocamError(f"--images: {to} takes the video itself; pictures go with {', '.join(WITH_IMAGES)}")
    if not options.tolerance >= 0:
        raise ColocamError(f"--tolerance {options.tolerance}: give pixels, 0 or more")
    labels = LabelSet(read_videos([Path(table) for table in tables], [Path(video) for video in videos]))
    if not labels.classes:
        raise ColocamError(f"{tables[0]}: no row has a box, so there is nothing to export")
    with atomic_folder(out, MARKER) as folder:
        FORMATS[to](labels, folder, options)
    return out

"""Write the boxes of localisation tables in the formats of detectors and annotation tools.

A label format is an entry of :data:`FORMATS`. To add one, write a function and register it:

>>> import json
>>> from colocam.export import FORMATS, Format
>>> def write(labels, folder, options):
...     for video in labels.videos:
...         boxes = [(video.rows.tag[row], *video.rows.box[row].tolist()) for row in video.objects]
...         (folder / f"{video.name}.json").write_text(json.dumps(boxes))
>>> FORMATS["mine"] = Format("a list of boxes per video", write)
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ArgumentError, ColocamError, suggest
from colocam.export import (
    coco,
    cvat,
    cvat_masks,
    fiftyone_videos,
    flat,
    label_studio,
    label_studio_masks,
    masks,
    mot,
    voc,
    yolo,
)
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.export.read_tables import read_videos
from colocam.inference.table_files import tables_of
from colocam.utils.files import atomic_folder


class Format(NamedTuple):
    """A label format.

    Attributes:
        title: what it is, in a few words; the command line's help prints it.
        write: writes the labels into an empty folder.
        images: whether it can hold the frames as image files (``options.images``).
    """

    title: str
    write: Callable[[LabelSet, Path, Options], None]
    images: bool = False


FORMATS: dict[str, Format] = {
    "coco": Format("COCO JSON, boxes and masks", coco.write, images=True),
    "yolo": Format("YOLO text files with data.yaml", yolo.write, images=True),
    "yolo-segments": Format("the same with the outlines of masks", yolo.write_segments, images=True),
    "voc": Format("Pascal VOC XML; pixels count from 1 (CVAT reads from 0)", voc.write, images=True),
    "mot": Format("MOTChallenge, one folder per video", mot.write, images=True),
    "cvat": Format("CVAT for video 1.1, tracks with key frames", cvat.write),
    "cvat-masks": Format("CVAT for video 1.1, masks of single frames", cvat_masks.write),
    "label-studio": Format("Label Studio tasks with predictions", label_studio.write),
    "label-studio-masks": Format("Label Studio image tasks with masks", label_studio_masks.write, images=True),
    "fiftyone": Format("FiftyOne video labels: boxes, masks and tracks of frames", fiftyone_videos.write),
    "csv": Format("localisation tables, checked, as CSV", flat.write_csv),
    "parquet": Format("localisation tables, checked, as parquet", flat.write_parquet),
    "masks": Format("PNG images of class numbers", masks.write, images=True),
}
"""Label formats by the name that ``colocam export --to`` takes."""
MARKER = ".colocam-export.json"
"""File that marks a folder as an export."""

__all__ = ["FORMATS", "Format", "LabelSet", "LabelledVideo", "Options", "export"]


def export(
    tables: Sequence[str | Path],
    to: str,
    out: str | Path,
    *,
    videos: Sequence[str | Path] = (),
    options: Options | None = None,
) -> Path:
    """Write the boxes of ``tables`` into a folder; the folder appears only when it is complete.

    Args:
        tables: localisation tables, CSV or parquet, one per video, or folders of them; or one folder of ``colocam
            label``.
        to: one of :data:`FORMATS`.
        out: the folder; an earlier export is replaced if no file of it was changed, other files are never replaced.
        videos: the video of each table, in order; by default what ``<table>.video.json`` describes. For a folder of
            labels, the folder that the names of its films are relative to; only ``options.images`` needs it.
        options: images, tolerance of key frames, prefix of URLs.
    """
    out, options = Path(out), options or Options()
    if to not in FORMATS:
        raise ArgumentError("to", f"must be a label format, got {to!r}{suggest(to, list(FORMATS))}")
    if options.images and not FORMATS[to].images:
        able = ", ".join(name for name, format_ in FORMATS.items() if format_.images)
        raise ArgumentError("images", f"cannot be written for {to!r}: only for {able}")
    if not options.tolerance >= 0:
        raise ArgumentError("tolerance", f"must be 0 or more pixels, got {options.tolerance}")
    labels = LabelSet(_read([Path(table) for table in tables], [Path(video) for video in videos]))
    if not labels.classes:
        raise ColocamError(f"{tables[0]}: no row has a box, so there is nothing to export")
    with atomic_folder(out, MARKER) as folder:
        FORMATS[to].write(labels, folder, options)
    return out


def _read(tables: list[Path], videos: list[Path]) -> Sequence[LabelledVideo]:
    if not any(table.is_dir() for table in tables):
        return read_videos(tables, videos)
    from colocam.export.labelled_films import is_labels, read_labels  # noqa: PLC0415 - pyarrow is an extra

    if not any(is_labels(table) for table in tables):
        return read_videos(tables_of(tables), videos)
    if len(tables) > 1 or len(videos) > 1:
        raise ColocamError(
            "a folder of 'colocam label' is exported by itself: name it alone, with at most one `videos`"
        )
    return read_labels(tables[0], videos[0] if videos else None)

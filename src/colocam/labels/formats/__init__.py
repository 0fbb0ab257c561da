"""Label formats: each is an entry of :data:`FORMATS`, which can write labels, read them, or both; and the export.

To add one, write a function and register it:

>>> import json
>>> from colocam.labels import FORMATS, Format, FrameLabel, ImportedVideo, tracks_of_frames
>>> from colocam.types import Box
>>> def write(labels, folder, options):
...     for video in labels.videos:
...         boxes = [(video.rows.tag[row], *video.rows.box[row].tolist()) for row in video.objects]
...         (folder / f"{video.name}.json").write_text(json.dumps(boxes))
>>> def read(path, known, left_out):
...     boxes = json.loads(path.read_text())
...     labels = [FrameLabel(frame, tag, Box(*corners)) for frame, tag, *corners in boxes]
...     return [ImportedVideo((path.stem,), tracks_of_frames(labels))]
>>> FORMATS["mine"] = Format("a list of boxes per video", write, read=read)
>>> del FORMATS["mine"]

Private: ``colocam.labels`` lists what is public of it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from colocam.errors import ArgumentError, ColocamError
from colocam.labels.formats import coco, cvat, fiftyone, flat, label_studio, mot, voc, yolo
from colocam.labels.frame_states import chosen_videos, marked_videos
from colocam.labels.imported_videos import ImportedVideo
from colocam.labels.label_folder import is_labels, read_labels
from colocam.labels.labeled_videos import (
    LabeledVideo,
    LabelSet,
    LeftOut,
    Options,
    describe_splits,
    read_videos,
    tracks_of_several_classes,
)
from colocam.labels.table_files import tables_of
from colocam.utils.extensions import unknown
from colocam.utils.files import atomic_folder
from colocam.utils.progress import say

__all__: list[str] = []

MARKER = ".colocam-export.json"
"""File that marks a folder as an export."""


class Format(NamedTuple):
    """A label format.

    Attributes:
        title: what it is, in a few words; the command line's help prints it.
        write: writes the labels into an empty folder; None: it can only be read.
        images: whether it can hold the frames as image files (``options.images``).
        read: (file or folder, known videos, what is left out) → the labels of each video; None: it can only be written.
        precision: pixels by which a corner that was read may differ from the written one, since the format rounds.
        key_frames: boxes between key frames are interpolated, so they differ by the tolerance of the export.
        splits: videos are split for training, validation and testing.
        class_per_track: a track has one class, also where rows of the table differ.
    """

    title: str
    write: Callable[[LabelSet, Path, Options], None] | None = None
    images: bool = False
    read: Callable[[Path, Sequence[LabeledVideo], LeftOut], list[ImportedVideo]] | None = None
    precision: float = 1e-3
    key_frames: bool = False
    splits: bool = False
    class_per_track: bool = False


FORMATS: dict[str, Format] = {
    "coco": Format("COCO JSON, boxes and masks", coco.write, images=True, read=coco.read),
    "yolo": Format("YOLO text files with data.yaml", yolo.write, images=True, read=yolo.read, splits=True),
    "yolo-segments": Format(
        "the same with the outlines of masks", partial(yolo.write, outlines=True), images=True, splits=True
    ),
    "voc": Format(
        "Pascal VOC XML; pixels count from 1 (CVAT reads from 0)",
        voc.write,
        images=True,
        read=voc.read,
        precision=1.0,
        splits=True,
    ),
    "mot": Format(
        "MOTChallenge, one folder per video",
        mot.write,
        images=True,
        read=mot.read,
        precision=0.01,
        class_per_track=True,
    ),
    "cvat": Format(
        "CVAT 1.1, tracks of a video with key frames",
        cvat.write,
        read=cvat.read,
        precision=0.01,
        key_frames=True,
        class_per_track=True,
    ),
    "cvat-masks": Format("CVAT for video 1.1, masks of single frames", partial(cvat.write, masks=True)),
    "label-studio": Format(
        "Label Studio tasks, JSON",
        label_studio.write,
        read=label_studio.read,
        key_frames=True,
        class_per_track=True,
    ),
    "label-studio-masks": Format("Label Studio image tasks with masks", label_studio.write_masks, images=True),
    "fiftyone": Format("FiftyOne video labels: boxes, masks and tracks of frames", fiftyone.write),
    "csv": Format("localization tables as CSV", partial(flat.write, ending="csv"), read=flat.read),
    "parquet": Format("localization tables as parquet", partial(flat.write, ending="parquet"), read=flat.read),
    "masks": Format("PNG images of class numbers", voc.write_masks, images=True),
}
"""Label formats by the name that ``colocam export --to`` and ``colocam import --from`` take."""


def writable() -> dict[str, Format]:
    """The formats that labels can be exported to."""
    return {name: one for name, one in FORMATS.items() if one.write is not None}


def readable() -> dict[str, Format]:
    """The formats that labels can be imported from."""
    return {name: one for name, one in FORMATS.items() if one.read is not None}


def export(
    tables: Sequence[str | Path],
    to: str,
    out: str | Path,
    *,
    videos: Sequence[str | Path] = (),
    options: Options | None = None,
    tell: Callable[[str], None] = say,
) -> Path:
    """Write the boxes of ``tables`` into a folder; the folder appears only when it is complete.

    Args:
        tables: localization tables, CSV or parquet, one per video, or folders of them; or one folder of ``colocam
            label``.
        to: one of :data:`colocam.labels.FORMATS`.
        out: the folder; an earlier export is replaced if no file of it was changed, other files are never replaced.
        videos: the video of each table, in order; by default what ``<table>.video.json`` describes. For a folder of
            labels, the folder that the names of its videos are relative to; only ``options.images`` needs it.
        options: images, frames, splits, tolerance of key frames, prefix of URLs.
        tell: gets a line for everything that the labels do not say as the tables do: frames that were left out, how the
            videos were split, tracks that got one class. By default it is printed.
    """
    out = Path(out)
    options = options or Options()
    formats = writable()
    if to not in formats or (write := formats[to].write) is None:
        raise ArgumentError("to", f"must be a label format, got {to!r}{unknown(to, list(formats))}")
    if options.images and not formats[to].images:
        able = ", ".join(name for name, format_ in formats.items() if format_.images)
        raise ArgumentError("images", f"cannot be written for {to!r}: only for {able}")
    if not options.tolerance >= 0:
        raise ArgumentError("tolerance", f"must be 0 or more pixels, got {options.tolerance}")
    every_video = _read([Path(table) for table in tables], [Path(video) for video in videos])
    if options.checked is not None:
        every_video = marked_videos(every_video, options.checked)
    labels = LabelSet(chosen_videos(every_video, options.frames, tell))
    if not labels.classes:
        raise ColocamError(f"{tables[0]}: no row has a box, so there is nothing to export")
    with atomic_folder(out, MARKER) as folder:
        write(labels, folder, options)
    if formats[to].splits:
        tell(describe_splits(labels.splits(options.split)))
    if formats[to].class_per_track:
        for line in tracks_of_several_classes(labels.videos, to):
            tell(line)
    return out


def _read(tables: list[Path], videos: list[Path]) -> Sequence[LabeledVideo]:
    if not any(table.is_dir() for table in tables):
        return read_videos(tables, videos)
    if not any(is_labels(table) for table in tables):
        return read_videos(tables_of(tables), videos)
    if len(tables) > 1 or len(videos) > 1:
        raise ColocamError(
            "a folder of 'colocam label' must be exported on its own: name nothing else, and at most one `videos`"
        )
    return read_labels(tables[0], videos[0] if videos else None)

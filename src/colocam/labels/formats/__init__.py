"""Label formats: each is an entry of :data:`FORMATS`, which can write labels, read them, or both.

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
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from colocam.labels.formats import coco, cvat, fiftyone, flat, label_studio, masks, mot, voc, yolo
from colocam.labels.imported import ImportedVideo, LeftOut
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options


class Format(NamedTuple):
    """A label format.

    Attributes:
        title: what it is, in a few words; the command line's help prints it.
        write: writes the labels into an empty folder; None: it can only be read.
        images: whether it can hold the frames as image files (``options.images``).
        read: (file or folder, known videos, what is left out) → the labels of each video; None: it can only be written.
        precision: pixels by which a corner that was read may differ from the written one, since the format rounds.
        key_frames: boxes between key frames are interpolated, so they differ by the tolerance of the export.
    """

    title: str
    write: Callable[[LabelSet, Path, Options], None] | None = None
    images: bool = False
    read: Callable[[Path, Sequence[LabelledVideo], LeftOut], list[ImportedVideo]] | None = None
    precision: float = 1e-3
    key_frames: bool = False


FORMATS: dict[str, Format] = {
    "coco": Format("COCO JSON, boxes and masks", coco.write, images=True, read=coco.read),
    "yolo": Format("YOLO text files with data.yaml", yolo.write, images=True, read=yolo.read),
    "yolo-segments": Format("the same with the outlines of masks", yolo.write_segments, images=True),
    "voc": Format(
        "Pascal VOC XML; pixels count from 1 (CVAT reads from 0)", voc.write, images=True, read=voc.read, precision=1.0
    ),
    "mot": Format("MOTChallenge, one folder per video", mot.write, images=True, read=mot.read, precision=0.01),
    "cvat": Format(
        "CVAT 1.1, tracks of a video with key frames", cvat.write, read=cvat.read, precision=0.01, key_frames=True
    ),
    "cvat-masks": Format("CVAT for video 1.1, masks of single frames", cvat.write_masks),
    "label-studio": Format("Label Studio tasks, JSON", label_studio.write, read=label_studio.read, key_frames=True),
    "label-studio-masks": Format("Label Studio image tasks with masks", label_studio.write_masks, images=True),
    "fiftyone": Format("FiftyOne video labels: boxes, masks and tracks of frames", fiftyone.write),
    "csv": Format("localisation tables as CSV", flat.write_csv, read=flat.read),
    "parquet": Format("localisation tables as parquet", flat.write_parquet, read=flat.read),
    "masks": Format("PNG images of class numbers", masks.write, images=True),
}
"""Label formats by the name that ``colocam export --to`` and ``colocam import --from`` take."""


def writable() -> dict[str, Format]:
    """The formats that labels can be exported to."""
    return {name: one for name, one in FORMATS.items() if one.write is not None}


def readable() -> dict[str, Format]:
    """The formats that labels can be imported from."""
    return {name: one for name, one in FORMATS.items() if one.read is not None}

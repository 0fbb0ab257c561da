"""CVAT for video 1.1 with masks: one XML file per video.

CVAT has no tracks of masks: its importer makes a shape of the first mask of a track. So each
mask is a track of its own. It is stored as run lengths of its bounding rectangle, row by row, of 0, 1, 0, ….
"""

from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.export.cvat import box_element, meta_element, write_annotations
from colocam.export.labels import LabelledVideo, LabelSet, Options


def write(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001 - every format is called alike
    """Write ``<video>.xml`` for each video; a box without a mask stays a box."""
    labels.require_masks()
    for video in labels.videos:
        tracks = (_track(video, index, row) for index, row in enumerate(video.objects.tolist()))
        write_annotations(folder / f"{video.name}.xml", meta_element(labels, video, "any"), tracks)


def _track(video: LabelledVideo, index: int, row: int) -> ET.Element:
    track = ET.Element("track", id=str(index), label=video.rows.tag[row], source="auto")
    track.extend(_shapes(video, row))
    return track


def _shapes(video: LabelledVideo, row: int) -> list[ET.Element]:
    frame = int(video.rows.frame[row])
    if video.rows.mask[row]:
        mask = rle.decode(video.rows.mask[row], video.source.height, video.source.width)
        if mask.any():
            return [_mask(frame, mask)]
    box = video.rows.box[row]
    end = [box_element(frame + 1, box, outside=True)] if frame + 1 < video.source.frames else []
    return [box_element(frame, box, outside=False), *end]


def _mask(frame: int, mask: npt.NDArray[np.bool_]) -> ET.Element:
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    part = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    place = {"left": columns[0], "top": rows[0], "width": part.shape[1], "height": part.shape[0]}
    runs = ", ".join(map(str, rle.runs(part.ravel()).tolist()))
    place |= {"frame": frame, "keyframe": 1, "outside": 0, "occluded": 0, "z_order": 0}
    return ET.Element("mask", {"rle": runs, **{name: str(value) for name, value in place.items()}})

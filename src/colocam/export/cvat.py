"""CVAT for video 1.1: one XML file per video, one track per object.

CVAT keeps only boxes with ``keyframe="1"``, interpolates linearly between them, and shows a track until a key frame
with ``outside="1"``. So few key frames are written, and one with ``outside="1"`` after each stretch of a track.
"""

from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.export.keyframes import sparse_keyframes
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.export.row_tracks import Track
from colocam.utils.files import atomic_path


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``<video>.xml`` for each video."""
    for video in labels.videos:
        tracks = (_track(video, track, options.tolerance) for track in video.tracks)
        write_annotations(folder / f"{video.name}.xml", meta_element(labels, video, "rectangle"), tracks)


def write_annotations(path: Path, meta: ET.Element, tracks: Iterable[ET.Element]) -> None:
    """Write a document; one track at a time is in memory."""
    version = ET.Element("version")
    version.text = "1.1"
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write("<?xml version='1.0' encoding='utf-8'?>\n<annotations>\n")
        for element in chain([version, meta], tracks):
            ET.indent(element, level=1)
            file.write(f"  {ET.tostring(element, encoding='unicode')}\n")
        file.write("</annotations>")


def meta_element(labels: LabelSet, video: LabelledVideo, shape: str) -> ET.Element:
    """What CVAT states of a video; ``shape`` is the kind of its labels."""
    meta = ET.Element("meta")
    task = ET.SubElement(meta, "task")
    facts = {"name": video.name, "size": video.source.frames, "mode": "interpolation", "overlap": 0, "flipped": False}
    for name, value in facts.items():
        ET.SubElement(task, name).text = str(value)
    listed = ET.SubElement(task, "labels")
    for tag in labels.classes:
        label = ET.SubElement(listed, "label")
        ET.SubElement(label, "name").text = tag
        ET.SubElement(label, "type").text = shape
        ET.SubElement(label, "attributes")
    size = ET.SubElement(task, "original_size")
    ET.SubElement(size, "width").text = str(video.source.width)
    ET.SubElement(size, "height").text = str(video.source.height)
    ET.SubElement(task, "source").text = video.source.file
    return meta


def _track(video: LabelledVideo, track: Track, tolerance: float) -> ET.Element:
    element = ET.Element("track", id=str(track.id - 1), label=track.tag, source="auto")
    for rows in track.stretches:
        frames, boxes = video.rows.frame[rows], video.rows.box[rows]
        for index in sparse_keyframes(frames, boxes, tolerance).tolist():
            element.append(box_element(int(frames[index]), boxes[index], outside=False))
        after = int(frames[-1]) + 1
        if after < video.source.frames:
            element.append(box_element(after, boxes[-1], outside=True))
    return element


def box_element(frame: int, box: npt.NDArray[np.float64], *, outside: bool) -> ET.Element:
    """A key frame of a track."""
    corners = {name: f"{value:.2f}" for name, value in zip(("xtl", "ytl", "xbr", "ybr"), box.tolist(), strict=True)}
    state = {"frame": str(frame), "keyframe": "1", "outside": str(int(outside)), "occluded": "0"}
    return ET.Element("box", {**state, **corners, "z_order": "0"})

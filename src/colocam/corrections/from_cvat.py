"""CVAT 1.1, "for video" and "for images": XML whose frames count from 0.

Of a track, only boxes with ``keyframe="1"`` count. CVAT interpolates linearly between them and shows a box until a key
frame with ``outside="1"``. Frame numbers are those of the video, also if the task has a first frame or a step.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np

from colocam.corrections.image_frames import LabelledImage, videos_of_images
from colocam.corrections.imported import UNUSABLE, ImportedTrack, ImportedVideo, LeftOut
from colocam.corrections.label_files import corners_of, files_of, stream_xml, whole_number
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Box

CORNERS = ("xtl", "ytl", "xbr", "ybr")
SHAPES = frozenset({"box", "polygon", "polyline", "points", "cuboid", "mask", "ellipse", "skeleton"})


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read ``annotations.xml``, or all XML files of a folder."""
    videos: list[ImportedVideo] = []
    for file in files_of(path, ".xml"):
        found = _read_file(file, left_out)
        if found.images:
            videos += videos_of_images(found.images, known, left_out)
        if not found.images or found.tracks:
            videos += _videos(file, found)
    return videos


class _Content(NamedTuple):
    """The tracks of a file with the ids of their tasks, its images, and what it says about the tasks."""

    tracks: list[tuple[str, ImportedTrack | None]]
    images: list[LabelledImage]
    meta: ET.Element


def _read_file(file: Path, left_out: LeftOut) -> _Content:
    """Read a file shape by shape, so that memory holds boxes alone."""
    tracks: list[tuple[str, ImportedTrack | None]] = []
    images: list[LabelledImage] = []
    meta = ET.Element("meta")
    keys: dict[int, tuple[Box, bool]] = {}
    labels: list[tuple[str, Box]] = []
    for event, around in stream_xml(file, whole="meta"):
        element = around[-1]
        if around[0].tag != "annotations":
            raise ColocamError(
                f"{file}: not CVAT's XML (its root is <{around[0].tag}>): export as 'CVAT for video 1.1'"
            )
        if event == "start" or len(around) not in {2, 3}:
            continue
        outer = around[1]
        if len(around) == 2:
            if outer.tag == "meta":
                meta = outer
            elif outer.tag == "track":
                tracks.append((outer.get("task_id", ""), _track(outer.get("label", ""), keys)))
            elif outer.tag == "image":
                images.append(_image(file, outer, labels))
            keys, labels = {}, []
        elif element.tag in SHAPES and outer.tag == "track":
            _add_key(file, element, outer.get("label", ""), keys, left_out)
        elif element.tag in SHAPES and outer.tag == "image":
            tag = element.get("label", "")
            labels.append((tag, _corners(file, element, tag, left_out)))
    return _Content(tracks, images, meta)


def _videos(file: Path, found: _Content) -> list[ImportedVideo]:
    """One video for each task; a file of one task or job has one, that of a project several."""
    meta = found.meta
    tasks = meta.findall("project/tasks/task") or meta.findall("task") or meta.findall("job")
    tracks: defaultdict[str, list[ImportedTrack]] = defaultdict(list)
    for task_id, track in found.tracks:
        if track is not None:
            tracks[task_id if len(tasks) > 1 else ""].append(track)
    if not tasks:
        return [ImportedVideo((), tracks[""])]
    videos = []
    for task in tasks:
        names = [task.findtext(name) for name in ("source", "name")]
        own = tracks[task.findtext("id", "") if len(tasks) > 1 else ""]
        size = tuple(whole_number(file, "size", task.findtext(f"original_size/{n}")) for n in ("width", "height"))
        sized = None if size[0] is None or size[1] is None else (size[0], size[1])
        videos.append(ImportedVideo(tuple(filter(None, names)), own, frames=_length(file, task), size=sized))
    return videos


def _length(file: Path, task: ET.Element) -> int | None:
    """Number of frames of the video; None where the task has only some of them."""
    part = task.findtext("frame_filter") or task.findtext("start_frame") not in {None, "", "0"}
    return None if part or task.tag == "job" else whole_number(file, "size", task.findtext("size"))


def _add_key(file: Path, shape: ET.Element, tag: str, keys: dict[int, tuple[Box, bool]], left_out: LeftOut) -> None:
    """Add a shape of a track to its key frames: box, and whether the object is outside."""
    if shape.get("keyframe", "1") != "1":
        return
    frame = whole_number(file, "frame", shape.get("frame"))
    if frame is None:
        raise ColocamError(f"{file}: a {shape.tag} of class {tag!r} has no frame: export the task again")
    outside = shape.get("outside") == "1"
    keys[frame] = _corners(file, shape, tag, left_out, counted=not outside), outside


def _track(tag: str, keys: dict[int, tuple[Box, bool]]) -> ImportedTrack | None:
    if not keys:
        return None
    frames = sorted(keys)
    shown = np.array([not keys[frame][1] for frame in frames])
    boxes = np.array([keys[frame][0] for frame in frames], np.float64)
    return ImportedTrack(tag, np.array(frames, np.float64), boxes, shown, shown)


def _image(file: Path, element: ET.Element, labels: list[tuple[str, Box]]) -> LabelledImage:
    width, height = (whole_number(file, name, element.get(name)) for name in ("width", "height"))
    size = None if width is None or height is None else (width, height)
    return LabelledImage(element.get("name", ""), labels, size)


def _corners(file: Path, shape: ET.Element, tag: str, left_out: LeftOut, *, counted: bool = True) -> Box:
    """The corners of a box; other shapes and rotated boxes are left out."""
    if shape.tag == "box" and shape.get("rotation", "0") in {"0", "0.0", "0.00"}:
        return corners_of(file, [shape.get(name) for name in CORNERS])
    if counted:
        kind = "rotated box" if shape.tag == "box" else shape.tag
        left_out[f"{kind} of class {tag!r}: only upright boxes are read"] += 1
    return UNUSABLE

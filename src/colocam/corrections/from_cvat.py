"""CVAT 1.1, "for video" and "for images": XML whose frames count from 0.

Of a track, only boxes with ``keyframe="1"`` count. CVAT interpolates linearly between them and shows a box until a key
frame with ``outside="1"``. Frame numbers are those of the video, also if the task has a first frame or a step.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from colocam.corrections.image_frames import LabelledImage, videos_of_images
from colocam.corrections.imported import UNUSABLE, ImportedTrack, ImportedVideo, LeftOut
from colocam.corrections.label_files import corners_of, files_of, parse_xml, whole_number
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Box

CORNERS = ("xtl", "ytl", "xbr", "ybr")
SHAPES = frozenset({"box", "polygon", "polyline", "points", "cuboid", "mask", "ellipse", "skeleton"})


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read ``annotations.xml``, or all XML files of a folder."""
    videos: list[ImportedVideo] = []
    for file in files_of(path, ".xml"):
        root = parse_xml(file)
        if root.tag != "annotations":
            raise ColocamError(f"{file}: not CVAT's XML (its root is <{root.tag}>): export as 'CVAT for video 1.1'")
        images = [_image(file, element, left_out) for element in root.iterfind("image")]
        if images:
            videos += videos_of_images(images, known, left_out)
        if not images or root.find("track") is not None:
            videos += _videos(file, root, left_out)
    return videos


def _videos(file: Path, root: ET.Element, left_out: LeftOut) -> list[ImportedVideo]:
    """One video for each task; a file of one task or job has one, that of a project several."""
    tasks = root.findall("meta/project/tasks/task") or root.findall("meta/task") or root.findall("meta/job")
    tracks: defaultdict[str, list[ImportedTrack]] = defaultdict(list)
    for element in root.iterfind("track"):
        track = _track(file, element, left_out)
        if track is not None:
            tracks[element.get("task_id", "") if len(tasks) > 1 else ""].append(track)
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


def _track(file: Path, element: ET.Element, left_out: LeftOut) -> ImportedTrack | None:
    tag = element.get("label", "")
    keys: dict[int, tuple[Box, bool]] = {}
    for shape in element:
        if shape.tag not in SHAPES or shape.get("keyframe", "1") != "1":
            continue
        frame = whole_number(file, "frame", shape.get("frame"))
        if frame is None:
            raise ColocamError(f"{file}: a {shape.tag} of class {tag!r} has no frame: export the task again")
        outside = shape.get("outside") == "1"
        keys[frame] = _corners(file, shape, tag, left_out, counted=not outside), outside
    if not keys:
        return None
    frames = sorted(keys)
    shown = np.array([not keys[frame][1] for frame in frames])
    boxes = np.array([keys[frame][0] for frame in frames], np.float64)
    return ImportedTrack(tag, np.array(frames, np.float64), boxes, shown, shown)


def _image(file: Path, element: ET.Element, left_out: LeftOut) -> LabelledImage:
    shapes = [shape for shape in element if shape.tag in SHAPES]
    labels = [(tag, _corners(file, shape, tag, left_out)) for shape in shapes for tag in [shape.get("label", "")]]
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

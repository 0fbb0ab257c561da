"""CVAT for video 1.1: one XML file per video, one track per object.

CVAT keeps only boxes with ``keyframe="1"``, interpolates linearly between them, and shows a track until a key frame
with ``outside="1"``. So few key frames are written, and one with ``outside="1"`` after each stretch of a track.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels.formats.frame_images import LabelledImage, videos_of_images
from colocam.labels.formats.shapes import sparse_keyframes
from colocam.labels.imported import UNUSABLE, ImportedTrack, ImportedVideo, LeftOut
from colocam.labels.label_files import corners_of, files_of, stream_xml, whole_number
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options, Track
from colocam.types import Box
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


def write_masks(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001 - every format is called alike
    """Write ``<video>.xml`` for each video; a box without a mask stays a box."""
    labels.require_masks()
    for video in labels.videos:
        tracks = (_track_cvat_masks(video, index, row) for index, row in enumerate(video.objects.tolist()))
        write_annotations(folder / f"{video.name}.xml", meta_element(labels, video, "any"), tracks)


def _track_cvat_masks(video: LabelledVideo, index: int, row: int) -> ET.Element:
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
                tracks.append((outer.get("task_id", ""), _track_from_cvat(outer.get("label", ""), keys)))
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


def _track_from_cvat(tag: str, keys: dict[int, tuple[Box, bool]]) -> ImportedTrack | None:
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

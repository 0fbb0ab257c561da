"""CVAT 1.1: XML whose frames count from 0, "for video" with one track per object, or "for images".

CVAT keeps only boxes with ``keyframe="1"``, interpolates linearly between them, and shows a track until a key frame
with ``outside="1"``. So few key frames are written, and one with ``outside="1"`` after each stretch of a track.

CVAT has no tracks of masks: its importer makes a shape of the first mask of a track. So each mask is a track of its
own. It is stored as run lengths of its bounding rectangle, row by row, of 0, 1, 0, ….

Frame numbers are those of the video, also if the task has a first frame or a step.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels.formats.reading import (
    ImageLabel,
    LabeledImage,
    corners_of,
    files_of,
    read_label_text,
    size_of,
    stream_xml,
    videos_of_images,
    whole_number,
)
from colocam.labels.formats.writing import sparse_keyframes, xml_of
from colocam.labels.imported_videos import UNUSABLE, ImportedTrack, ImportedVideo, KeyFrame
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options, Track
from colocam.types import Box
from colocam.utils.files import atomic_path

CORNERS = ("xtl", "ytl", "xbr", "ybr")
MOST_TRACKS = 1 << 18
"""Tracks of a file at most; each takes about 5 KiB of memory."""
SHAPES = frozenset({"box", "polygon", "polyline", "points", "cuboid", "mask", "ellipse", "skeleton"})


def write(labels: LabelSet, folder: Path, options: Options, *, masks: bool = False) -> None:
    """Write ``<video>.xml`` for each video; with ``masks``, a box without a mask stays a box."""
    if masks:
        labels.require_masks()
    for video in labels.videos:
        if masks:
            objects = enumerate(video.objects.tolist())
            _write(labels, video, folder, "any", (_mask_track(video, index, row) for index, row in objects))
        else:
            _write(labels, video, folder, "rectangle", (_track(video, one, options.tolerance) for one in video.tracks))


def _write(labels: LabelSet, video: LabeledVideo, folder: Path, shape: str, tracks: Iterable[ET.Element]) -> None:
    """Write a document whose labels are of this shape; one track at a time is in memory."""
    task = {"name": video.name, "size": video.source.frames, "mode": "interpolation", "overlap": 0, "flipped": False}
    tags = [{"name": tag, "type": shape, "attributes": ""} for tag in labels.classes]
    size = {"width": video.source.width, "height": video.source.height}
    about = {"labels": {"label": tags}, "original_size": size, "source": video.source.file}
    first = xml_of("version", "1.1"), xml_of("meta", {"task": task | about})
    with atomic_path(folder / f"{video.name}.xml") as temporary, temporary.open("w", encoding="utf-8") as file:
        file.write("<?xml version='1.0' encoding='utf-8'?>\n<annotations>\n")
        for element in chain(first, tracks):
            ET.indent(element, level=1)
            file.write(f"  {ET.tostring(element, encoding='unicode')}\n")
        file.write("</annotations>")


def _track(video: LabeledVideo, track: Track, tolerance: float) -> ET.Element:
    element = ET.Element("track", id=str(track.id - 1), label=track.tag, source="auto")
    for rows in track.stretches:
        frames, boxes = video.rows.frame[rows], video.rows.box[rows]
        keys = sparse_keyframes(frames, boxes, tolerance)
        element.extend(_boxes(video, frames[keys], boxes[keys]))
    return element


def _mask_track(video: LabeledVideo, index: int, row: int) -> ET.Element:
    track = ET.Element("track", id=str(index), label=video.rows.tag[row], source="auto")
    mask = video.mask(row)
    if mask is None or not mask.any():
        track.extend(_boxes(video, video.rows.frame[[row]], video.rows.box[[row]]))
        return track
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    part = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    place = {"left": columns[0], "top": rows[0], "width": part.shape[1], "height": part.shape[0]}
    place |= {"frame": video.rows.frame[row], "keyframe": 1, "outside": 0, "occluded": 0, "z_order": 0}
    runs = ", ".join(map(str, rle.runs(part.ravel()).tolist()))
    ET.SubElement(track, "mask", {"rle": runs, **{name: str(value) for name, value in place.items()}})
    return track


def _boxes(video: LabeledVideo, frames: npt.NDArray[np.int64], boxes: npt.NDArray[np.float64]) -> list[ET.Element]:
    """Key frames of one stretch of a track, and its end."""
    after = int(frames[-1]) + 1
    keys = [(*key, False) for key in zip(frames.tolist(), boxes.tolist(), strict=True)]
    keys += [(after, boxes[-1].tolist(), True)] if after < video.source.frames else []
    elements = []
    for frame, box, outside in keys:
        corners = {name: f"{value:.2f}" for name, value in zip(CORNERS, box, strict=True)}
        state = {"frame": str(frame), "keyframe": "1", "outside": str(int(outside)), "occluded": "0"}
        elements.append(ET.Element("box", {**state, **corners, "z_order": "0"}))
    return elements


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read ``annotations.xml``, or all XML files of a folder; one track at a time is in memory as XML."""
    videos: list[ImportedVideo] = []
    for file in files_of(path, ".xml"):
        tracks: defaultdict[str, list[ImportedTrack]] = defaultdict(list)
        images, meta = list[LabeledImage](), ET.Element("meta")
        count = read_label_text(file).count("<track")
        if count > MOST_TRACKS:
            raise ColocamError(f"{file}: has {count} tracks, the limit is {MOST_TRACKS}: split the file")
        elements = stream_xml(file)
        if (root := next(elements).tag) != "annotations":
            raise ColocamError(f"{file}: not CVAT's XML (its root is <{root}>): export as 'CVAT for video 1.1'")
        for element in elements:
            if element.tag == "meta":
                meta.extend(element)
            elif element.tag == "track" and (keys := _keys(file, element, left_out)):
                track = ImportedTrack.of_keys(element.get("label", ""), keys, _number(element))
                tracks[element.get("task_id", "")].append(track)
            elif element.tag == "image":
                shapes = [(shape.get("label", ""), shape) for shape in element if shape.tag in SHAPES]
                labels = [ImageLabel(tag, _corners(file, shape, tag, left_out)) for tag, shape in shapes]
                size = size_of(file, element.get("width"), element.get("height"))
                images.append(LabeledImage(element.get("name", ""), labels, size))
        videos += videos_of_images(images, known, left_out)
        if not images or tracks:
            videos += _videos(file, meta, tracks)
    return videos


def _videos(file: Path, meta: ET.Element, tracks: Mapping[str, list[ImportedTrack]]) -> list[ImportedVideo]:
    """One video for each task; a file of one task or job has one, that of a project several with ``task_id``."""
    tasks = meta.findall("project/tasks/task") or meta.findall("task") or meta.findall("job")
    whole = [track for of_task in tracks.values() for track in of_task]
    if not tasks:
        return [ImportedVideo((), whole)]
    videos = []
    for task in tasks:
        names = filter(None, (task.findtext("source"), task.findtext("name")))
        of_task = tracks.get(task.findtext("id", ""), []) if len(tasks) > 1 else whole
        size = size_of(file, task.findtext("original_size/width"), task.findtext("original_size/height"))
        part = task.findtext("frame_filter") or task.findtext("start_frame") not in {None, "", "0"}
        # A task of a part of the frames does not say how many the video has.
        length = None if part or task.tag == "job" else whole_number(file, "size", task.findtext("size"))
        videos.append(ImportedVideo(tuple(names), of_task, frames=length, size=size))
    return videos


def _number(track: ET.Element) -> int | None:
    """The number of a track, from 1; CVAT counts from 0."""
    stated = track.get("id", "")
    return int(stated) + 1 if len(stated) < 10 and stated.isascii() and stated.isdigit() else None


def _keys(file: Path, track: ET.Element, left_out: LeftOut) -> dict[float, KeyFrame]:
    """The key frames of a track; the object is seen until one that hides it."""
    tag = track.get("label", "")
    keys: dict[float, KeyFrame] = {}
    for shape in track:
        if shape.tag not in SHAPES or shape.get("keyframe", "1") != "1":
            continue
        frame = whole_number(file, "frame", shape.get("frame"))
        if frame is None:
            raise ColocamError(f"{file}: a {shape.tag} of class {tag!r} has no frame: export the task again")
        shown = shape.get("outside") != "1"
        keys[frame] = _corners(file, shape, tag, left_out if shown else LeftOut()), shown, shown
    return keys


def _corners(file: Path, shape: ET.Element, tag: str, left_out: LeftOut) -> Box:
    """The corners of a box; other shapes and rotated boxes are left out."""
    if shape.tag == "box" and shape.get("rotation", "0") in {"0", "0.0", "0.00"}:
        return corners_of(file, [shape.get(name) for name in CORNERS])
    kind = "rotated box" if shape.tag == "box" else shape.tag
    left_out[f"{kind} of class {tag!r}: only upright boxes are read"] += 1
    return UNUSABLE

"""COCO: one JSON file for all videos, with the fields of TAO for videos and tracks.

Boxes are x, y, width, height in floating-point pixels. Categories count from 1. Masks are compressed run lengths.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels.formats.frame_images import LabelledImage, videos_of_images, write_images
from colocam.labels.imported import UNUSABLE, ImportedVideo, LeftOut
from colocam.labels.label_files import (
    corners_of,
    files_of,
    finite_number,
    listed_objects,
    parse_label_json,
    whole_number,
)
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options
from colocam.types import Box
from colocam.utils.files import stream_json


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``annotations/instances_default.json`` and, with images, ``images/``."""
    stream_json(
        folder / "annotations" / "instances_default.json",
        {
            "info": {"description": "boxes by colocam", "version": "1.0"},
            "licenses": [],
            "categories": [
                {"id": index, "name": tag, "supercategory": ""} for index, tag in enumerate(labels.classes, start=1)
            ],
            "videos": (_video(video) | {"id": index} for index, video in enumerate(labels.videos, start=1)),
            "images": _images(labels),
            "tracks": _tracks(labels),
            "annotations": _annotations(labels),
        },
    )
    if options.images:
        (folder / "images").mkdir()
        write_images(labels.videos, lambda video, frame: folder / "images" / video.image_name(frame))


def _images(labels: LabelSet) -> Iterator[dict[str, Any]]:
    ids = count(1)
    for video_id, video in enumerate(labels.videos, start=1):
        times = dict(zip(video.rows.frame.tolist(), video.rows.pts.tolist(), strict=True))
        for frame in video.objects_of:
            yield _image(video, frame, times[frame]) | {"id": next(ids), "video_id": video_id}


def _tracks(labels: LabelSet) -> Iterator[dict[str, Any]]:
    for video_id, (video, before) in enumerate(_with_tracks_before(labels), start=1):
        for track in video.tracks:
            category = labels.class_index[track.tag] + 1
            yield {"id": before + track.id, "category_id": category, "video_id": video_id}


def _annotations(labels: LabelSet) -> Iterator[dict[str, Any]]:
    ids, image_ids = count(1), count(1)
    for video_id, (video, before) in enumerate(_with_tracks_before(labels), start=1):
        for rows in video.objects_of.values():
            image_id = next(image_ids)
            for row in rows:
                track = before + video.track_of(row).id
                category = labels.class_index[video.rows.tag[row]] + 1
                own = {"id": next(ids), "image_id": image_id, "video_id": video_id}
                own |= {"category_id": category, "track_id": track}
                yield own | _shape(video, row) | _attributes(video, row, track)


def _with_tracks_before(labels: LabelSet) -> Iterator[tuple[LabelledVideo, int]]:
    """Each video with the number of tracks of the videos before it."""
    before = 0
    for video in labels.videos:
        yield video, before
        before += len(video.tracks)


def _video(video: LabelledVideo) -> dict[str, Any]:
    source = video.source
    size = {"width": source.width, "height": source.height}
    return {"name": video.name, "file_name": source.file, **size, "fps": float(source.fps), "frames": source.frames}


def _image(video: LabelledVideo, frame: int, pts: float) -> dict[str, Any]:
    name = video.image_name(frame)
    size = {"width": video.source.width, "height": video.source.height}
    return {"file_name": name, **size, "frame_index": frame, "frame_id": frame, "pts": pts}


def _shape(video: LabelledVideo, row: int) -> dict[str, Any]:
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    shape: dict[str, Any] = {"bbox": [x1, y1, x2 - x1, y2 - y1], "iscrowd": 0}
    if not video.rows.mask[row]:
        return shape | {"area": (x2 - x1) * (y2 - y1), "segmentation": []}
    size = [video.source.height, video.source.width]
    runs = {"size": size, "counts": video.rows.mask[row]}
    return shape | {"area": float(rle.area(video.rows.mask[row], *size)), "segmentation": runs}


def _attributes(video: LabelledVideo, row: int, track: int) -> dict[str, Any]:
    """Attributes that annotation tools keep, such as the track, and the score that evaluations read."""
    stated = {
        "probability": video.rows.probability[row],
        "presence": video.rows.presence[row],
        "score": video.rows.score[row],
    }
    numbers = {name: float(value) for name, value in stated.items() if not np.isnan(value)}
    score = {"score": numbers.pop("score")} if "score" in numbers else {}
    refined = {"refined": video.rows.refined[row]} if video.rows.refined[row] else {}
    return {**score, "attributes": {"occluded": False, "track_id": track, **numbers, **refined}}


READ = ("image_id", "category_id", "bbox", "iscrowd")
"""What is read of an annotation."""


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a COCO file, or all JSON files of a folder."""
    images: list[LabelledImage] = []
    for file in files_of(path, ".json"):
        content = parse_label_json(file, _needed)
        if not isinstance(content, dict) or "images" not in content:
            raise ColocamError(f"{file}: not COCO (it has no 'images'): is it of another format?")
        images += _images_from_coco(file, content, left_out)
    return videos_of_images(images, known, left_out)


def _needed(one: dict[str, Any]) -> dict[str, Any]:
    """What is needed of an object; outlines and areas are dropped while a large file is read."""
    return {name: one[name] for name in READ if name in one} if "image_id" in one else one


def _images_from_coco(file: Path, content: dict[str, Any], left_out: LeftOut) -> list[LabelledImage]:
    tags = {str(one.get("id")): str(one.get("name", "")) for one in _list(file, content, "categories")}
    videos = {
        str(one.get("id")): str(one.get("name") or one.get("file_name", "")) for one in _list(file, content, "videos")
    }
    labels: defaultdict[str, list[tuple[str, Box]]] = defaultdict(list)
    for one in _list(file, content, "annotations"):
        tag = tags.get(str(one.get("category_id")), "")
        usable = tag and not one.get("iscrowd")
        if not usable:
            left_out[f"region of class {tag!r} that holds several objects" if tag else "box without a class"] += 1
        labels[str(one.get("image_id"))].append((tag, _box(file, one.get("bbox")) if usable else UNUSABLE))
    images = _list(file, content, "images")
    if lost := labels.keys() - {str(one.get("id")) for one in images}:
        left_out["box of an image that the file does not list"] += sum(len(labels[name]) for name in lost)
    found = []
    for one in images:
        width, height = (whole_number(file, name, one.get(name)) for name in ("width", "height"))
        frame = one.get("frame_index", one.get("frame_id"))
        found.append(
            LabelledImage(
                name=str(one.get("file_name", "")),
                labels=labels[str(one.get("id"))],
                size=(width, height) if width and height else None,
                video=videos.get(str(one.get("video_id"))) if frame is not None else None,
                frame=whole_number(file, "frame_index", frame),
            )
        )
    return found


def _list(file: Path, content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return listed_objects(file, content.get(name), name)


def _box(file: Path, bbox: object) -> Box:
    if not isinstance(bbox, list) or len(bbox) != 4:
        raise ColocamError(f"{file}: bbox must be [x, y, width, height], got {str(bbox)[:60]}")
    x, y, width, height = (finite_number(file, "bbox", side) for side in bbox)
    return corners_of(file, (x, y, x + width, y + height))

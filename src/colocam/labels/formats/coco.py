"""COCO: one JSON file for all videos, with the fields of TAO for videos and tracks.

Boxes are x, y, width, height in floating-point pixels. Categories count from 1. Masks are compressed run lengths. When
it is read, an image is a frame by its ``video_id`` and ``frame_index``, or by its file name.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels.formats.reading import (
    LabelledImage,
    box_of,
    files_of,
    listed_objects,
    parse_label_json,
    size_of,
    videos_of_images,
    whole_number,
)
from colocam.labels.formats.writing import write_images
from colocam.labels.imported import UNUSABLE, ImportedVideo, LeftOut
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options
from colocam.types import Box
from colocam.utils.files import stream_json

READ = ("image_id", "category_id", "bbox", "iscrowd")
"""What is read of an annotation."""


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``annotations/instances_default.json`` and, with images, ``images/``."""
    categories = [{"id": index, "name": tag, "supercategory": ""} for index, tag in enumerate(labels.classes, start=1)]
    stream_json(
        folder / "annotations" / "instances_default.json",
        {
            "info": {"description": "boxes by colocam", "version": "1.0"},
            "licenses": [],
            "categories": categories,
            "videos": (_video(video) | {"id": index} for index, video in enumerate(labels.videos, start=1)),
            "images": _images(labels),
            "tracks": _tracks(labels),
            "annotations": _annotations(labels),
        },
    )
    write_images(labels, options, lambda video, frame: folder / "images" / video.image_name(frame))


def _video(video: LabelledVideo) -> dict[str, Any]:
    source = video.source
    size = {"width": source.width, "height": source.height}
    return {"name": video.name, "file_name": source.file, **size, "fps": float(source.fps), "frames": source.frames}


def _images(labels: LabelSet) -> Iterator[dict[str, Any]]:
    ids = count(1)
    for video_id, video in enumerate(labels.videos, start=1):
        size = {"width": video.source.width, "height": video.source.height}
        times = dict(zip(video.rows.frame.tolist(), video.rows.pts.tolist(), strict=True))
        for frame, pts in times.items():
            own = {"file_name": video.image_name(frame), **size, "frame_index": frame, "frame_id": frame, "pts": pts}
            yield own | {"id": next(ids), "video_id": video_id}


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


def _shape(video: LabelledVideo, row: int) -> dict[str, Any]:
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    shape: dict[str, Any] = {"bbox": [x1, y1, x2 - x1, y2 - y1], "iscrowd": 0}
    counts = video.rows.mask[row]
    if not counts:
        return shape | {"area": (x2 - x1) * (y2 - y1), "segmentation": []}
    size = [video.source.height, video.source.width]
    return shape | {"area": float(rle.area(counts, *size)), "segmentation": {"size": size, "counts": counts}}


def _attributes(video: LabelledVideo, row: int, track: int) -> dict[str, Any]:
    """Attributes that annotation tools keep, such as the track, and the score that evaluations read."""
    refined = {"refined": video.rows.refined[row]} if video.rows.refined[row] else {}
    attributes = {"occluded": False, "track_id": track, **video.numbers(row, "probability", "presence"), **refined}
    return {**video.numbers(row, "score"), "attributes": attributes}


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a COCO file, or all JSON files of a folder."""
    images: list[LabelledImage] = []
    for file in files_of(path, ".json"):
        content = parse_label_json(file, _needed)
        if not isinstance(content, dict) or "images" not in content:
            raise ColocamError(f"{file}: not COCO (it has no 'images'): is it of another format?")
        images += _labelled_images(file, content, left_out)
    return videos_of_images(images, known, left_out)


def _needed(one: dict[str, Any]) -> dict[str, Any]:
    """What is needed of an object; outlines and areas are dropped while a large file is read."""
    return {name: one[name] for name in READ if name in one} if "image_id" in one else one


def _labelled_images(file: Path, content: dict[str, Any], left_out: LeftOut) -> list[LabelledImage]:
    categories, videos, annotations, images = (
        listed_objects(file, content.get(name), name) for name in ("categories", "videos", "annotations", "images")
    )
    tags = {str(one.get("id")): str(one.get("name", "")) for one in categories}
    names = {str(one.get("id")): str(one.get("name") or one.get("file_name", "")) for one in videos}
    labels: defaultdict[str, list[tuple[str, Box]]] = defaultdict(list)
    for one in annotations:
        tag = tags.get(str(one.get("category_id")), "")
        usable = tag and not one.get("iscrowd")
        if not usable:
            left_out[f"region of class {tag!r} that holds several objects" if tag else "box without a class"] += 1
        labels[str(one.get("image_id"))].append((tag, _box(file, one.get("bbox")) if usable else UNUSABLE))
    if lost := labels.keys() - {str(one.get("id")) for one in images}:
        left_out["box of an image that the file does not list"] += sum(len(labels[name]) for name in lost)
    found = []
    for one in images:
        frame = one.get("frame_index", one.get("frame_id"))
        found.append(
            LabelledImage(
                name=str(one.get("file_name", "")),
                labels=labels[str(one.get("id"))],
                size=size_of(file, one.get("width"), one.get("height")),
                video=names.get(str(one.get("video_id"))) if frame is not None else None,
                frame=whole_number(file, "frame_index", frame),
            )
        )
    return found


def _box(file: Path, bbox: object) -> Box:
    if not isinstance(bbox, list) or len(bbox) != 4:
        raise ColocamError(f"{file}: bbox must be [x, y, width, height], got {str(bbox)[:60]}")
    return box_of(file, bbox)

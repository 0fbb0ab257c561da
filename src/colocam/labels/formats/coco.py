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
    LabeledImage,
    box_of,
    files_of,
    listed_objects,
    parse_label_json,
    size_of,
    videos_of_images,
    whole_number,
)
from colocam.labels.formats.writing import write_images
from colocam.labels.labeled_videos import UNUSABLE, ImportedVideo, LabeledVideo, LabelSet, LeftOut, Options
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


def _size(video: LabeledVideo) -> dict[str, int]:
    return {"width": video.source.width, "height": video.source.height}


def _video(video: LabeledVideo) -> dict[str, Any]:
    rate = {"fps": float(video.source.fps), "frames": video.source.frames}
    return {"name": video.name, "file_name": video.source.file, **_size(video), **rate}


def _images(labels: LabelSet) -> Iterator[dict[str, Any]]:
    ids = count(1)
    for video_id, video in enumerate(labels.videos, start=1):
        for frame, pts in dict(zip(video.rows.frame.tolist(), video.rows.pts.tolist(), strict=True)).items():
            place = {"frame_index": frame, "frame_id": frame, "pts": pts, "id": next(ids), "video_id": video_id}
            yield {"file_name": video.image_name(frame), **_size(video), **place}


def _tracks(labels: LabelSet) -> Iterator[dict[str, Any]]:
    ids = count(1)
    for video_id, video in enumerate(labels.videos, start=1):
        for track in video.tracks:
            category = labels.class_index[track.tag] + 1
            yield {"id": next(ids), "category_id": category, "video_id": video_id}


def _annotations(labels: LabelSet) -> Iterator[dict[str, Any]]:
    ids, image_ids, tracks_before = count(1), count(1), 0
    for video_id, video in enumerate(labels.videos, start=1):
        for rows in video.objects_of.values():
            image_id = next(image_ids)
            for row in rows:
                track = tracks_before + video.track_of(row).id
                category = labels.class_index[video.rows.tag[row]] + 1
                place = {"id": next(ids), "image_id": image_id, "video_id": video_id}
                yield {**place, "category_id": category, "track_id": track, **_object(video, row, track)}
        tracks_before += len(video.tracks)


def _object(video: LabeledVideo, row: int, track: int) -> dict[str, Any]:
    """Box, mask, the score that evaluations read, and attributes that annotation tools keep, such as the track."""
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    counts, refined, size = video.rows.mask[row], video.rows.refined[row], [video.source.height, video.source.width]
    attributes = {"occluded": False, "track_id": track, **video.numbers(row, "probability", "presence")}
    return {
        "bbox": [x1, y1, x2 - x1, y2 - y1],
        "iscrowd": 0,
        "area": float(rle.area(counts, *size)) if counts else (x2 - x1) * (y2 - y1),
        "segmentation": {"size": size, "counts": counts} if counts else [],
        **video.numbers(row, "score"),
        "attributes": attributes | ({"refined": refined} if refined else {}),
    }


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a COCO file, or all JSON files of a folder."""
    images: list[LabeledImage] = []
    for file in files_of(path, ".json"):
        content = parse_label_json(file, _needed)
        if not isinstance(content, dict) or "images" not in content:
            raise ColocamError(f"{file}: not COCO (it has no 'images'): is it of another format?")
        images += _labeled_images(file, content, left_out)
    return videos_of_images(images, known, left_out)


def _needed(one: dict[str, Any]) -> dict[str, Any]:
    """What is needed of an object; outlines and areas are dropped while a large file is read."""
    return {name: one[name] for name in READ if name in one} if "image_id" in one else one


def _labeled_images(file: Path, content: dict[str, Any], left_out: LeftOut) -> list[LabeledImage]:
    categories, videos, annotations, images = (
        listed_objects(file, content.get(name), name) for name in ("categories", "videos", "annotations", "images")
    )
    tags = {str(one.get("id")): str(one.get("name", "")) for one in categories}
    names = {str(one.get("id")): str(one.get("name") or one.get("file_name", "")) for one in videos}
    labels: defaultdict[str, list[tuple[str, Box]]] = defaultdict(list)
    for one in annotations:
        tag, bbox, box = tags.get(str(one.get("category_id")), ""), one.get("bbox"), UNUSABLE
        if not tag:
            left_out["box without a class"] += 1
        elif one.get("iscrowd"):
            left_out[f"region of class {tag!r} that holds several objects"] += 1
        elif not isinstance(bbox, list) or len(bbox) != 4:
            raise ColocamError(f"{file}: bbox must be [x, y, width, height], got {str(bbox)[:60]}")
        else:
            box = box_of(file, bbox)
        labels[str(one.get("image_id"))].append((tag, box))
    found = []
    for one in images:
        frame = one.get("frame_index", one.get("frame_id"))
        found.append(
            LabeledImage(
                name=str(one.get("file_name", "")),
                labels=labels.get(str(one.get("id")), []),
                size=size_of(file, one.get("width"), one.get("height")),
                video=names.get(str(one.get("video_id"))) if frame is not None else None,
                frame=whole_number(file, "frame_index", frame),
            )
        )
    if lost := labels.keys() - {str(one.get("id")) for one in images}:
        left_out["box of an image that the file does not list"] += sum(len(labels[name]) for name in lost)
    return found

"""COCO: one JSON file; an image is a frame by its ``video_id`` and ``frame_index``, or by its file name."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colocam.corrections.image_frames import LabelledImage, videos_of_images
from colocam.corrections.imported import UNUSABLE, ImportedVideo, LeftOut
from colocam.corrections.label_files import (
    corners_of,
    files_of,
    finite_number,
    listed_objects,
    parse_label_json,
    whole_number,
)
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Box

READ = ("image_id", "category_id", "bbox", "iscrowd")
"""What is read of an annotation."""


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a COCO file, or all JSON files of a folder."""
    images: list[LabelledImage] = []
    for file in files_of(path, ".json"):
        content = parse_label_json(file, _needed)
        if not isinstance(content, dict) or "images" not in content:
            raise ColocamError(f"{file}: not COCO (it has no 'images'): is it of another format?")
        images += _images(file, content, left_out)
    return videos_of_images(images, known, left_out)


def _needed(one: dict[str, Any]) -> dict[str, Any]:
    """What is needed of an object; outlines and areas are dropped while a large file is read."""
    return {name: one[name] for name in READ if name in one} if "image_id" in one else one


def _images(file: Path, content: dict[str, Any], left_out: LeftOut) -> list[LabelledImage]:
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

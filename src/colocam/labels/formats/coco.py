"""COCO: one JSON file for all videos, with the fields of TAO for videos and tracks.

Boxes are x, y, width, height in floating-point pixels. Categories count from 1. Masks are compressed run lengths. When
it is read, an image is a frame by its ``video_id`` and ``frame_index``, or by its file name.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels.formats.reading import (
    ImageLabel,
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
from colocam.labels.imported_videos import UNUSABLE, ImportedVideo
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options
from colocam.utils.files import stream_json

READ = ("image_id", "category_id", "bbox", "iscrowd", "track_id", "attributes")
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
    ids = count(1)
    image_ids = count(1)
    tracks_before = 0
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
    counts = video.rows.mask[row]
    refined = video.rows.refined[row]
    size = [video.source.height, video.source.width]
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
            raise ColocamError(f"{file}: not COCO (it has no 'images'): is it in a different format?")
        images += _labeled_images(file, content, left_out)
    return videos_of_images(images, known, left_out)


def _needed(parsed: dict[str, Any]) -> dict[str, Any]:
    """What is needed of an object; outlines and areas are dropped while a large file is read."""
    return {name: parsed[name] for name in READ if name in parsed} if "image_id" in parsed else parsed


def _labeled_images(file: Path, content: dict[str, Any], left_out: LeftOut) -> list[LabeledImage]:
    categories, videos, annotations, images = (
        listed_objects(file, content.get(name), name) for name in ("categories", "videos", "annotations", "images")
    )
    tags = {str(category.get("id")): str(category.get("name", "")) for category in categories}
    names = {str(video.get("id")): str(video.get("name") or video.get("file_name", "")) for video in videos}
    numbers = _numbers(file, content, images, annotations)
    labels: defaultdict[str, list[ImageLabel]] = defaultdict(list)
    for annotation in annotations:
        tag = tags.get(str(annotation.get("category_id")), "")
        bbox = annotation.get("bbox")
        box = UNUSABLE
        if not tag:
            left_out["box without a class"] += 1
        elif annotation.get("iscrowd"):
            left_out[f"region of class {tag!r} that holds several objects"] += 1
        elif not isinstance(bbox, list) or len(bbox) != 4:
            raise ColocamError(f"{file}: bbox must be [x, y, width, height], got {str(bbox)[:60]}")
        else:
            box = box_of(file, bbox)
        number = numbers.get(_track_id(file, annotation))
        labels[str(annotation.get("image_id"))].append(ImageLabel(tag, box, number))
    labeled = []
    for image in images:
        frame = image.get("frame_index", image.get("frame_id"))
        labeled.append(
            LabeledImage(
                name=str(image.get("file_name", "")),
                labels=labels.get(str(image.get("id")), []),
                size=size_of(file, image.get("width"), image.get("height")),
                video=names.get(str(image.get("video_id"))) if frame is not None else None,
                frame=whole_number(file, "frame_index", frame),
            )
        )
    if lost := labels.keys() - {str(image.get("id")) for image in images}:
        left_out["box of an image that the file does not list"] += sum(len(labels[name]) for name in lost)
    return labeled


def _numbers(
    file: Path, content: dict[str, Any], images: list[dict[str, Any]], annotations: list[dict[str, Any]]
) -> dict[int | None, int]:
    """Number of each track in its video, from 1; COCO counts tracks over all videos of the file."""
    video_of_image = {str(image.get("id")): str(image.get("video_id")) for image in images}
    videos: dict[int, str] = {}
    for track in listed_objects(file, content.get("tracks"), "tracks"):
        if (stated := whole_number(file, "the id of a track", track.get("id"))) is not None:
            videos[stated] = str(track.get("video_id"))
    for annotation in annotations:
        if (stated := _track_id(file, annotation)) is not None:
            videos.setdefault(stated, video_of_image.get(str(annotation.get("image_id")), ""))
    counts = Counter[str]()
    numbers: dict[int | None, int] = {}
    for stated in sorted(videos):
        counts[videos[stated]] += 1
        numbers[stated] = counts[videos[stated]]
    return numbers


def _track_id(file: Path, annotation: dict[str, Any]) -> int | None:
    """The track of an annotation: of its own, or, as CVAT writes it, among its attributes."""
    attributes = annotation.get("attributes")
    among = attributes.get("track_id") if isinstance(attributes, dict) else None
    return whole_number(file, "track_id", annotation.get("track_id", among))

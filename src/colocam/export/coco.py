"""COCO: one JSON file for all videos, with the fields of TAO for videos and tracks.

Boxes are x, y, width, height in floating-point pixels. Categories count from 1. Masks are compressed run lengths.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from colocam.boxes import rle
from colocam.export.frame_images import write_images
from colocam.export.labels import LabelledVideo, LabelSet, Options
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

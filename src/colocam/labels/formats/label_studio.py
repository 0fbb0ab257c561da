"""Label Studio: one task per video with its boxes as predictions, and the labeling configuration that shows them.

A region is a sequence of key frames, in percent of the frame's size; frames count from 1. ``enabled: false`` at a key
frame means that the object is seen in this frame but not after it, up to the next key frame. The player counts frames
by time: its frame k is what the video shows between (k−1)/fps and k/fps, where fps is the task's ``fps`` or what the
region's length says. Frames of a video with a variable rate are therefore placed by time.

It cannot play a folder of images, and has no masks in videos; each image or frame then becomes a task. A brush's mask
is the image's RGBA pixels, packed as runs: 32 bits for the number of bytes, 5 and four times 4 bits for the sizes of
words and counts, then for each run a 1, the index of the count's size, the count − 1, and the byte.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ArgumentError, ColocamError
from colocam.labels.formats.reading import (
    ImageLabel,
    LabeledImage,
    box_of,
    files_of,
    finite_number,
    listed_objects,
    parse_label_json,
    size_of,
    videos_of_images,
    whole_number,
)
from colocam.labels.formats.writing import color, sparse_keyframes, write_images
from colocam.labels.imported_videos import UNUSABLE, ImportedTrack, ImportedVideo, KeyFrame
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options, Track
from colocam.types import Box
from colocam.utils.files import stream_json, write_text

OUR_ID = re.compile(r"track-([1-9]\d{0,8})", re.ASCII)
"""Id of a region of our export, with the number of its track."""
LONGEST = 2**16
"""Most bytes of one run, whose count then takes 16 bits."""


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``tasks.json`` and ``config.xml``."""
    folders = [video.name for video in labels.videos if video.source.pictures]
    if not folders:
        controls = {"Labels": {"name": "videoLabels", "toName": "video"}}
        shown = {"Video": {"name": "video", "value": "$video", "frameRate": "$fps"}}
        shown |= {"VideoRectangle": {"name": "box", "toName": "video"}}
        _write(labels, folder, controls | shown, (_task(video, options) for video in labels.videos))
    elif len(folders) == len(labels.videos):
        _write(labels, folder, _IMAGE_BOXES | _IMAGE, _image_tasks(labels, options, masks=False))
    else:
        raise ColocamError(
            f"a Label Studio project holds either videos or images, and {folders[0]} is a folder of images: "
            "export the tables of videos and of folders separately"
        )


def write_masks(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``tasks.json``, ``config.xml`` and, with images, ``images/``; a box without a mask stays a rectangle."""
    labels.require_masks()
    videos = [video.name for video in labels.videos if not video.source.pictures]
    if videos and not options.images:
        raise ArgumentError("images", f"must be written: Label Studio has no masks in videos, and {videos[0]} is one")
    controls = {"BrushLabels": {"name": "mask", "toName": "image"}} | _IMAGE_BOXES | _IMAGE
    _write(labels, folder, controls, _image_tasks(labels, options, masks=True))
    write_images(labels, options, lambda video, frame: folder / "images" / video.image_name(frame))


_IMAGE_BOXES = {"RectangleLabels": {"name": "box", "toName": "image"}}
_IMAGE = {"Image": {"name": "image", "value": "$image"}}


def _write(
    labels: LabelSet, folder: Path, controls: dict[str, dict[str, str]], tasks: Iterator[dict[str, Any]]
) -> None:
    """Write the tasks and the labeling configuration with these controls, which list the classes with colors."""
    view = ET.Element("View")
    for kind, attributes in controls.items():
        control = ET.SubElement(view, kind, attributes)
        for index, tag in enumerate(labels.classes if kind.endswith("Labels") else (), start=1):
            ET.SubElement(control, "Label", value=tag, background="#{:02x}{:02x}{:02x}".format(*color(index)))
    ET.indent(view)
    write_text(folder / "config.xml", ET.tostring(view, encoding="unicode") + "\n")
    stream_json(folder / "tasks.json", tasks)


def _image_tasks(labels: LabelSet, options: Options, *, masks: bool) -> Iterator[dict[str, Any]]:
    """One task for each listed image; without a box it has an empty prediction."""
    for video in labels.videos:
        for frame, rows in video.objects_of.items():
            written = masks and options.images
            name = video.image_name(frame) if written else video.source.pictures[frame]
            url = options.url + quote(f"{'images' if written else video.source.file}/{name}")
            regions = [_image_region(video, row, video.mask(row) if masks else None) for row in rows]
            yield {"data": {"image": url}, "predictions": [{"model_version": "colocam", "result": regions}]}


def _image_region(video: LabeledVideo, row: int, mask: npt.NDArray[np.bool_] | None) -> dict[str, Any]:
    """A mask, or the box of a row where there is none, as a region of its image."""
    tags = [video.rows.tag[row]]
    if mask is None:
        control, kind = "box", "rectanglelabels"
        value = {"rotation": 0, **_percent(video, video.rows.box[row]), kind: tags}
    else:
        control, kind = "mask", "brushlabels"
        value = {"format": "rle", "rle": packed(mask), kind: tags}
    region = {"id": f"{control}-{row}", "from_name": control, "to_name": "image", "type": kind}
    size = {"original_width": video.source.width, "original_height": video.source.height, "image_rotation": 0}
    return {**region, "origin": "prediction", **video.numbers(row, "score"), **size, "value": value}


def _task(video: LabeledVideo, options: Options) -> dict[str, Any]:
    data = {"video": options.url + quote(video.source.file), "fps": float(video.source.fps), "name": video.name}
    predictions = iter([{"model_version": "colocam", "result": regions_of(video, options.tolerance)}])
    return {"data": data, "predictions": predictions}


def regions_of(video: LabeledVideo, tolerance: float) -> Iterator[dict[str, Any]]:
    """A region for each track, whose boxes between key frames may be off by ``tolerance`` pixels."""
    times = video.shown_at(float(video.source.fps))
    return (_region(video, track, tolerance, times) for track in video.tracks)


def _region(video: LabeledVideo, track: Track, tolerance: float, times: npt.NDArray[np.int64]) -> dict[str, Any]:
    """A track; ``times`` are those of :meth:`LabeledVideo.shown_at`."""
    sequence: dict[int, dict[str, Any]] = {}
    fps = float(video.source.fps)
    for rows in track.stretches:
        shown = times[rows]
        last = np.append(shown[1:] != shown[:-1], True)  # of frames at one time the last one stays visible
        frames, boxes = shown[last], video.rows.box[rows][last]
        for index in sparse_keyframes(frames, boxes, tolerance).tolist():
            frame = int(frames[index]) + 1
            seen_on = index < len(frames) - 1
            shape = {"rotation": 0, "enabled": seen_on, **_percent(video, boxes[index])}
            sequence[frame] = {"frame": frame, "time": frame / fps, **shape}
    value = {
        "framesCount": max(ceil(video.source.duration * fps - 0.5), *sequence),
        "duration": video.source.duration,
        "sequence": list(sequence.values()),
        "labels": [track.tag],
    }
    region = {"id": f"track-{track.id}", "from_name": "box", "to_name": "video", "type": "videorectangle"}
    scores = video.rows.score[track.rows]
    score = {} if np.isnan(scores).all() else {"score": float(np.nanmean(scores))}
    return {**region, "origin": "prediction", **score, "value": value}


def _percent(video: LabeledVideo, box: npt.NDArray[np.float64]) -> dict[str, float]:
    x1, y1, x2, y2 = (box / (video.size * 2) * 100).tolist()
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}


def packed(mask: npt.NDArray[np.bool_]) -> list[int]:
    """Bytes of a mask (H, W), see above; pixels of the mask are 255 in all four channels."""
    counts = 4 * rle.runs(mask.ravel())
    values = np.where(np.arange(len(counts)) % 2, 255, 0)
    pieces = -(-counts // LONGEST)  # a long run is several
    starts = np.repeat(np.cumsum(pieces) - pieces, pieces)
    left = np.repeat(counts, pieces) - (np.arange(len(starts)) - starts) * LONGEST
    lengths, values = np.minimum(left, LONGEST), np.repeat(values, pieces)
    header = _bits(np.array([4 * mask.size]), 32), _bits(np.array([7]), 5), _bits(np.array([2, 3, 7, 15]), 4)
    flags = np.full(len(lengths), 0b111)  # a run, whose count has the last of the four sizes
    body = np.concatenate([_bits(flags, 3), _bits(lengths - 1, 16), _bits(values, 8)], axis=1)
    bits = np.concatenate([part.ravel() for part in (*header, body)])
    packed_bytes: list[int] = np.packbits(bits.astype(np.uint8)).tolist()
    return packed_bytes


def _bits(numbers: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """(n, count) bits of numbers (n,), the highest first."""
    return (numbers[:, None] >> np.arange(count - 1, -1, -1)) & 1


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a JSON export, or all JSON files of a folder."""
    videos: list[ImportedVideo] = []
    images: list[LabeledImage] = []
    for file in files_of(path, ".json"):
        content = parse_label_json(file)
        for task in listed_objects(file, content if isinstance(content, list) else [content], "the export"):
            data = task.get("data")
            if not isinstance(data, dict):
                raise ColocamError(f"{file}: a task has no 'data': export as 'JSON', not as 'JSON-MIN'")
            regions = _regions(file, task, left_out)
            if regions is None:
                continue
            kinds = {str(region.get("type")).lower() for region in regions}
            of_image = "rectanglelabels" in kinds or ("image" in data and "video" not in data)
            is_image = of_image and "videorectangle" not in kinds
            texts = {key: value for key, value in data.items() if isinstance(value, str)}
            url = texts.get("image" if is_image else "video") or next(iter(texts.values()), "")
            if is_image:
                images.append(_image(file, url, regions, left_out))
            else:
                videos.append(_video(file, url, data, regions, left_out))
    return videos + videos_of_images(images, known, left_out, relative=True)


def _regions(file: Path, task: dict[str, Any], left_out: LeftOut) -> list[dict[str, Any]] | None:
    """The regions of a task's last annotation; None if it was not annotated.

    A file of predictions alone, as ``colocam export`` writes it, has no annotations at all.
    """
    name = next((name for name in ("annotations", "completions") if name in task), "predictions")
    stated = listed_objects(file, task.get(name), name)
    done = [one for one in stated if not one.get("was_cancelled") and not one.get("skipped")]
    if not done:
        left_out["task of Label Studio that nobody annotated"] += 1
        return None
    if len(done) > 1:
        left_out["annotation of a task that has a later one"] += len(done) - 1
    done.sort(key=lambda one: str(one.get("updated_at") or ""))
    return listed_objects(file, done[-1].get("result"), "result")


def place_of(url: str) -> PurePosixPath:
    """Folder and file in an address, also in ``/data/local-files/?d=folder/new.mp4``."""
    parts = urlsplit(url)
    return PurePosixPath(parse_qs(parts.query).get("d", [""])[0] or unquote(parts.path))


def names_of(url: str) -> tuple[str, ...]:
    """File name in an address; Label Studio puts eight digits and a dash before the names of uploaded files."""
    name = place_of(url).name
    head, _, rest = name.partition("-")
    uploaded = len(head) == 8 and all(one in "0123456789abcdef" for one in head)
    return tuple(filter(None, (name, rest if uploaded else "")))


def _video(
    file: Path, url: str, data: dict[str, Any], regions: list[dict[str, Any]], left_out: LeftOut
) -> ImportedVideo:
    tracks: list[ImportedTrack] = []
    ids: list[str] = []
    length: int | None = None
    rate = data.get("fps") or data.get("frameRate") or data.get("framerate")
    for region in regions:
        kind, value = str(region.get("type")), region.get("value")
        if kind.lower() != "videorectangle":
            if kind not in {"labels", "choices"}:
                left_out[f"region of type {kind[:40]!r}: only video rectangles are read"] += 1
            continue
        if not isinstance(value, dict):
            raise ColocamError(f"{file}: a region has no value: export as 'JSON'")
        frames, duration = value.get("framesCount"), value.get("duration")
        if frames and duration and length is None:
            length = whole_number(file, "framesCount", frames)
            rate = rate or (length or 0) / max(finite_number(file, "duration", duration), 1e-9)
        if keys := listed_objects(file, value.get("sequence"), "sequence"):
            tracks.append(_track(file, keys, _label(value), left_out))
            ids.append(str(region.get("id", "")))
    fps = finite_number(file, "fps", rate) if rate else None
    if fps is not None and not 0 < fps <= 100_000:
        raise ColocamError(f"{file}: fps must be above 0, got {fps:g}")
    if fps is None and tracks:
        raise ColocamError(f"{file}: there is no frame rate for {url!r}: add 'fps' to the task's data")
    numbered = [replace(track, number=number) for track, number in zip(tracks, _numbers(ids), strict=True)]
    name = data.get("name")  # of the export
    names = (*names_of(url), *([name] if isinstance(name, str) and name else []))
    return ImportedVideo(names, numbered, frames=length, rate=fps, relative=True)


def _numbers(ids: Sequence[str]) -> Iterator[int]:
    """The number of each region: that of its track in our export, and the next free one for a region that is new."""
    stated = [int(match[1]) if (match := OUR_ID.fullmatch(name)) else None for name in ids]
    free = count(max((number for number in stated if number), default=0) + 1)
    return (next(free) if number is None else number for number in stated)


def _track(file: Path, keys: list[dict[str, Any]], tag: str, left_out: LeftOut) -> ImportedTrack:
    by_frame: dict[float, KeyFrame] = {}
    for key in keys:
        frame = whole_number(file, "frame", key.get("frame"))
        if not frame:
            raise ColocamError(f"{file}: frames of Label Studio count from 1, got {str(key.get('frame'))[:40]}")
        by_frame[frame - 1] = _shares(file, key, tag, left_out), True, bool(key.get("enabled", True))
    return ImportedTrack.of_keys(tag, by_frame)


def _label(value: dict[str, Any]) -> str:
    labels = value.get("labels") or value.get("rectanglelabels") or value.get("videorectanglelabels")
    return str(labels[0]) if isinstance(labels, list) and labels else ""


def _shares(file: Path, value: dict[str, Any], tag: str, left_out: LeftOut) -> Box:
    """A box as shares of the frame's size; one that is rotated or has no class is left out."""
    if value.get("rotation") or not tag:
        left_out[f"rotated box of class {tag!r}: only upright boxes are read" if tag else "box without a class"] += 1
        return UNUSABLE
    percent = box_of(file, [value.get(name) for name in ("x", "y", "width", "height")])
    return Box(*(corner / 100 for corner in percent))


def _image(file: Path, url: str, regions: list[dict[str, Any]], left_out: LeftOut) -> LabeledImage:
    labels = []
    size: tuple[int, int] | None = None
    for region in regions:
        value = region.get("value")
        if region.get("type") != "rectanglelabels" or not isinstance(value, dict):
            left_out[f"region of type {str(region.get('type'))[:40]!r}: only rectangles are read"] += 1
            labels.append(ImageLabel("", UNUSABLE))
            continue
        tag = _label(value)
        labels.append(ImageLabel(tag, _shares(file, value, tag, left_out)))
        size = size_of(file, region.get("original_width"), region.get("original_height")) or size
    name = str(PurePosixPath(place_of(url).parent.name) / names_of(url)[-1]) if names_of(url) else url
    return LabeledImage(name, labels, size)

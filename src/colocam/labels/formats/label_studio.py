"""Label Studio: one task per video with its boxes as predictions, and the labelling configuration that shows them.

A region is a sequence of key frames, in percent of the frame's size; frames count from 1. ``enabled: false`` at a key
frame means that the object is seen in this frame but not after it. The player counts frames by time: its frame k is
what the video shows between (k−1)/fps and k/fps. Frames of a video with a variable rate are therefore placed by time.

It cannot play a folder of images; each image becomes a task with its boxes.
"""

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ArgumentError, ColocamError
from colocam.labels.formats.frame_images import LabelledImage, videos_of_images, write_images
from colocam.labels.formats.shapes import sparse_keyframes
from colocam.labels.formats.voc import colour
from colocam.labels.imported import UNUSABLE, ImportedTrack, ImportedVideo, LeftOut
from colocam.labels.label_files import (
    corners_of,
    files_of,
    finite_number,
    listed_objects,
    parse_label_json,
    whole_number,
)
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options, Track, shown_at
from colocam.types import Box
from colocam.utils.files import stream_json, write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``tasks.json`` and ``config.xml``."""
    folders = [video.name for video in labels.videos if video.source.pictures]
    if folders and len(folders) < len(labels.videos):
        raise ColocamError(
            f"a Label Studio project holds either videos or images, and {folders[0]} is a folder of images: "
            "export the tables of videos and of folders separately"
        )
    write_text(folder / "config.xml", _configuration(labels, images=bool(folders)))
    images = (task for video in labels.videos for task in _image_tasks(video, options))
    stream_json(folder / "tasks.json", images if folders else (_task(video, options) for video in labels.videos))


def _configuration(labels: LabelSet, *, images: bool) -> str:
    view = ET.Element("View")
    names = {"name": "box", "toName": "image"} if images else {"name": "videoLabels", "toName": "video"}
    ET.SubElement(view, "RectangleLabels" if images else "Labels", names).extend(label_elements(labels))
    if images:
        ET.SubElement(view, "Image", name="image", value="$image")
    else:
        ET.SubElement(view, "Video", name="video", value="$video", frameRate="$fps")
        ET.SubElement(view, "VideoRectangle", name="box", toName="video")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def label_elements(labels: LabelSet) -> list[ET.Element]:
    """The classes of a labelling configuration, each with its colour."""
    return [
        ET.Element("Label", value=tag, background="#{:02x}{:02x}{:02x}".format(*colour(index)))
        for index, tag in enumerate(labels.classes, start=1)
    ]


def _image_tasks(video: LabelledVideo, options: Options) -> Iterator[dict[str, Any]]:
    """One task for each listed image; without a box it has an empty prediction."""
    for frame, rows in video.objects_of.items():
        url = options.url + quote(f"{video.source.file}/{video.source.pictures[frame]}")
        prediction = {"model_version": "colocam", "result": [rectangle(video, row) for row in rows]}
        yield {"data": {"image": url}, "predictions": [prediction]}


def rectangle(video: LabelledVideo, row: int) -> dict[str, Any]:
    """The box of a row as a region of its image."""
    value = {"rotation": 0, **_percent(video, video.rows.box[row]), "rectanglelabels": [video.rows.tag[row]]}
    return image_region(video, row, "box", "rectanglelabels", value)


def image_region(video: LabelledVideo, row: int, control: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    """A region of an image, made with the control of this name in the labelling configuration."""
    region = {"id": f"{control}-{row}", "from_name": control, "to_name": "image", "type": kind}
    size = {"original_width": video.source.width, "original_height": video.source.height, "image_rotation": 0}
    score = {} if np.isnan(video.rows.score[row]) else {"score": float(video.rows.score[row])}
    return {**region, "origin": "prediction", **score, **size, "value": value}


def _task(video: LabelledVideo, options: Options) -> dict[str, Any]:
    times = shown_at(video, float(video.source.fps))
    regions = (_region(video, track, options.tolerance, times) for track in video.tracks)
    prediction = {"model_version": "colocam", "result": regions}
    url = options.url + quote(video.source.file)
    data = {"video": url, "fps": float(video.source.fps), "name": video.name}
    return {"data": data, "predictions": iter([prediction])}


def _region(video: LabelledVideo, track: Track, tolerance: float, times: npt.NDArray[np.int64]) -> dict[str, Any]:
    """A track; ``times`` are those of :func:`colocam.labels.labelled_videos.shown_at`."""
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


def _percent(video: LabelledVideo, box: npt.NDArray[np.float64]) -> dict[str, float]:
    x1, y1, x2, y2 = (box / np.tile([video.source.width, video.source.height], 2) * 100).tolist()
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}


LONGEST = 2**16
"""Most bytes of one run, whose count then takes 16 bits."""


def write_masks(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``tasks.json``, ``config.xml`` and, with images, ``images/``; a box without a mask stays a rectangle."""
    labels.require_masks()
    films = [video.name for video in labels.videos if not video.source.pictures]
    if films and not options.images:
        raise ArgumentError("images", f"must be written: Label Studio has no masks in videos, and {films[0]} is one")
    write_text(folder / "config.xml", _configuration_label_studio_masks(labels))
    frames = ((video, frame, rows) for video in labels.videos for frame, rows in video.objects_of.items())
    stream_json(folder / "tasks.json", (_task_label_studio_masks(*one, options) for one in frames))
    if options.images:
        (folder / "images").mkdir()
        write_images(labels.videos, lambda video, frame: folder / "images" / video.image_name(frame))


def _configuration_label_studio_masks(labels: LabelSet) -> str:
    view = ET.Element("View")
    for kind, name in (("BrushLabels", "mask"), ("RectangleLabels", "box")):
        ET.SubElement(view, kind, name=name, toName="image").extend(label_elements(labels))
    ET.SubElement(view, "Image", name="image", value="$image")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _task_label_studio_masks(video: LabelledVideo, frame: int, rows: list[int], options: Options) -> dict[str, Any]:
    own = f"{video.source.file}/{video.source.pictures[frame]}" if video.source.pictures else ""
    name = f"images/{video.image_name(frame)}" if options.images else own
    regions = [_brush(video, row) if video.rows.mask[row] else rectangle(video, row) for row in rows]
    prediction = {"model_version": "colocam", "result": regions}
    return {"data": {"image": options.url + quote(name)}, "predictions": [prediction]}


def _brush(video: LabelledVideo, row: int) -> dict[str, Any]:
    mask = rle.decode(video.rows.mask[row], video.source.height, video.source.width)
    value = {"format": "rle", "rle": packed(mask), "brushlabels": [video.rows.tag[row]]}
    return image_region(video, row, "mask", "brushlabels", value)


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
    found: list[int] = np.packbits(bits.astype(np.uint8)).tolist()
    return found


def _bits(numbers: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """(n, count) bits of numbers (n,), the highest first."""
    return (numbers[:, None] >> np.arange(count - 1, -1, -1)) & 1


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read a JSON export, or all JSON files of a folder."""
    videos: list[ImportedVideo] = []
    images: list[LabelledImage] = []
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
            url, is_image = _address(data, kinds)
            if is_image:
                images.append(_image(file, url, regions, left_out))
            else:
                videos.append(_video(file, url, data, regions, left_out))
    return videos + videos_of_images(images, known, left_out, relative=True)


def _regions(file: Path, task: dict[str, Any], left_out: LeftOut) -> list[dict[str, Any]] | None:
    """The regions of a task's last annotation; None if it was not annotated.

    A file of predictions alone, as ``colocam export`` writes it, has no annotations at all.
    """
    name = "annotations" if "annotations" in task else "completions" if "completions" in task else "predictions"
    stated = listed_objects(file, task.get(name), name)
    done = [one for one in stated if not one.get("was_cancelled") and not one.get("skipped")]
    if not done:
        left_out["task of Label Studio that nobody annotated"] += 1
        return None
    last = max(enumerate(done), key=lambda pair: (str(pair[1].get("updated_at") or ""), pair[0]))[1]
    if len(done) > 1:
        left_out["annotation of a task that has a later one"] += len(done) - 1
    return listed_objects(file, last.get("result"), "result")


def _address(data: dict[str, Any], kinds: set[str]) -> tuple[str, bool]:
    """Address of the video or image of a task, and whether it is an image."""
    is_image = "videorectangle" not in kinds and (
        "rectanglelabels" in kinds or ("image" in data and "video" not in data)
    )
    texts = {key: value for key, value in data.items() if isinstance(value, str)}
    return texts.get("image" if is_image else "video") or next(iter(texts.values()), ""), is_image


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
    tracks, rates, lengths = [], [], []
    for region in regions:
        if str(region.get("type")).lower() != "videorectangle":
            if str(region.get("type")) not in {"labels", "choices"}:
                left_out[f"region of type {str(region.get('type'))[:40]!r}: only video rectangles are read"] += 1
            continue
        value = region.get("value")
        if not isinstance(value, dict):
            raise ColocamError(f"{file}: a region has no value: export as 'JSON'")
        keys = sorted(listed_objects(file, value.get("sequence"), "sequence"), key=lambda key: _frame(file, key))
        length, duration = value.get("framesCount"), value.get("duration")
        if length and duration:
            lengths.append(whole_number(file, "framesCount", length))
            rates.append(
                finite_number(file, "framesCount", length) / max(finite_number(file, "duration", duration), 1e-9)
            )
        if track := _track(file, keys, _label(value), left_out):
            tracks.append(track)
    stated = data.get("fps") or data.get("frameRate") or data.get("framerate")
    rate = finite_number(file, "fps", stated) if stated else rates[0] if rates else None
    if rate is not None and not 0 < rate <= 100_000:
        raise ColocamError(f"{file}: fps must be above 0, got {rate:g}")
    if rate is None and tracks:
        raise ColocamError(f"{file}: no rate of frames is stated for {url!r}: add 'fps' to the task's data")
    length = lengths[0] if lengths else None
    own = data.get("name")  # of the export
    names = (*names_of(url), *([own] if isinstance(own, str) and own else []))
    return ImportedVideo(names, tracks, frames=length, rate=rate, relative=True)


def _track(file: Path, keys: list[dict[str, Any]], tag: str, left_out: LeftOut) -> ImportedTrack | None:
    if not keys:
        return None
    at = [_frame(file, key) - 1.0 for key in keys]
    last = np.append(np.array(at[1:]) != np.array(at[:-1]), True)
    boxes = np.array([_percent_from_label_studio(file, key, tag, left_out) for key in keys], np.float64)
    follows = np.array([bool(key.get("enabled", True)) for key in keys])
    return ImportedTrack(tag, np.array(at)[last], boxes[last], np.ones(int(last.sum()), bool), follows[last])


def _frame(file: Path, key: dict[str, Any]) -> int:
    frame = whole_number(file, "frame", key.get("frame"))
    if not frame:
        raise ColocamError(f"{file}: frames of Label Studio count from 1, got {str(key.get('frame'))[:40]}")
    return frame


def _label(value: dict[str, Any]) -> str:
    labels = value.get("labels") or value.get("rectanglelabels") or value.get("videorectanglelabels")
    return str(labels[0]) if isinstance(labels, list) and labels else ""


def _percent_from_label_studio(file: Path, value: dict[str, Any], tag: str, left_out: LeftOut) -> Box:
    """A box as shares of the frame's size; one that is rotated or has no class is left out."""
    if value.get("rotation") or not tag:
        left_out[f"rotated box of class {tag!r}: only upright boxes are read" if tag else "box without a class"] += 1
        return UNUSABLE
    x, y, width, height = (finite_number(file, name, value.get(name)) / 100 for name in ("x", "y", "width", "height"))
    return corners_of(file, (x, y, x + width, y + height))


def _image(file: Path, url: str, regions: list[dict[str, Any]], left_out: LeftOut) -> LabelledImage:
    labels = []
    size: tuple[int, int] | None = None
    for region in regions:
        value = region.get("value")
        if region.get("type") != "rectanglelabels" or not isinstance(value, dict):
            left_out[f"region of type {str(region.get('type'))[:40]!r}: only rectangles are read"] += 1
            labels.append(("", UNUSABLE))
            continue
        tag = _label(value)
        labels.append((tag, _percent_from_label_studio(file, value, tag, left_out)))
        sides = [whole_number(file, name, region.get(name)) for name in ("original_width", "original_height")]
        size = (sides[0], sides[1]) if sides[0] and sides[1] else size
    name = str(PurePosixPath(place_of(url).parent.name) / names_of(url)[-1]) if names_of(url) else url
    return LabelledImage(name, labels, size)

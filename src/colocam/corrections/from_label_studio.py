"""Label Studio's JSON export: rectangles of videos and of images, in percent of the frame's size.

Frames count from 1, at the constant rate of the player: the task's ``fps``, or what the region's length says. A key
frame shows its box; with ``enabled: false`` the object is not seen after it, up to the next key frame.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from colocam.corrections.image_frames import LabelledImage, videos_of_images
from colocam.corrections.imported import UNUSABLE, ImportedTrack, ImportedVideo, LeftOut
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
    boxes = np.array([_percent(file, key, tag, left_out) for key in keys], np.float64)
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


def _percent(file: Path, value: dict[str, Any], tag: str, left_out: LeftOut) -> Box:
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
        labels.append((tag, _percent(file, value, tag, left_out)))
        sides = [whole_number(file, name, region.get(name)) for name in ("original_width", "original_height")]
        size = (sides[0], sides[1]) if sides[0] and sides[1] else size
    name = str(PurePosixPath(place_of(url).parent.name) / names_of(url)[-1]) if names_of(url) else url
    return LabelledImage(name, labels, size)

"""Label Studio: one task per video with its boxes as predictions, and the labelling configuration that shows them.

A region is a sequence of key frames, in percent of the frame's size; frames count from 1. ``enabled: false`` at a key
frame means that the object is seen in this frame but not after it. The player counts frames by time: its frame k is
what the video shows between (k−1)/fps and k/fps. Frames of a video with a variable rate are therefore placed by time.

It cannot play a folder of images; each image becomes a task with its boxes.
"""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.export.keyframes import sparse_keyframes
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.export.row_tracks import Track
from colocam.export.shown_frames import shown_at
from colocam.export.voc import colour
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
    """A track; ``times`` are those of :func:`colocam.export.shown_frames.shown_at`."""
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

"""Label Studio: a task per video with its boxes as predictions, and the labelling configuration that shows them.

A region is a sequence of key frames in percent of the picture; frames count from 1. ``enabled: false`` at a key frame
means: seen in this frame, not after it. The player knows times, not frames: its frame k is what the video shows
between (k−1)/fps and k/fps, so frames of a variable rate are put where they are shown.
"""

from math import ceil
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.export.keyframes import sparse_keyframes
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.export.tracks import Track
from colocam.export.voc import colour
from colocam.files import write_json, write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``tasks.json`` and ``config.xml``."""
    write_text(folder / "config.xml", _configuration(labels))
    write_json(folder / "tasks.json", [_task(video, options) for video in labels.videos])


def _configuration(labels: LabelSet) -> str:
    view = ET.Element("View")
    ET.SubElement(view, "Labels", name="videoLabels", toName="video")
    for number, tag in enumerate(labels.classes, start=1):
        ET.SubElement(view[0], "Label", value=tag, background="#{:02x}{:02x}{:02x}".format(*colour(number)))
    ET.SubElement(view, "Video", name="video", value="$video", frameRate="$fps")
    ET.SubElement(view, "VideoRectangle", name="box", toName="video")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _task(video: LabelledVideo, options: Options) -> dict[str, Any]:
    prediction = {
        "model_version": "colocam",
        "result": [_region(video, track, options.tolerance) for track in video.tracks],
    }
    url = options.url + quote(video.source.file)
    return {"data": {"video": url, "fps": float(video.source.fps)}, "predictions": [prediction]}


def _region(video: LabelledVideo, track: Track, tolerance: float) -> dict[str, Any]:
    sequence: dict[int, dict[str, Any]] = {}
    fps, times = float(video.source.fps), _shown_at(video)
    for rows in track.stretches:
        shown = times[rows]
        last = np.append(shown[1:] != shown[:-1], True)  # of frames in one moment, the last stays on the screen
        frames, boxes = shown[last], video.box[rows][last]
        for place in sparse_keyframes(frames, boxes, tolerance).tolist():
            frame = int(frames[place]) + 1
            seen_on = place < len(frames) - 1
            shape = {"rotation": 0, "enabled": seen_on, **_percent(video, boxes[place])}
            sequence[frame] = {"frame": frame, "time": frame / fps, **shape}
    value = {
        "framesCount": max(ceil(video.source.duration * fps - 0.5), *sequence),
        "duration": video.source.duration,
        "sequence": list(sequence.values()),
        "labels": [track.tag],
    }
    region = {"id": f"track-{track.number}", "from_name": "box", "to_name": "video", "type": "videorectangle"}
    scores = video.score[track.rows]
    score = {} if np.isnan(scores).all() else {"score": float(np.nanmean(scores))}
    return {**region, "origin": "prediction", **score, "value": value}


def _shown_at(video: LabelledVideo) -> npt.NDArray[np.int64]:
    """First place, from 0, of each row's frame on a time line of constant rate."""
    fps = float(video.source.fps)
    start = video.pts[0] - (video.frame[0] / fps)
    places: npt.NDArray[np.int64] = np.ceil((video.pts - start) * fps - 0.5).astype(np.int64)
    return places.clip(0)


def _percent(video: LabelledVideo, box: npt.NDArray[np.float64]) -> dict[str, float]:
    x1, y1, x2, y2 = (box / np.tile([video.source.width, video.source.height], 2) * 100).tolist()
    return {"x": x1, "y": y1, "width": x2 - x1, "height": y2 - y1}

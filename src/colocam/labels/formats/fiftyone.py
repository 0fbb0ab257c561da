"""FiftyOne's ``FiftyOneVideoLabelsDataset``: ``manifest.json``, and a JSON file per video with the boxes of its frames.

Frames count from 1, corners are shares of the frame's size, ``index`` is the track. A mask is cropped to its box and
stored as a compressed ``.npy`` file in base64, which FiftyOne's reader expects. Videos stay where they are.

Tests: tests/labels/test_fiftyone_videos.py.
"""

import io
from base64 import b64encode
from math import ceil, floor
from pathlib import Path
from typing import Any
from zlib import compress

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, Options
from colocam.utils.files import stream_json, write_json

FIELD = "objects"
"""Name of the field of each frame that holds the boxes."""


def write(labels: LabelSet, folder: Path, options: Options) -> None:  # noqa: ARG001 - every format is called alike
    """Write ``manifest.json`` and ``labels/<video>.json`` for each video."""
    if images := [video.name for video in labels.videos if video.source.pictures]:
        raise ColocamError(f"{images[0]} is a folder of images, and FiftyOne's video labels need a file: use coco")
    for video in labels.videos:
        frames = {}
        for number, rows in ((frame + 1, rows) for frame, rows in video.objects_of.items()):
            objects = [_object(video, row) | {"frame_number": number} for row in rows]
            frames[str(number)] = {"frame_number": number, "objects": {"objects": objects}}
        stream_json(folder / "labels" / f"{video.name}.json", {"filename": video.source.file, "frames": frames})
    index = [{"data": video.source.stated_path, "labels": f"labels/{video.name}.json"} for video in labels.videos]
    manifest = {"type": "eta.core.datasets.LabeledVideoDataset", "description": "boxes by colocam", "index": index}
    write_json(folder / "manifest.json", manifest)


def _object(video: LabeledVideo, row: int) -> dict[str, Any]:
    x1, y1, x2, y2 = (video.rows.box[row] / (video.size * 2)).tolist()
    score, mask = video.numbers(row, "score"), video.mask(row)
    return {
        "type": "eta.core.objects.DetectedObject",
        "name": FIELD,
        "label": video.rows.tag[row],
        "bounding_box": {"top_left": {"x": x1, "y": y1}, "bottom_right": {"x": x2, "y": y2}},
        "index": video.track_of(row).id,
        **({"confidence": score["score"]} if score else {}),
        **({} if mask is None else {"mask": _packed(mask, video.rows.box[row].tolist())}),
    }


def _packed(mask: npt.NDArray[np.bool_], box: list[float]) -> str:
    x1, y1, x2, y2 = box
    file = io.BytesIO()
    np.save(file, mask[floor(y1) : ceil(y2), floor(x1) : ceil(x2)])
    return b64encode(compress(file.getvalue())).decode("ascii")

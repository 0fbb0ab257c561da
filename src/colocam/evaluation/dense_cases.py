"""Frames of the worst dense shots, for the report; the layout of the file is that of ``cases.npz``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import scale_boxes
from colocam.data.frame_cache import resize_square
from colocam.types import Box, Clip, Image, Localization
from colocam.utils.files import atomic_path


class Example(NamedTuple):
    """A frame with its localization and its IoU with the best true box."""

    image: Image
    found: Localization
    overlap: float


class DenseCase(NamedTuple):
    """One frame of a shot, with its true boxes and what was found without and with the tag."""

    clip: Clip
    true: list[Box]
    without_tag: Example
    with_tag: Example


def save_dense_cases(path: Path, cases: Sequence[DenseCase]) -> None:
    """Write frames, maps and boxes, all resized to the square of the model's maps; without a case, no file."""
    if not cases:
        path.unlink(missing_ok=True)
        return
    ways = ("without the tag", "with the tag")
    side = cases[0].without_tag.found.heatmap.shape[0]
    truth = np.full((len(cases), max(len(case.true) for case in cases), 4), np.nan, np.float32)
    for row, case in zip(truth, cases, strict=True):
        row[: len(case.true)] = _scaled(case.true, case.without_tag.image, side)
    meta = [
        {
            "clip": case.clip.name,
            "frame": case.without_tag.found.frame,
            "tag": case.clip.tag,
            "predicted": case.without_tag.found.tag,
            "probability": case.without_tag.found.probability,
            "group": "dense",
        }
        for case in cases
    ]
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "images": np.stack([resize_square(case.without_tag.image, side) for case in cases]),
        "truth": truth,
        "meta": np.array(json.dumps(meta)),
    }
    for way, examples in zip(ways, ([c.without_tag for c in cases], [c.with_tag for c in cases]), strict=True):
        heatmaps = np.stack([example.found.heatmap for example in examples])
        arrays[f"heatmaps__{way}"] = (255 * np.clip(np.nan_to_num(heatmaps), 0, 1)).astype(np.uint8)
        boxes = [example.found.box or (np.nan,) * 4 for example in examples]
        arrays[f"boxes__{way}"] = np.concatenate(
            [_scaled([box], example.image, side) for box, example in zip(boxes, examples, strict=True)]
        )
        arrays[f"iou__{way}"] = np.array([example.overlap for example in examples], np.float32)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def _scaled(boxes: Sequence[Sequence[float]], image: Image, side: int) -> npt.NDArray[np.float32]:
    """(k, 4) boxes of an image in pixels of a square of ``side`` pixels."""
    height, width = image.shape[:2]
    return scale_boxes(np.array(boxes, np.float64), (width, height), (side, side))

"""Examples for the report, chosen by rule: the best, median and worst frame of each class, and empty frames."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import scale_boxes
from colocam.data.frame_cache import resize_square
from colocam.evaluation.metrics.dense_scores import best_iou
from colocam.types import Box, Clip, Float64Array, Image, Levels, Localization
from colocam.utils.files import atomic_path

EMPTY_CASES = 4
"""Number of frames without the object among the examples."""
WORST = 3
"""Number of shots of which the report shows the worst frame, of each kind."""


def choose_cases(
    overlaps: npt.NDArray[np.float64], classes: npt.NDArray[np.int64], clips: npt.NDArray[np.int64]
) -> list[tuple[int, str]]:
    """Index and group of each example.

    Args:
        overlaps: (N,) IoU of the main method; NaN where the object is absent.
        classes: (N,) class of each frame.
        clips: (N,) clip of each frame; one clip gives at most one empty example.
    """
    groups: dict[str, list[int]] = {"best": [], "typical": [], "worst": [], "empty": []}
    for name in np.unique(classes):
        frames = np.flatnonzero((classes == name) & ~np.isnan(overlaps))
        if len(frames):
            ordered = frames[np.argsort(overlaps[frames], kind="stable")].tolist()
            groups["best"].append(ordered[-1])
            groups["typical"].append(ordered[len(ordered) // 2])
            groups["worst"].append(ordered[0])
    empty = np.flatnonzero(np.isnan(overlaps))
    _, first = np.unique(clips[empty], return_index=True)
    groups["empty"] = empty[np.sort(first)[:EMPTY_CASES]].tolist()
    unique: dict[int, str] = {}
    for group, members in groups.items():
        for frame in members:  # the best frame of a class may also be its worst
            unique.setdefault(frame, group)
    return list(unique.items())


def case_meta(clip: Clip, frame: int, predicted: str, probability: float, group: str) -> dict[str, object]:
    """What the report says about an example: where it is from, its tag and what the classifier found."""
    return {
        "clip": clip.name,
        "frame": frame,
        "tag": clip.tag,
        "predicted": predicted,
        "probability": probability,
        "group": group,
    }


def write_cases(
    path: Path,
    images: Levels,
    truth: Sequence[npt.ArrayLike],
    meta: Sequence[Mapping[str, object]],
    methods: Mapping[str, tuple[Levels, npt.NDArray[np.floating], npt.NDArray[np.floating]]],
) -> None:
    """Write N examples as the report reads them.

    Args:
        path: the .npz file.
        images: (N, S, S, 3).
        truth: true boxes (k, 4) of each, in pixels of the image.
        meta: clip, frame, tag, predicted, probability and group of each.
        methods: name → maps (N, S, S) in 8 bits, boxes (N, 4) or (N, k, 4), NaN for no box, and IoU (N,) with the true
            box.
    """
    arrays: dict[str, npt.NDArray[np.generic]] = {"images": images, "truth": _padded(truth).astype(np.float32)}
    for name, (maps, boxes, overlaps) in methods.items():
        arrays |= {f"heatmaps__{name}": maps, f"boxes__{name}": boxes.astype(np.float32)}
        arrays[f"iou__{name}"] = overlaps.astype(np.float32)
    write_images(path, arrays, meta)


def write_images(
    path: Path, arrays: Mapping[str, npt.NDArray[np.generic]], meta: Sequence[Mapping[str, object]]
) -> None:
    """Write arrays of N rows and what is known about each row as an .npz file, to be read without pickle."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, meta=np.array(json.dumps(meta)), **arrays)


def _padded(boxes: Sequence[npt.ArrayLike]) -> Float64Array:
    """Boxes (k, 4) of N frames as (N, largest k, at least 1, 4), filled with NaN."""
    rows = np.full((len(boxes), max([4, *map(np.size, boxes)]) // 4, 4), np.nan)
    for row, corners in zip(rows, boxes, strict=True):
        known = np.reshape(corners, (-1, 4))
        row[: len(known)] = known
    return rows


class Example(NamedTuple):
    """A frame of a localized shot for the report.

    Attributes:
        clip: the shot.
        image: the frame.
        true: its boxes; there may be none.
        found: way → everything that was found in it, at least one entry.
        wrong: how wrong that is; the most wrong shots are shown.
        group: of the gallery.
        notes: further entries of its meta, such as a verdict.
    """

    clip: Clip
    image: Image
    true: Sequence[Box]
    found: Mapping[str, Sequence[Localization]]
    wrong: float
    group: str
    notes: Mapping[str, object] = {}


def worst(examples: Sequence[Example]) -> list[Example]:
    """The most wrong ones, as many as the report shows."""
    return sorted(examples, key=lambda example: -example.wrong)[:WORST]


def save_examples(path: Path, examples: Sequence[Example]) -> None:
    """Write frames, maps and boxes, all resized to the square of the model's maps; without an example, no file."""
    if not examples:
        path.unlink(missing_ok=True)
        return
    side = next(iter(examples[0].found.values()))[0].heatmap.shape[0]

    def scaled(boxes: Sequence[Box], image: Image) -> npt.NDArray[np.float32]:
        return scale_boxes(np.array(boxes, np.float64).reshape(-1, 4), image.shape[1::-1], (side, side))

    meta = []
    for example in examples:
        first = next(iter(example.found.values()))[0]
        fields = case_meta(example.clip, first.frame, first.tag, first.probability, example.group)
        meta.append({**fields, **example.notes})
    methods = {}
    for way in examples[0].found:
        heatmaps = np.stack([example.found[way][0].heatmap for example in examples])
        levels = (255 * np.clip(np.nan_to_num(heatmaps), 0, 1)).astype(np.uint8)
        boxes = [scaled([row.box for row in example.found[way] if row.box], example.image) for example in examples]
        overlaps = [best_iou(example.found[way][0].box, example.true) for example in examples]
        methods[way] = levels, _padded(boxes), np.array(overlaps)
    images = np.stack([resize_square(example.image, side) for example in examples])
    write_cases(path, images, [scaled(example.true, example.image) for example in examples], meta, methods)

"""Examples for the report, chosen by rule: the best, median and worst frame of each class, and empty frames."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.types import Clip, Levels
from colocam.utils.files import atomic_path

EMPTY_CASES = 4
"""Number of frames without the object among the examples."""


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
        methods: name → maps (N, S, S) in 8 bits, boxes (N, 4), NaN for no box, and IoU (N,) with the true box.
    """
    boxes = np.full((len(truth), max([4, *map(np.size, truth)]) // 4, 4), np.nan, np.float32)
    for row, true in zip(boxes, truth, strict=True):
        known = np.reshape(true, (-1, 4))
        row[: len(known)] = known
    arrays: dict[str, npt.NDArray[np.generic]] = {"images": images, "truth": boxes}
    for name, (maps, found, overlaps) in methods.items():
        arrays |= {f"heatmaps__{name}": maps, f"boxes__{name}": found.astype(np.float32)}
        arrays[f"iou__{name}"] = overlaps.astype(np.float32)
    write_images(path, arrays, meta)


def write_images(
    path: Path, arrays: Mapping[str, npt.NDArray[np.generic]], meta: Sequence[Mapping[str, object]]
) -> None:
    """Write arrays of N rows and what is known about each row as an .npz file, to be read without pickle."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, meta=np.array(json.dumps(meta)), **arrays)

"""Examples for the report, chosen by rule: the best, median and worst frame of each class, and empty frames."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.augment import whole
from colocam.data.batches import BatchIndices, read_frames
from colocam.data.samples import Boxes, Samples
from colocam.evaluation.metrics import best_overlaps
from colocam.temporal.path import boxes_of_shots
from colocam.types import Levels
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
    chosen: list[tuple[int, str]] = []
    for name in np.unique(classes):
        frames = np.flatnonzero((classes == name) & ~np.isnan(overlaps))
        if len(frames):
            ordered = frames[np.argsort(overlaps[frames], kind="stable")]
            chosen += [
                (int(ordered[-1]), "best"),
                (int(ordered[len(ordered) // 2]), "typical"),
                (int(ordered[0]), "worst"),
            ]
    empty = np.flatnonzero(np.isnan(overlaps))
    _, first = np.unique(clips[empty], return_index=True)
    chosen += [(int(empty[i]), "empty") for i in np.sort(first)[:EMPTY_CASES]]
    order = {"best": 0, "typical": 1, "worst": 2, "empty": 3}
    unique: dict[int, str] = {}
    for frame, group in chosen:  # the best frame of a class may also be its worst
        unique.setdefault(frame, group)
    return sorted(unique.items(), key=lambda case: order[case[1]])


def save_cases(
    path: Path,
    samples: Samples,
    true_boxes: Sequence[Boxes],
    maps: Mapping[str, Levels],
    thresholds: Mapping[str, float],
    choosers: Mapping[str, str],
    predicted: Sequence[tuple[str, float]],
    tags: Sequence[str],
    chosen: Sequence[tuple[int, str]] | None = None,
) -> None:
    """Write frames, maps, boxes and overlaps of the examples; the last method in ``maps`` decides which are chosen.

    Args:
        path: the .npz file; read it without pickle.
        samples: N evaluated frames.
        true_boxes: (k, 4) of each frame in pixels of the maps.
        maps: method → (N, S, S) in 8 bits.
        thresholds: method → τ of the drawn box.
        choosers: method → name of the rule that chose it.
        predicted: most probable tag of each frame and its probability.
        tags: names of the classes.
        chosen: index and group of the frames; None: by ``choose_cases``.
    """
    boxes, found, overlaps = {}, {}, {}
    present = np.array([len(frame) > 0 for frame in true_boxes], dtype=bool)
    for method, levels in maps.items():
        clips = samples.indices.clips.numpy()
        boxes[method], found[method] = boxes_of_shots(levels, thresholds[method], choosers[method], clips)
        overlaps[method] = np.full(len(levels), np.nan)
        right = best_overlaps(boxes[method][present][:, None], [b for b in true_boxes if len(b)])[:, 0]
        overlaps[method][present] = np.where(found[method][present], right, 0.0)
    main = list(maps)[-1]
    size = maps[main].shape[1]
    cases = chosen
    if cases is None:
        cases = choose_cases(overlaps[main], samples.classes.numpy(), samples.indices.clips.numpy())
    at = [frame for frame, _ in cases]
    indices = BatchIndices(samples.indices.clips[at], samples.indices.frames[at], samples.indices.sequences[at])
    images = whole(read_frames(samples.clips, indices), size).round().byte().permute(0, 2, 3, 1).numpy()
    where = samples.where()
    meta = [
        {
            "clip": where[i][0].clip.name,
            "frame": where[i][1],
            "tag": tags[int(samples.classes[i])],
            "predicted": predicted[i][0],
            "probability": predicted[i][1],
            "group": group,
        }
        for i, group in cases
    ]
    drawn = {
        method: (
            maps[method][at],
            np.where(found[method][at][:, None], boxes[method][at], np.nan),
            overlaps[method][at],
        )
        for method in maps
    }
    write_cases(path, images, [true_boxes[i] for i in at], meta, drawn)


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
    arrays: dict[str, npt.NDArray[np.generic]] = {"images": images, "truth": boxes, "meta": np.array(json.dumps(meta))}
    for name, (maps, found, overlaps) in methods.items():
        arrays |= {f"heatmaps__{name}": maps, f"boxes__{name}": found.astype(np.float32)}
        arrays[f"iou__{name}"] = overlaps.astype(np.float32)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)

"""Evaluate boxes or maps that others predicted, from files, as a run is evaluated."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import boxes_at_levels, level_histogram
from colocam.boxes.quantize import checked_levels
from colocam.boxes.tags_only import threshold_of_levels
from colocam.data.samples import Boxes
from colocam.errors import ColocamError
from colocam.evaluation.labelled import LabelledClips, LabelledFrame, read_labelled
from colocam.evaluation.prediction_files import Map, PredictedBox, map_files, read_boxes, read_map, read_mask
from colocam.metrics import (
    Frames,
    accuracy,
    best_overlaps,
    corloc,
    inclusive_iou,
    instance_scores,
    max_box_acc,
    pixel_histograms,
    pxap,
)
from colocam.metrics.box_accuracy import V2_OVERLAPS
from colocam.metrics.hits import PUBLISHED_THRESHOLDS, hits_of_overlaps
from colocam.metrics.instance_scores import ROUNDING, SEVERAL
from colocam.types import Split
from colocam.utils.progress import progress

Files = Mapping[tuple[str, int], Path]
Predicted = Mapping[tuple[str, int], Sequence[PredictedBox]]


def evaluate_predictions(
    predictions: str | Path,
    boxes: str | Path,
    *,
    manifest: str | Path | None = None,
    split: Split = "test",
    size: int | None = None,
    masks: str | Path | None = None,
) -> dict[str, Any]:
    """Measure boxes (a table) or maps (a folder) of any method on the frames of ``split`` that have true boxes.

    Args:
        predictions: table of boxes (``read_boxes``) or folder of maps (``map_files``).
        boxes: table of true boxes.
        manifest: where tag, video, split and size of the clips are known from; not needed where the table of true
            boxes has columns for them (``read_labelled``).
        split: the evaluated split.
        size: boxes are compared in a frame of (size, size), true ones truncated to whole pixels, as published (224);
            None: in pixels of the frame, as they are. Maps are always compared in their own pixels, the published way.
        masks: folder of true masks ``<clip>/<frame>.png`` for PxAP of maps.

    Returns:
        ``boxes`` (CorLoc) or ``maps`` (CorLoc under each protocol), ``max_box_acc`` by least IoU, where known
        ``classification`` and ``pxap``, for boxes ``instances`` where frames have several true ones, and ``data``. A
        frame without a prediction counts as wrong.
    """
    predictions, source = Path(predictions), Path(boxes)
    labelled = read_labelled(source, None if manifest is None else Path(manifest), split)
    frames = labelled.frames(split)
    if not frames:
        raise ColocamError(f"{source} has no box for a '{split}' frame: check the clip names, --split and --manifest")
    if predictions.is_dir():
        if size is not None:
            raise ColocamError("--size is for boxes: maps are compared in their own pixels")
        files = map_files(predictions)
        result = _maps(labelled, frames, files, split, None if masks is None else map_files(Path(masks)))
        predicted = set(files)
    else:
        if masks is not None:
            raise ColocamError("--masks need maps: give a folder of maps as --predictions")
        table = read_boxes(predictions)
        result, predicted = _boxes(labelled, frames, table, size), set(table)
    wanted = {(frame.clip, frame.frame) for frame in frames}
    if not wanted & predicted:
        raise ColocamError(
            f"{predictions}: not one prediction is of a '{split}' frame with a box: check the clip names"
        )
    result["data"] = {
        "split": split,
        "frames": len(frames),
        "missing": len(wanted - predicted),
        "boxes": sum(len(frame.boxes) for frame in frames),
        "clips": len({frame.clip for frame in frames}),
        "videos": len({labelled.clips[frame.clip].video for frame in frames}),
        "classes": len(labelled.tags),
        **result.pop("data", {}),
    }
    return result


def _boxes(
    labelled: LabelledClips,
    frames: Sequence[LabelledFrame],
    table: Predicted,
    size: int | None,
) -> dict[str, Any]:
    overlaps = np.zeros(len(frames))
    for i, frame in enumerate(frames):
        found = table.get((frame.clip, frame.frame))
        if found is None or found[0].box is None:
            continue
        box = np.array(found[0].box, np.float64)
        if size is None:
            overlaps[i] = inclusive_iou(box, frame.boxes).max()
        else:
            scale = _scale(labelled, frame, size, size)
            overlaps[i] = best_overlaps((box * scale)[None, None], [(frame.boxes * scale).astype(np.float32)])[0, 0]
    hits = overlaps[None, :, None] >= np.array(V2_OVERLAPS)[:, None, None] - ROUNDING
    about = _about(labelled, frames)
    result: dict[str, Any] = {}
    classified = {}
    if any(found[0].tag for found in table.values()):
        right = [_tag(table, frame) == labelled.clips[frame.clip].tag for frame in frames]
        classified["top1"] = np.array(right)
        result["classification"] = accuracy(classified["top1"], about)
    results = corloc(hits[V2_OVERLAPS.index(0.5)], about, [0.0], tags_only=0.0, classified=classified)
    if (several := _instances(labelled, frames, table, size)) is not None:
        result["instances"] = several
    # one box a frame leaves nothing to choose: all protocols say the same
    return {
        "boxes": {key: value for key, value in results["tags-only"].items() if key != "threshold"},
        "max_box_acc": _max_box_acc(hits),
        **result,
    }


def _instances(
    labelled: LabelledClips, frames: Sequence[LabelledFrame], table: Predicted, size: int | None
) -> dict[str, Any] | None:
    """All predicted boxes on the frames with several true ones; None where there is no such frame."""
    predicted, true = [], []
    for frame in (frame for frame in frames if len(frame.boxes) >= SEVERAL):
        found = [one.box for one in table.get((frame.clip, frame.frame), ()) if one.box is not None]
        scale = np.ones(4) if size is None else _scale(labelled, frame, size, size)
        predicted.append(np.array(found, np.float64).reshape(-1, 4) * scale)
        true.append(frame.boxes if size is None else np.trunc(frame.boxes * scale))
    if not true:
        return None
    methods = {
        "boxes": {
            "all boxes": instance_scores(predicted, true),
            "one box": instance_scores([boxes[:1] for boxes in predicted], true),
        }
    }
    return {"frames": len(true), "boxes": sum(map(len, true)), "methods": methods}


def _maps(
    labelled: LabelledClips, frames: Sequence[LabelledFrame], files: Files, split: Split, masks: Files | None
) -> dict[str, Any]:
    held_out = [frame for frame in labelled.frames("val") if (frame.clip, frame.frame) in files]
    # Without maps of validation videos those of the evaluated ones give the threshold; that needs no box either.
    unlabelled = _files_of(labelled, files, "val") or _files_of(labelled, files, split)
    tags_only = _tags_only_threshold(unlabelled)
    grid = np.append(PUBLISHED_THRESHOLDS, tags_only)
    validation = None
    if held_out:
        overlaps, maxima, _ = _overlaps(labelled, held_out, files, None)
        validation = hits_of_overlaps(overlaps, maxima, grid), _about(labelled, held_out)
    overlaps, maxima, pixels = _overlaps(labelled, frames, files, masks)
    hits = hits_of_overlaps(overlaps, maxima, grid, V2_OVERLAPS)
    at_half = hits[V2_OVERLAPS.index(0.5)]
    about = _about(labelled, frames)
    result: dict[str, Any] = {
        "maps": corloc(at_half, about, grid, tags_only=tags_only, classified={}, validation=validation),
        "max_box_acc": _max_box_acc(hits),
        "data": {"validation_frames": len(held_out), "threshold_maps": len(unlabelled)},
    }
    if masks is not None:
        result["pxap"] = pxap(pixels)
    return result


def _overlaps(
    labelled: LabelledClips, frames: Sequence[LabelledFrame], files: Files, masks: Files | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """(N, 256) IoU of each map's box at each level, (N,) highest levels, and pixels by score where masks exist.

    One map at a time is in memory; a missing one overlaps with nothing, and its pixels score 0.
    """
    overlaps, maxima = np.zeros((len(frames), 256)), np.zeros(len(frames), np.uint8)
    pixels: npt.NDArray[np.int64] | None = None
    with progress("maps", len(frames), unit="frames") as advance:
        for i, frame in enumerate(frames):
            key = frame.clip, frame.frame
            values = read_map(files[key]) if key in files else None
            if values is not None:
                levels = checked_levels(values[None])
                height, width = values.shape
                true: Boxes = (frame.boxes * _scale(labelled, frame, width, height)).astype(np.float32)
                overlaps[i] = best_overlaps(boxes_at_levels(levels), [true])[0]
                maxima[i] = levels.max()
            if masks is not None and key in masks:
                counts = _pixels(values, read_mask(masks[key]))
                pixels = counts if pixels is None else pixels + counts
            advance()
    if masks is not None and pixels is None:
        raise ColocamError("--masks: not one mask is of an evaluated frame: check the clip names")
    return overlaps, maxima, np.zeros((2, 1), np.int64) if pixels is None else pixels


def _pixels(values: Map | None, mask: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if values is None:
        return pixel_histograms(np.zeros(mask.shape)[None], mask[None])
    scores = values.astype(np.float32) / (255 if values.dtype == np.uint8 else 1)
    height, width = mask.shape
    resized = np.asarray(cv2.resize(scores, (width, height), interpolation=cv2.INTER_LINEAR), np.float64)
    return pixel_histograms(np.clip(resized, 0, 1)[None], mask[None])


def _tags_only_threshold(paths: Sequence[Path]) -> float:
    counts = torch.zeros(256, dtype=torch.int64)
    for path in paths:
        counts += level_histogram(torch.from_numpy(checked_levels(read_map(path)[None])), relative=True)[0]
    return threshold_of_levels(counts)


def _scale(labelled: LabelledClips, frame: LabelledFrame, width: int, height: int) -> npt.NDArray[np.float64]:
    """(4,) factors from pixels of the frame to those of a picture of (width, height)."""
    whole = labelled.size(frame.clip, frame.frame)
    return np.array([width / whole[0], height / whole[1]] * 2)


def _about(labelled: LabelledClips, frames: Sequence[LabelledFrame]) -> Frames:
    clips = [labelled.clips[frame.clip] for frame in frames]
    tags = np.array([labelled.tags.index(clip.tag) for clip in clips], np.int64)
    return Frames(labelled.tags, tags, np.array([clip.video for clip in clips]))


def _files_of(labelled: LabelledClips, files: Files, split: Split) -> list[Path]:
    clips = {clip.name for clip in labelled.clips.values() if clip.split == split}
    return [path for (clip, _), path in files.items() if clip in clips]


def _tag(table: Predicted, frame: LabelledFrame) -> str:
    found = table.get((frame.clip, frame.frame))
    return "" if found is None else found[0].tag


def _max_box_acc(hits: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Share of right frames in percent at the best threshold, by least IoU, and their mean."""
    return {
        **{f"{iou:g}": max_box_acc(at) for iou, at in zip(V2_OVERLAPS, hits, strict=True)},
        "mean": max_box_acc(hits),
    }

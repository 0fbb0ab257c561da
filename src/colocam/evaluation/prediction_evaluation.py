"""Evaluate predicted boxes or maps of any program, read from files, by the rules of a run's evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes import boxes_at_levels
from colocam.boxes.iou import iou
from colocam.boxes.quantize import checked_levels, tags_only_threshold
from colocam.errors import ArgumentError, ColocamError
from colocam.evaluation.metrics import (
    Frames,
    Instances,
    accuracy,
    best_overlaps,
    corloc,
    instance_scores,
    max_box_acc,
    pixel_histograms,
    pxap,
)
from colocam.evaluation.metrics.hits import PUBLISHED_THRESHOLDS, V2_OVERLAPS, hits_of_overlaps
from colocam.evaluation.metrics.object_scores import ROUNDING, SEVERAL
from colocam.evaluation.prediction_files import (
    LabeledClips,
    LabeledFrame,
    Map,
    PredictedBox,
    map_files,
    read_boxes,
    read_labeled,
    read_map,
    read_mask,
)
from colocam.evaluation.result import EvaluatedData, PredictionEvaluation
from colocam.types import Float64Array, Split
from colocam.utils.progress import progress

Frame = tuple[str, int]
"""Name of the clip and index of the frame."""
Files = Mapping[Frame, Path]
Predicted = Mapping[Frame, Sequence[PredictedBox]]


def evaluate_predictions(
    predictions: str | Path,
    boxes: str | Path,
    *,
    manifest: str | Path | None = None,
    split: Split = "test",
    size: int | None = None,
    masks: str | Path | None = None,
) -> PredictionEvaluation:
    """Evaluate boxes (a table) or maps (a folder) of any method on the frames of ``split`` that have true boxes.

    A frame without a prediction counts as wrong.

    Args:
        predictions: table of boxes (``read_boxes``) or folder of maps (``map_files``).
        boxes: table of true boxes.
        manifest: gives tag, video, split and size of the clips; not needed where the table of true boxes has columns
            for them (``read_labeled``).
        split: the evaluated split.
        size: boxes are compared in a frame of (size, size), true ones truncated to integers, as published (224);
            None: in pixels of the frame, as they are. Maps are always compared in their own pixels, as published.
        masks: folder of true masks ``<clip>/<frame>.png`` for PxAP of maps.
    """
    predictions, source = Path(predictions), Path(boxes)
    if predictions.is_dir() and size is not None:
        raise ArgumentError("size", "is for predicted boxes: maps are compared at their own size")
    if not predictions.is_dir() and masks is not None:
        raise ArgumentError("masks", "are for predicted maps: give a folder of maps as predictions")
    labeled = read_labeled(source, None if manifest is None else Path(manifest), split)
    frames = labeled.frames(split)
    if not frames:
        raise ColocamError(
            f"{source} has no box for a '{split}' frame: check the clip names, the split and the manifest"
        )
    files, table = (map_files(predictions), {}) if predictions.is_dir() else ({}, read_boxes(predictions))
    missing = [frame for frame in frames if frame.key not in files and frame.key not in table]
    if len(missing) == len(frames):
        raise ColocamError(
            f"{predictions} has no prediction for a '{split}' frame with a true box: check the clip names"
        )
    data = EvaluatedData(
        split=split,
        frames=len(frames),
        videos=len({frame.clip.video for frame in frames}),
        clips=len({frame.clip.name for frame in frames}),
        boxes=sum(len(frame.boxes) for frame in frames),
        classes=len(labeled.tags),
        missing=len(missing),
    )
    if files:
        return _maps(labeled, frames, files, data, None if masks is None else map_files(Path(masks)))
    return _boxes(labeled, frames, table, data, size)


def _boxes(
    labeled: LabeledClips,
    frames: Sequence[LabeledFrame],
    table: Predicted,
    data: EvaluatedData,
    size: int | None,
) -> PredictionEvaluation:
    predicted = []
    true = []
    overlaps = np.zeros(len(frames))
    tags = []
    for i, frame in enumerate(frames):
        found = table.get(frame.key, ())
        scale = np.ones(4) if size is None else frame.scale(size, size)
        boxes = np.array([one.box for one in found if one.box is not None], np.float64).reshape(-1, 4) * scale
        there = frame.boxes if size is None else frame.truncated(scale)
        if found and found[0].box is not None:
            overlaps[i] = iou(boxes[:1], there, inclusive=True).max()
        tags.append(found[0].tag if found else "")
        predicted.append(boxes)
        true.append(there)
    hits = overlaps[None, :, None] >= np.array(V2_OVERLAPS)[:, None, None] - ROUNDING
    about = _about(labeled, frames)
    top1 = None
    if any(found[0].tag for found in table.values()):
        top1 = np.array([tag == frame.clip.tag for tag, frame in zip(tags, frames, strict=True)])
    # One box per frame leaves no threshold to choose: all protocols are equal.
    scores = corloc(hits[V2_OVERLAPS.index(0.5)], about, [0.0], tags_only=0.0, top1=top1)["tags-only"]
    return PredictionEvaluation(
        data=data,
        max_box_acc=max_box_acc(hits),
        boxes=replace(scores, threshold=None),
        classification=None if top1 is None else accuracy(top1, about),
        instances=_instances(predicted, true),
    )


def _instances(predicted: Sequence[Float64Array], true: Sequence[Float64Array]) -> Instances | None:
    """Scores of all predicted boxes on the frames with several true ones; None without such frames."""
    several = [pair for pair in zip(predicted, true, strict=True) if len(pair[1]) >= SEVERAL]
    if not several:
        return None
    boxes, there = zip(*several, strict=True)
    ways = {"all boxes": instance_scores(boxes, there), "one box": instance_scores([one[:1] for one in boxes], there)}
    return Instances(len(there), sum(map(len, there)), {"boxes": ways})


def _maps(
    labeled: LabeledClips,
    frames: Sequence[LabeledFrame],
    files: Files,
    data: EvaluatedData,
    masks: Files | None,
) -> PredictionEvaluation:
    held_out = [frame for frame in labeled.frames("val") if frame.key in files]
    # Without maps of validation videos, those of the evaluated videos choose the threshold; that needs no box either.
    unlabeled = _files_of(labeled, files, "val") or _files_of(labeled, files, data.split)
    tags_only = tags_only_threshold(checked_levels(read_map(path)[None])[0] for path in unlabeled)
    grid = np.append(PUBLISHED_THRESHOLDS, tags_only)
    validation = None
    if held_out:
        overlaps, maxima, _ = _overlaps(held_out, files, None)
        validation = hits_of_overlaps(overlaps, maxima, grid), _about(labeled, held_out)
    overlaps, maxima, pixels = _overlaps(frames, files, masks)
    hits = hits_of_overlaps(overlaps, maxima, grid, V2_OVERLAPS)
    return PredictionEvaluation(
        data=replace(data, validation_frames=len(held_out), threshold_maps=len(unlabeled)),
        max_box_acc=max_box_acc(hits),
        maps=corloc(
            hits[V2_OVERLAPS.index(0.5)], _about(labeled, frames), grid, tags_only=tags_only, validation=validation
        ),
        pxap=None if masks is None else pxap(pixels),
    )


def _overlaps(
    frames: Sequence[LabeledFrame], files: Files, masks: Files | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """(N, 256) IoU of each map's box at each level, (N,) highest levels, and pixels by score where masks exist.

    One map at a time is in memory. A missing map has an IoU of 0, and its pixels have the score 0.
    """
    overlaps, maxima = np.zeros((len(frames), 256)), np.zeros(len(frames), np.uint8)
    pixels: npt.NDArray[np.int64] | None = None
    with progress("maps", len(frames), unit="frames") as advance:
        for i, frame in enumerate(frames):
            values = read_map(files[frame.key]) if frame.key in files else None
            if values is not None:
                levels = checked_levels(values[None])
                height, width = values.shape
                true = frame.truncated(frame.scale(width, height))
                overlaps[i] = best_overlaps(boxes_at_levels(levels), [true])[0]
                maxima[i] = levels.max()
            if masks is not None and frame.key in masks:
                counts = _pixels(values, read_mask(masks[frame.key]))
                pixels = counts if pixels is None else pixels + counts
            advance()
    if masks is not None and pixels is None:
        raise ArgumentError("masks", "has no mask of an evaluated frame: check the clip names")
    return overlaps, maxima, np.zeros((2, 1), np.int64) if pixels is None else pixels


def _pixels(values: Map | None, mask: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if values is None:
        return pixel_histograms(np.zeros(mask.shape)[None], mask[None])
    scores = values.astype(np.float32) / (255 if values.dtype == np.uint8 else 1)
    height, width = mask.shape
    resized = np.asarray(cv2.resize(scores, (width, height), interpolation=cv2.INTER_LINEAR), np.float64)
    return pixel_histograms(np.clip(resized, 0, 1)[None], mask[None])


def _about(labeled: LabeledClips, frames: Sequence[LabeledFrame]) -> Frames:
    tags = np.array([labeled.tags.index(frame.clip.tag) for frame in frames], np.int64)
    return Frames(labeled.tags, tags, np.array([frame.clip.video for frame in frames]))


def _files_of(labeled: LabeledClips, files: Files, split: str) -> list[Path]:
    return [path for (clip, _), path in files.items() if clip in labeled.clips and labeled.clips[clip].split == split]

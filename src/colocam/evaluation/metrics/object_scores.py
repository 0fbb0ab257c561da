"""Scores of several boxes a frame, of presence, and of tracks.

Every function takes plain arrays; corners are pixels that belong to the box. A box is right from an IoU of 0.5; of
frames with several true boxes (:class:`Instances`) also from 0.3 and 0.7, as in MaxBoxAccV2, and the mean of the three
is the figure. There each true box counts, not the frame, and a predicted box finds at most one of them (the one-to-one
matching with the most pairs).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import instance_boxes
from colocam.boxes.extract import largest_boxes
from colocam.boxes.iou import Numbers, best_pairs, iou
from colocam.boxes.quantize import checked_levels
from colocam.evaluation.metrics.dense_scores import mean_or_none
from colocam.evaluation.metrics.hits import RIGHT, V2_OVERLAPS, average_precision, by_overlap
from colocam.types import Float64Array, Levels

SEVERAL = 2
"""True boxes from which a frame counts here."""
THRESHOLDS: npt.NDArray[np.float64] = np.arange(1, 20) / 20
"""Thresholds of which ``oracle-global`` takes the best."""
ROUNDING = 1e-9
"""IoU that a box may have lost when it was scaled to the frame and back."""
Shares = Mapping[str, float]
"""Share by least IoU, "0.3", "0.5" and "0.7", and their "mean"."""
RECALLS: Float64Array = np.linspace(0, 1, 101)
"""Recalls at which COCO reads the precision."""
KEPT = 0.95
"""Share of the right boxes that the threshold of presence must keep."""


@dataclass(frozen=True, slots=True)
class InstanceScores:
    """How many of the true boxes are found, each by a predicted box of its own.

    Attributes:
        recall: share of the true boxes that are found.
        precision: share of the predicted boxes that find one; None without predicted boxes.
        threshold: τ of the maps; None where boxes were given.
    """

    recall: Shares
    precision: Shares | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Instances:
    """Scores on the frames with several true boxes.

    Attributes:
        frames: number of these frames.
        boxes: number of true boxes in them.
        methods: method → way of choosing boxes → scores.
    """

    frames: int
    boxes: int
    methods: Mapping[str, Mapping[str, InstanceScores]]


def matches(predicted: Sequence[Numbers], true: Sequence[Numbers]) -> npt.NDArray[np.int64]:
    """Number of true boxes of each frame that a predicted box of their own finds, at each IoU of MaxBoxAccV2.

    Args:
        predicted: for each of N frames (p, 4), p ≥ 0.
        true: for each frame (k, 4), k ≥ 0; corners are pixels that belong to the box.

    Returns:
        (3, N).
    """
    counts = np.zeros((len(V2_OVERLAPS), len(true)), np.int64)
    for i, (predicted_boxes, true_boxes) in enumerate(zip(predicted, true, strict=True)):
        overlaps = _overlaps(predicted_boxes, true_boxes)
        for j, least in enumerate(V2_OVERLAPS):
            right = overlaps >= least - ROUNDING
            counts[j, i] = right[best_pairs(right)].sum()
    return counts


def _overlaps(predicted: npt.ArrayLike, true: npt.ArrayLike) -> Float64Array:
    """(p, k) IoU of boxes (p, 4) with boxes (k, 4)."""
    boxes = np.asarray(predicted, np.float64).reshape(-1, 4)
    others = np.asarray(true, np.float64).reshape(-1, 4)
    return iou(boxes[:, None], others[None], inclusive=True)


def instance_scores(
    predicted: Sequence[Numbers], true: Sequence[Numbers], threshold: float | None = None
) -> InstanceScores:
    """Recall and precision over all boxes of all frames; arguments as in :func:`matches`."""
    percent = 100 * matches(predicted, true).sum(1)
    count = sum(map(len, predicted))
    recall = by_overlap(percent / sum(map(len, true)))
    precision = by_overlap(percent / count) if count else None
    return InstanceScores(recall, precision, threshold)


def instances_of_maps(
    maps: Mapping[str, Levels], true: Sequence[Numbers], thresholds: Mapping[str, float]
) -> Instances | None:
    """Scores of each method's blobs (``instance_boxes``) on the frames with several true boxes; None without any.

    Args:
        maps: method → (N, S, S) in 8 bits.
        true: (k, 4) of each frame in map pixels, truncated to integers as published.
        thresholds: method → τ chosen without boxes.

    Returns:
        for each method the blobs at its τ (``tags-only``), at the best of ``THRESHOLDS`` on these very frames
        (``oracle-global``, by mean recall), and the published single box at its τ (``one box``).
    """
    several = np.array([len(boxes) >= SEVERAL for boxes in true], bool)
    if not several.any():
        return None
    whole = [np.asarray(boxes).astype(np.int64) for boxes in true if len(boxes) >= SEVERAL]
    methods = {}
    for name, levels in maps.items():
        kept = checked_levels(levels[several])
        threshold = thresholds[name]
        box, has_box = largest_boxes(kept, threshold)
        single = [corners[None][: int(present)] for corners, present in zip(box, has_box, strict=True)]
        methods[name] = {
            "tags-only": _at(kept, whole, threshold),
            "oracle-global": max(
                (_at(kept, whole, float(t)) for t in THRESHOLDS), key=lambda scores: scores.recall["mean"]
            ),
            "one box": instance_scores(single, whole, threshold),
        }
    return Instances(len(whole), sum(map(len, whole)), methods)


def _at(levels: Levels, true: Sequence[Numbers], threshold: float) -> InstanceScores:
    return instance_scores([blobs.boxes for blobs in instance_boxes(levels, threshold)], true, threshold)


@dataclass(frozen=True, slots=True)
class DetectionScores:
    """Scores of all boxes of some frames, in percent.

    Attributes:
        frames: number of frames.
        boxes: number of true boxes in them.
        ap50: average precision at an IoU of 0.5, as COCO defines it; None without true boxes.
        recall: share of the true boxes that are found, each by a box of its own; None without true boxes.
        precision: share of the predicted boxes that find one; None without predicted boxes.
        class_ap50: mean over classes of their average precision, where the classes are given; scores of different
            classes are not compared.
    """

    frames: int
    boxes: int
    ap50: float | None = None
    recall: float | None = None
    precision: float | None = None
    class_ap50: float | None = None


@dataclass(frozen=True, slots=True)
class PresenceScores:
    """How well presence separates the frames with the object from those without it.

    Attributes:
        frames: number of labeled frames.
        empty_frames: number of those without the object.
        roc_auc: probability that a frame with the object has a higher presence than an empty one, 0–1.
        empty_ap: average precision of finding the empty frames, 0–1.
        threshold: highest presence that keeps 95 % of the right boxes; None without a right box.
        false_boxes: boxes per empty frame at that threshold.
        all_false_boxes: boxes per empty frame without a threshold.
    """

    frames: int
    empty_frames: int
    roc_auc: float
    empty_ap: float
    threshold: float | None = None
    false_boxes: float | None = None
    all_false_boxes: float | None = None


@dataclass(frozen=True, slots=True)
class TrackScores:
    """How well tracks follow objects, in percent (Ristani et al., 2016).

    Attributes:
        objects: number of true objects.
        tracks: number of tracks in the labeled frames.
        idf1: 2 · IDTP / (true boxes + predicted boxes).
        recall: IDTP / true boxes.
        precision: IDTP / predicted boxes; None without predicted boxes.
    """

    objects: int
    tracks: int
    idf1: float
    recall: float
    precision: float | None = None


@dataclass(frozen=True, slots=True)
class ObjectScores:
    """What a run finds beyond one box a frame; None where the truth does not have what a score needs.

    Attributes:
        every_frame: all boxes of all labeled frames, from ``instances``.
        several: the same of the frames with several true boxes.
        presence: of one box a frame.
        tracks: of ``instances``, in shots whose objects have names.
    """

    every_frame: DetectionScores | None = None
    several: DetectionScores | None = None
    presence: PresenceScores | None = None
    tracks: TrackScores | None = None


def average_precision_50(
    predicted: Sequence[Numbers], scores: Sequence[npt.NDArray[np.floating]], true: Sequence[Numbers]
) -> float:
    """Average precision at an IoU of 0.5 in percent, as COCO defines it for one class and boxes of any size.

    From the highest score down, each box takes the free true box of its frame with the highest IoU.

    Args:
        predicted: for each of N frames (p, 4), p ≥ 0.
        scores: for each frame (p,).
        true: for each frame (k, 4), k ≥ 0; at least one in all.
    """
    right = [np.zeros(0, bool)]
    all_scores = np.concatenate([np.zeros(0), *scores])
    for boxes, values, true_boxes in zip(predicted, scores, true, strict=True):
        overlaps = _overlaps(boxes, true_boxes)
        hits = np.zeros(len(overlaps), bool)
        for i in np.argsort(-np.asarray(values), kind="stable"):
            if overlaps[i].max(initial=0) >= RIGHT - ROUNDING:
                hits[i] = True
                overlaps[:, overlaps[i].argmax()] = -1
        right.append(hits)
    ordered = np.concatenate(right)[np.argsort(-all_scores, kind="stable")]
    hit = np.cumsum(ordered)
    precision = np.maximum.accumulate((hit / np.arange(1, len(hit) + 1))[::-1])[::-1]
    at = np.searchsorted(hit / sum(map(len, true)), RECALLS, side="left")
    return 100 * float(np.append(precision, 0.0)[at].mean())


def detection_scores(
    predicted: Sequence[Numbers],
    scores: Sequence[npt.NDArray[np.floating]],
    true: Sequence[Numbers],
    *,
    several: bool = False,
    classes: Sequence[str] = (),
) -> DetectionScores | None:
    """Scores of all boxes; with ``several``, only of frames with several true boxes, and None without such a frame.

    ``classes`` has that of each frame, or nothing.
    """
    chosen = [i for i, boxes in enumerate(true) if not several or len(boxes) >= SEVERAL]
    if not chosen:
        return None
    predicted_boxes = [predicted[i] for i in chosen]
    true_boxes = [true[i] for i in chosen]
    count = sum(map(len, true_boxes))
    if not count:
        return DetectionScores(len(chosen), 0, precision=0.0 if any(map(len, predicted_boxes)) else None)
    counted = instance_scores(predicted_boxes, true_boxes)
    of_classes = []
    for tag in sorted(set(classes)):
        of_tag = [i for i in chosen if classes[i] == tag]
        if any(len(true[i]) for i in of_tag):
            of_classes.append(
                average_precision_50(
                    [predicted[i] for i in of_tag], [scores[i] for i in of_tag], [true[i] for i in of_tag]
                )
            )
    return DetectionScores(
        frames=len(chosen),
        boxes=count,
        ap50=average_precision_50(predicted_boxes, [scores[i] for i in chosen], true_boxes),
        recall=counted.recall["0.5"],
        precision=counted.precision["0.5"] if counted.precision else None,
        class_ap50=mean_or_none(of_classes),
    )


def roc_auc(scores: npt.NDArray[np.floating], present: npt.NDArray[np.bool_]) -> float:
    """Area under the ROC curve, 0–1: how often a score of a present frame is above that of an empty one; ties half.

    Args:
        scores: (N,) higher means present.
        present: (N,) the truth, with at least one of each kind.
    """
    _, at = np.unique(scores, return_inverse=True)
    full, empty = (np.bincount(at[present == state], minlength=at.max() + 1) for state in (True, False))
    below = np.cumsum(empty) - empty
    return float((full * (below + empty / 2)).sum() / (full.sum() * empty.sum()))


def presence_scores(
    presence: npt.NDArray[np.floating],
    present: npt.NDArray[np.bool_],
    right: npt.NDArray[np.bool_],
    boxed: npt.NDArray[np.bool_],
) -> PresenceScores | None:
    """Scores of presence where one box a frame is given; None unless there are frames of both kinds.

    Args:
        presence: (N,) probability that the object is in the frame.
        present: (N,) whether it is.
        right: (N,) whether the box of the frame is right.
        boxed: (N,) whether the frame has a box.
    """
    empty = ~present
    if not present.any() or not empty.any():
        return None
    kept = np.sort(presence[right & present])[::-1]
    threshold = float(kept[int(np.ceil(KEPT * len(kept) - ROUNDING)) - 1]) if len(kept) else None
    false = boxed & empty
    return PresenceScores(
        frames=len(present),
        empty_frames=int(empty.sum()),
        roc_auc=roc_auc(presence, present),
        empty_ap=average_precision(-presence, empty),
        threshold=threshold,
        false_boxes=None if threshold is None else float((false & (presence >= threshold)).sum() / empty.sum()),
        all_false_boxes=float(false.sum() / empty.sum()),
    )


Named = Mapping[int, Sequence[tuple[str | int, Sequence[float]]]]
"""Frame index → name of each object and its box."""


def track_scores(shots: Sequence[tuple[Named, Named]]) -> TrackScores | None:
    """IDF1 of some shots together; None without a true box.

    In each shot one track is assigned to each object, so that as many boxes as possible (IDTP) are right ones of the
    assigned track.

    Args:
        shots: the true objects of each shot and the predicted tracks, in the labeled frames alone.
    """
    matched = true_boxes = predicted_boxes = objects = tracks = 0
    for true, predicted in shots:
        rows = _places(true)
        columns = _places(predicted)
        common = np.zeros((len(rows), len(columns)))
        for frame, of_frame in true.items():
            others = predicted.get(frame, ())
            if of_frame and others:
                right = _overlaps([box for _, box in of_frame], [box for _, box in others]) >= RIGHT - ROUNDING
                at = [rows[name] for name, _ in of_frame], [columns[name] for name, _ in others]
                common[np.ix_(*at)] += right
        matched += int(common[best_pairs(common)].sum()) if common.size else 0
        true_boxes += sum(map(len, true.values()))
        predicted_boxes += sum(map(len, predicted.values()))
        objects += len(rows)
        tracks += len(columns)
    if not true_boxes:
        return None
    return TrackScores(
        objects=objects,
        tracks=tracks,
        idf1=100 * 2 * matched / (true_boxes + predicted_boxes),
        recall=100 * matched / true_boxes,
        precision=100 * matched / predicted_boxes if predicted_boxes else None,
    )


def _places(frames: Named) -> dict[str | int, int]:
    """Name of each object → its place in the order of first sight."""
    names = dict.fromkeys(name for of_frame in frames.values() for name, _ in of_frame)
    return {name: place for place, name in enumerate(names)}

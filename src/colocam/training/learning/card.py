"""What a model finds in corrected frames, how well it agrees with them, and which thresholds and presence do best.

Tests: tests/training/test_learn_parts.py, tests/training/test_learn.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes.candidates import find_chooser
from colocam.boxes.extract import boxes_at_levels
from colocam.config.card import Card
from colocam.config.schema import Frames as FrameSizes
from colocam.data.batches import Boxes
from colocam.evaluation.metrics import best_overlaps
from colocam.evaluation.metrics.hits import hits_of_overlaps
from colocam.evaluation.metrics.protocols import GRID as CHOOSER_GRID
from colocam.labels.corrections import Correction
from colocam.labels.labeled_videos import LeftOut
from colocam.maps.foreground import foreground_of
from colocam.maps.mapper import map_batches, model_mapper
from colocam.models import foreground
from colocam.models.model_file import Model, load_model
from colocam.run import open_run
from colocam.temporal.path import boxes_of_shots
from colocam.temporal.presence import (
    LIMIT,
    Calibration,
    calibrate,
    foreground_odds,
    shared_peaks,
    with_foreground,
)
from colocam.training.learning.frames import CorrectedFrames, corrected_frames, video_weights
from colocam.types import Float64Array, Levels

GRID: Float64Array = np.arange(1, 200) / 200
LEAST = (0.3, 0.5, 0.7)
"""IoUs from which a box is right; the mean over several is smoother than one."""
PRIOR = 10.0
"""Boxes that the threshold of the model so far counts as."""
WIDTH = 0.15
"""Standard deviation of a threshold around the one so far."""
PRESENCE_PRIOR = 0.2
"""Precision of the scale and the shift of the evidence around 1 and 0, in units of one frame's information."""


def right_at(levels: Levels, boxes: list[Boxes], chooser: str = "largest") -> Float64Array:
    """(N, T) how right the box of each map is at each τ of :data:`GRID`, 0–1; every frame has a true box.

    A chooser that compares thresholds itself is asked at few τ; between them, the result is interpolated.
    """
    if not len(levels):
        return np.zeros((0, len(GRID)))
    if find_chooser(chooser).by_shot:
        few = np.stack([_right_boxes(levels, boxes, chooser, float(threshold)) for threshold in CHOOSER_GRID], axis=1)
        return np.stack([np.interp(GRID, CHOOSER_GRID, row) for row in few])
    overlaps = best_overlaps(boxes_at_levels(levels), boxes)
    hits = hits_of_overlaps(overlaps, levels.max((1, 2)), GRID, LEAST)
    mean: Float64Array = hits.mean(axis=0)
    return mean


def _right_boxes(levels: Levels, boxes: list[Boxes], chooser: str, threshold: float) -> Float64Array:
    """(N,) how right the first candidate of each map is at τ, 0–1."""
    candidates = find_chooser(chooser).candidates(levels, threshold)
    has_boxes = np.array([len(one.boxes) > 0 for one in candidates])
    first = np.array([one.boxes[0] if len(one.boxes) else np.zeros(4) for one in candidates], np.float64)
    overlaps = np.where(has_boxes, best_overlaps(first[:, None], boxes)[:, 0], 0.0)
    right: Float64Array = np.mean([overlaps >= least for least in LEAST], axis=0)
    return right


def choose_threshold(right: Float64Array, classes: npt.NDArray[np.int64], weights: Float64Array, start: float) -> float:
    """τ, for all classes.

    With c(τ) the weighted mean of ``right``, mean over classes, and n the sum of weights, τ maximizes
    (n c(τ) + PRIOR · p(τ)) / (n + PRIOR) with p(τ) = exp(−(τ − start)² / 2 WIDTH²).

    Args:
        right: (N, T) of :func:`right_at`.
        classes: (N,) index of each frame's class.
        weights: (N,) of the frames.
        start: τ so far.
    """
    prior = np.exp(-((GRID - start) ** 2) / (2 * WIDTH**2))
    curves = [np.average(right[classes == one], axis=0, weights=weights[classes == one]) for one in np.unique(classes)]
    total = float(weights.sum())
    return _best((total * np.mean(curves, axis=0) + PRIOR * prior) / (total + PRIOR))


def _best(curve: Float64Array) -> float:
    """τ of the highest value; of several the middle one, which is safest on other frames."""
    best = np.flatnonzero(curve >= curve.max() - 1e-12)
    return float(GRID[best[(len(best) - 1) // 2]])


def calibrate_presence(
    calibration: Calibration | None,
    peaks: Float64Array,
    foreground: Float64Array,
    present: npt.NDArray[np.bool_],
    weights: Float64Array,
) -> Calibration | None:
    """Scale and shift the evidence so far, x = slope · peak + offset, to α x + β.

    α and β minimize Σ ω_i CE(e(α x_i + β, m_i), present_i) + PRESENCE_PRIOR · ((α − 1)² + β²) / 2, where e is
    :func:`colocam.temporal.presence.with_foreground`, m_i are the odds of a foreground, and frames with and without the
    object have the same sum of weights. Without frames of both kinds the calibration stays as it is.

    Args:
        calibration: so far; None: there is none.
        peaks: (N,) peak of each frame's class (:func:`colocam.temporal.presence.shared_peaks`).
        foreground: (N,) f of each frame, 0–1.
        present: (N,) whether the frame shows the object.
        weights: (N,) of the frames.
    """
    if not len(peaks) or present.all() or not present.any():
        return calibration
    if calibration is None or calibration.slope <= 0:
        return calibrate(peaks[present], peaks[~present])
    x = (calibration.slope * peaks + calibration.offset).clip(-LIMIT, LIMIT)
    share = np.where(present, weights / weights[present].sum(), weights / weights[~present].sum())
    share *= min(weights[present].sum(), weights[~present].sum())
    design, start = np.stack([x, np.ones(len(x))], axis=1), np.array([1.0, 0.0])
    values = start.copy()
    nothing = np.exp(-foreground_odds(foreground))

    def cost(at: Float64Array) -> float:
        odds = -np.log(np.exp(-(design @ at)) + nothing)
        return float(
            share @ np.logaddexp(0, np.where(present, -odds, odds)) + PRESENCE_PRIOR / 2 * sum((at - start) ** 2)
        )

    for _ in range(100):  # Gauss and Newton's method
        against = np.exp(-(design @ values))
        p, slopes = 1 / (1 + against + nothing), against / (against + nothing)
        gradient = design.T @ (share * (p - present) * slopes) + PRESENCE_PRIOR * (values - start)
        curvature = (design * (share * p * (1 - p) * slopes**2)[:, None]).T @ design + PRESENCE_PRIOR * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        step /= max(1.0, float(np.abs(step).max()))
        while np.abs(step).max() >= 1e-10 and cost(values - step) > cost(values):
            step /= 2
        values = values - step
        if np.abs(step).max() < 1e-10:
            break
    scale, shift = max(float(values[0]), 0.0), float(values[1])
    return Calibration(scale * calibration.slope, scale * calibration.offset + shift)


def presence_loss(
    calibration: Calibration | None, peaks: Float64Array, foreground: Float64Array, present: npt.NDArray[np.bool_]
) -> float:
    """Mean cross-entropy of presence, with and without the object with the same weight; NaN without frames of both."""
    if calibration is None or not present.any() or present.all():
        return float("nan")
    evidence = with_foreground(calibration.evidence(peaks), foreground_odds(foreground))
    losses = np.logaddexp(0, np.where(present, -evidence, evidence))
    return float((losses[present].mean() + losses[~present].mean()) / 2)


class Observation(NamedTuple):
    """What a network finds in N corrected frames.

    Attributes:
        levels: (N, M, M) 8-bit maps.
        peaks: (N,) peak of each frame's class (:func:`colocam.temporal.presence.shared_peaks`).
        foreground: (N,) of the decoder's map, 0–1 (:mod:`colocam.maps.foreground`).
        right: (N, T) how right the box is at each threshold (:func:`right_at`); 0 where the frame shows no object.
    """

    levels: Levels
    peaks: Float64Array
    foreground: Float64Array
    right: Float64Array

    def part(self, chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> "Observation":
        """Some of the frames (N,)."""
        return Observation(self.levels[chosen], self.peaks[chosen], self.foreground[chosen], self.right[chosen])


@torch.inference_mode()
def observe(model: Model, frames: CorrectedFrames, sizes: FrameSizes, device: torch.device) -> Observation:
    """Maps of corrected frames, post-processed together with other frames of their clips, peaks and foreground."""
    net, card = model.net.to(device).eval(), model.card
    samples, rows = frames.with_context()
    levels = np.concatenate(list(map_batches(model_mapper(model), samples, sizes.crop, device)))[rows]
    signs = []
    for images, classes in frames.samples.batches(sizes.crop, device):
        output = net(images)
        peaks = shared_peaks(output.peaks.cpu().numpy())[np.arange(len(classes)), classes.cpu().numpy()]
        signs.append(np.stack([peaks, foreground_of(foreground(output.map_logits)).double().cpu().numpy()]))
    right, present = np.zeros((len(frames), len(GRID))), frames.present
    right[present] = right_at(levels[present], [boxes for boxes in frames.boxes if len(boxes)], card.chooser)
    peaks_and_foreground = np.concatenate(signs, axis=1)
    return Observation(levels, peaks_and_foreground[0], peaks_and_foreground[1], right)


def learned_card(card: Card, seen: Observation, frames: CorrectedFrames, *, threshold: bool, presence: bool) -> Card:
    """The card with thresholds and presence that agree best with corrected frames; takes less than a second."""
    with_box, weights = frames.present, video_weights(frames)
    changes: dict[str, object] = {}
    if threshold and with_box.any():
        right, classes = seen.right[with_box], frames.classes[with_box]
        chosen = choose_threshold(right, classes, weights[with_box], card.threshold)
        changes = {"threshold": chosen, "threshold_from": "corrections", "class_thresholds": None}
    if presence:
        before = None if card.presence is None else Calibration(*card.presence)
        calibration = calibrate_presence(before, seen.peaks, seen.foreground, with_box, weights)
        changes["presence"] = None if calibration is None else tuple(calibration)
    return card.model_copy(update=changes)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well a model agrees with corrected frames.

    Attributes:
        iou: mean IoU of its boxes with the corrected ones; NaN without a frame with a box.
        corloc: percent of these frames with an IoU of at least 0.5.
        presence_loss: mean cross-entropy of presence; NaN without frames with and without the object.
    """

    iou: float
    corloc: float
    presence_loss: float


def agreement(card: Card, seen: Observation, frames: CorrectedFrames) -> Agreement:
    """Compare the boxes and the presence of a model with corrections."""
    with_box = frames.present
    calibration = None if card.presence is None else Calibration(*card.presence)
    loss = presence_loss(calibration, seen.peaks, seen.foreground, with_box)
    if not with_box.any():
        return Agreement(float("nan"), float("nan"), loss)
    overlaps = box_overlaps(card, seen.levels[with_box], frames.part(with_box))
    weights = frames.weights[with_box]
    share = weights / weights.sum()
    return Agreement(float(share @ overlaps), 100 * float(share @ (overlaps >= 0.5)), loss)


def box_overlaps(card: Card, levels: Levels, frames: CorrectedFrames) -> Float64Array:
    """(N,) IoU of the box of each map with the nearest corrected box of its frame; 0 where the model finds none."""
    of_class = card.class_thresholds or (card.threshold,) * len(card.tags)
    overlaps = np.zeros(len(frames))
    thresholds = np.array([of_class[tag] for tag in frames.classes.tolist()])
    clips = frames.samples.indices.clips.numpy()
    for threshold in np.unique(thresholds).tolist():
        rows = np.flatnonzero(thresholds == threshold)
        boxes, has_box = boxes_of_shots(levels[rows], threshold, card.chooser, clips[rows])
        best = best_overlaps(boxes[:, None], [frames.boxes[row] for row in rows.tolist()])[:, 0]
        overlaps[rows] = np.where(has_box, best, 0.0)
    return overlaps


class QuickLearner:
    """Chooses thresholds and presence; keeps what the model found in the frames it has seen.

    >>> quick = QuickLearner("runs/pets")                     # doctest: +SKIP
    >>> card = quick(read_corrections("corrections.csv"))     # doctest: +SKIP

    The card is that of the model with other thresholds and another calibration of presence. To use it, pass it on:
    ``Localizer(network, card)``, or write it with ``colocam.models.model_file.save_model``. The network passes over
    frames with boxes that were not seen before; the choice itself takes milliseconds. Nothing is held out: a model to
    keep comes from :func:`colocam.training.learning.lesson.learn`.

    Args:
        run: run folder with a trained model.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
    """

    def __init__(self, run: str | Path, device: str | None = None) -> None:
        self.run = open_run(run, device)
        if not self.run.catalogue.clips:  # a ready model: its folder belongs to the installation
            self._frames = TemporaryDirectory(prefix="colocam-frames-")
            self.run = replace(self.run, frames=Path(self._frames.name))
        self.model = load_model(self.run.folder)
        self._seen: dict[tuple[object, ...], Observation] = {}

    def __call__(self, corrections: Sequence[Correction]) -> Card:
        """The card that agrees best with all corrections so far; those that cannot be found are left out."""
        frames = corrected_frames(self.run, corrections, LeftOut())
        return learned_card(self.model.card, self._observe(frames), frames, threshold=True, presence=True)

    def _observe(self, frames: CorrectedFrames) -> Observation:
        """What the model finds, clip by clip: corrected frames of a clip may complete each other's maps by color."""
        before, self._seen = self._seen, {}
        clips = frames.samples.indices.clips.numpy()
        for index in dict.fromkeys(clips.tolist()):
            of_clip = frames.part(clips == index)
            corrected = zip(of_clip.samples.where(), of_clip.classes.tolist(), of_clip.boxes, strict=True)
            key = tuple((clip.file, frame, tag, boxes.tobytes()) for (clip, frame), tag, boxes in corrected)
            known = before.get(key)
            self._seen[key] = known or observe(self.model, of_clip, self.run.config.frames, self.run.device)
        return Observation(*map(np.concatenate, zip(*self._seen.values(), strict=True)))

"""Evaluate what a run finds as users run it, beyond one box a frame: all boxes, presence and tracks, tag given."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from colocam.boxes.extract import scale_boxes
from colocam.data.frame_cache import clip_frames, resize_square
from colocam.data.truth import Truth
from colocam.evaluation.cases import case_meta, write_cases
from colocam.evaluation.metrics.dense_scores import RIGHT, best_iou
from colocam.evaluation.metrics.instance_scores import SEVERAL, matches
from colocam.evaluation.metrics.object_scores import (
    ObjectScores,
    PresenceScores,
    detection_scores,
    presence_scores,
    track_scores,
)
from colocam.inference.localizer import Localizer
from colocam.types import Box, Clip, Float64Array, Image, Localization
from colocam.utils.progress import progress

WORST = 3
"""Number of shots of which the report shows the worst frames, for several objects and for presence."""


class OpenLocalizer(Protocol):
    """Opens the model for a tag, for one box a frame or for every object."""

    def __call__(self, tag: str, *, instances: bool) -> Localizer:
        """The localizer; with ``instances`` it gives every object."""


class Example(NamedTuple):
    """A frame for the report: what was found in it, how wrong that is, and what the report says about it."""

    clip: Clip
    image: Image
    found: list[Localization]
    true: list[Box]
    wrong: float
    verdict: str


def evaluate_objects(localizer: OpenLocalizer, clips: Sequence[Clip], truth: Truth, path: Path) -> ObjectScores | None:
    """Scores of all boxes, presence and tracks, where the truth has what they need; None where it has nothing.

    Shots are localised once with one box a frame, if a labelled frame is empty, and once with ``instances``, if a frame
    has several true boxes or the objects have names. Only labelled frames count.

    Args:
        localizer: opens the model for a tag, with or without ``instances``.
        clips: the shots.
        truth: their boxes.
        path: the .npz file of the worst frames for the report; removed where there is none.
    """
    frames = [boxes for clip in clips for boxes in truth.frames.get(clip.name, {}).values()]
    empty, named = not all(frames), any(clip.name in truth.ids for clip in clips)
    several = named or any(len(boxes) >= SEVERAL for boxes in frames)
    examples: list[Example] = []
    scores = ObjectScores()
    with progress("objects and presence", len(clips) * (empty + several), unit="shots") as advance:
        if empty and any(frames):
            presence, worst = _presence(localizer, clips, truth, advance)
            scores, examples = ObjectScores(presence=presence), worst
        if several:
            found, worst = _several(localizer, clips, truth, advance)
            scores = ObjectScores(found.every_frame, found.several, scores.presence, found.tracks)
            examples = worst + examples
    _save_worst(path, examples)
    return None if scores == ObjectScores() else scores


def _presence(
    localizer: OpenLocalizer, clips: Sequence[Clip], truth: Truth, advance: Callable[..., object]
) -> tuple[PresenceScores | None, list[Example]]:
    """Scores of presence; of some shots the empty frame of highest presence and the other one of lowest presence."""
    rows: list[tuple[float, bool, bool, bool]] = []
    examples: list[Example] = []
    for clip in clips:
        of_clip: dict[bool, Example] = {}
        for image, found, true in _labelled_frames(localizer(clip.tag, instances=False), clip, truth):
            one = found[0]
            if one.presence is None:  # the model has no calibration
                return None, []
            right = bool(true) and best_iou(one.box, true) >= RIGHT
            rows.append((one.presence, bool(true), right, one.box is not None))
            wrong = 1 - one.presence if true else one.presence
            if bool(true) not in of_clip or wrong > of_clip[bool(true)].wrong:
                verdict = f"presence {one.presence:.2f}, {'with' if true else 'without'} the object"
                of_clip[bool(true)] = Example(clip, image, found, true, wrong, verdict)
        examples += of_clip.values()
        advance(note=clip.name)
    if not rows:
        return None, []
    presence, *others = (np.array(column) for column in zip(*rows, strict=True))
    false = [example for example in examples if not example.true]
    missed = [example for example in examples if example.true]
    return presence_scores(presence, *others), _worst(false) + _worst(missed)


def _several(
    localizer: OpenLocalizer, clips: Sequence[Clip], truth: Truth, advance: Callable[..., object]
) -> tuple[ObjectScores, list[Example]]:
    """Scores of all boxes and of tracks; of some shots the frame with the most missed and false boxes."""
    predicted: list[Float64Array] = []
    scores: list[Float64Array] = []
    boxes: list[Float64Array] = []
    shots = []
    examples: list[Example] = []
    for clip in clips:
        worst: Example | None = None
        ids, tracks = truth.ids.get(clip.name), {}
        for image, every, true in _labelled_frames(localizer(clip.tag, instances=True), clip, truth):
            found = [one for one in every if one.box is not None]
            predicted.append(_corners([one.box for one in found if one.box]))
            scores.append(np.array([one.score for one in found], np.float64))
            boxes.append(_corners(true))
            tracks[every[0].frame] = [(one.track, one.box) for one in found if one.track is not None and one.box]
            hits = int(matches(predicted[-1:], boxes[-1:])[1, 0])
            wrong = len(found) + len(true) - 2 * hits
            if worst is None or wrong > worst.wrong:
                verdict = f"{hits} of {len(true)} found, {len(found) - hits} false"
                worst = Example(clip, image, found or every, true, wrong, verdict)
        if ids is not None:
            named = {
                frame: list(zip(ids[frame], truth.boxes(clip.name, frame), strict=True))
                for frame in ids
                if frame in tracks
            }
            shots.append((named, tracks))
        examples += [worst] if worst is not None and worst.wrong else []
        advance(note=clip.name)
    followed = any(any(found.values()) for _, found in shots)  # without smoothing there are no tracks
    result = ObjectScores(
        every_frame=detection_scores(predicted, scores, boxes),
        several=detection_scores(predicted, scores, boxes, several=True),
        tracks=track_scores(shots) if followed else None,
    )
    return result, _worst(examples)


def _labelled_frames(
    localizer: Localizer, clip: Clip, truth: Truth
) -> Iterator[tuple[Image, list[Localization], list[Box]]]:
    """Each labelled frame of a shot with everything that was found in it, and its true boxes."""
    labelled = truth.frames.get(clip.name, {})
    with closing(localizer.stream(clip_frames(clip))) as stream:
        for index, group in groupby(stream, key=lambda pair: pair[1].frame):
            if index in labelled:
                pairs = list(group)
                yield pairs[0][0].image, [found for _, found in pairs], labelled[index]


def _worst(examples: Sequence[Example]) -> list[Example]:
    return sorted(examples, key=lambda example: -example.wrong)[:WORST]


def _corners(boxes: Sequence[Sequence[float]]) -> Float64Array:
    return np.array(boxes, np.float64).reshape(-1, 4)


def _save_worst(path: Path, examples: Sequence[Example]) -> None:
    """Write frames, maps and boxes, all resized to the square of the model's maps; without an example, no file."""
    if not examples:
        path.unlink(missing_ok=True)
        return
    side = examples[0].found[0].heatmap.shape[0]
    most = max(len(one.found) for one in examples)
    boxes, meta, truth = np.full((len(examples), most, 4), np.nan), [], []
    for row, one in zip(boxes, examples, strict=True):
        size = one.image.shape[1::-1]
        given = _corners([found.box for found in one.found if found.box])
        row[: len(given)] = scale_boxes(given, size, (side, side))
        truth.append(scale_boxes(_corners(one.true), size, (side, side)))
        first = one.found[0]
        group = "presence" if one.verdict.startswith("presence") else "several"
        described = case_meta(one.clip, first.frame, first.tag, first.probability, group)
        meta.append({**described, "verdict": one.verdict, "right": group == "presence" and one.wrong < 0.5})
    heatmaps = np.stack([one.found[0].heatmap for one in examples])
    levels = (255 * np.clip(np.nan_to_num(heatmaps), 0, 1)).astype(np.uint8)
    images = np.stack([resize_square(one.image, side) for one in examples])
    write_cases(path, images, truth, meta, {"with the tag": (levels, boxes, np.zeros(len(examples)))})

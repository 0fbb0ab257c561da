"""Evaluate what a run finds as users run it, beyond one box a frame: all boxes, presence and tracks, tag given."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from colocam.data.frame_cache import clip_frames
from colocam.data.truth import Truth
from colocam.evaluation.cases import Example, save_examples, worst
from colocam.evaluation.metrics.dense_scores import best_iou
from colocam.evaluation.metrics.hits import RIGHT
from colocam.evaluation.metrics.object_scores import (
    SEVERAL,
    ObjectScores,
    PresenceScores,
    detection_scores,
    matches,
    presence_scores,
    track_scores,
)
from colocam.inference.localizer import Localizer
from colocam.types import Box, Clip, Float64Array, Image, Localization
from colocam.utils.progress import progress

WAY = "with the tag"
"""How shots are localized, as the report says it."""


def evaluate_objects(localizer: Localizer, clips: Sequence[Clip], truth: Truth, path: Path) -> ObjectScores | None:
    """Scores of all boxes, presence and tracks, where the truth has what they need; None where it has nothing.

    Shots are localized once with one box a frame, if a labeled frame is empty, and once with ``instances``, if a frame
    has several true boxes or the objects have names. Only labeled frames count.

    Args:
        localizer: the model with its options; tag and ``instances`` are set here.
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
            presence, examples = _presence(localizer, clips, truth, advance)
            scores = ObjectScores(presence=presence)
        if several:
            found, most_wrong = _several(localizer, clips, truth, advance)
            scores = replace(found, presence=scores.presence)
            examples = most_wrong + examples
    save_examples(path, examples)
    return None if scores == ObjectScores() else scores


def _presence(
    localizer: Localizer, clips: Sequence[Clip], truth: Truth, advance: Callable[..., object]
) -> tuple[PresenceScores | None, list[Example]]:
    """Scores of presence; of some shots the empty frame of highest presence and the other one of lowest presence."""
    rows: list[tuple[float, bool, bool, bool]] = []
    examples: list[Example] = []
    for clip in clips:
        of_clip: dict[bool, Example] = {}
        for image, found, true in _labeled_frames(localizer.with_options(tag=clip.tag, instances=False), clip, truth):
            first = found[0]
            if first.presence is None:  # the model has no calibration
                return None, []
            rows.append((first.presence, bool(true), best_iou(first.box, true) >= RIGHT, first.box is not None))
            wrong = 1 - first.presence if true else first.presence
            if bool(true) not in of_clip or wrong > of_clip[bool(true)].wrong:
                verdict = f"presence {first.presence:.2f}, {'with' if true else 'without'} the object"
                fields = {"verdict": verdict, "right": wrong < 0.5}
                of_clip[bool(true)] = Example(clip, image, true, {WAY: found}, wrong, "presence", fields)
        examples += of_clip.values()
        advance(note=clip.name)
    if not rows:
        return None, []
    presence, *others = (np.array(column) for column in zip(*rows, strict=True))
    false = [example for example in examples if not example.true]
    missed = [example for example in examples if example.true]
    return presence_scores(presence, *others), worst(false) + worst(missed)


def _several(
    localizer: Localizer, clips: Sequence[Clip], truth: Truth, advance: Callable[..., object]
) -> tuple[ObjectScores, list[Example]]:
    """Scores of all boxes and of tracks; of some shots the frame with the most missed and false boxes."""
    predicted: list[Float64Array] = []
    scores: list[Float64Array] = []
    boxes: list[Float64Array] = []
    classes: list[str] = []
    shots = []
    examples: list[Example] = []
    for clip in clips:
        example: Example | None = None
        ids, tracks = truth.ids.get(clip.name), {}
        for image, every, true in _labeled_frames(localizer.with_options(tag=clip.tag, instances=True), clip, truth):
            with_box = [one for one in every if one.box is not None]
            predicted.append(_corners([one.box for one in with_box if one.box]))
            scores.append(np.array([one.score for one in with_box], np.float64))
            boxes.append(_corners(true))
            classes.append(clip.tag)
            tracks[every[0].frame] = [(one.track, one.box) for one in with_box if one.track is not None and one.box]
            hits = int(matches(predicted[-1:], boxes[-1:])[1, 0])
            wrong = len(with_box) + len(true) - 2 * hits
            if example is None or wrong > example.wrong:
                fields = {"verdict": f"{hits} of {len(true)} found, {len(with_box) - hits} false", "right": False}
                example = Example(clip, image, true, {WAY: with_box or every}, wrong, "several", fields)
        if ids is not None:
            named = {
                frame: list(zip(ids[frame], truth.boxes(clip.name, frame), strict=True))
                for frame in ids
                if frame in tracks
            }
            shots.append((named, tracks))
        examples += [example] if example is not None and example.wrong else []
        advance(note=clip.name)
    followed = any(any(tracked.values()) for _, tracked in shots)  # without smoothing there are no tracks
    result = ObjectScores(
        every_frame=detection_scores(predicted, scores, boxes, classes=classes),
        several=detection_scores(predicted, scores, boxes, several=True, classes=classes),
        tracks=track_scores(shots) if followed else None,
    )
    return result, worst(examples)


def _labeled_frames(
    localizer: Localizer, clip: Clip, truth: Truth
) -> Iterator[tuple[Image, list[Localization], list[Box]]]:
    """Each labeled frame of a shot with everything that was found in it, and its true boxes."""
    labeled = truth.frames.get(clip.name, {})
    with closing(localizer.stream(clip_frames(clip))) as stream:
        for index, group in groupby(stream, key=lambda pair: pair[1].frame):
            if index in labeled:
                pairs = list(group)
                yield pairs[0][0].image, [found for _, found in pairs], labeled[index]


def _corners(boxes: Sequence[Sequence[float]]) -> Float64Array:
    return np.array(boxes, np.float64).reshape(-1, 4)

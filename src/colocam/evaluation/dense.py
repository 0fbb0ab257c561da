"""Evaluate a run as users run it: from the files of whole shots to smoothed boxes, with and without the tag."""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import closing
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from colocam.config.options import DEFAULT, Options
from colocam.data.catalogue import read_manifest
from colocam.data.frame_cache import clip_frames
from colocam.data.truth import Truth, index_of_table, read_truth
from colocam.errors import ColocamError
from colocam.evaluation.cases import Example, save_examples, worst
from colocam.evaluation.metrics.dense_scores import (
    ShotMeasurements,
    best_iou,
    mean_or_none,
    mean_scores,
    neighbor_changes,
    pool,
    score_shot,
)
from colocam.evaluation.objects import WAY, evaluate_objects
from colocam.evaluation.result import OBJECTS, DenseEvaluation, DenseRow, dense_name, say_learned_from
from colocam.inference.localizer import Localizer
from colocam.types import Box, Clip, Image, Localization, Split
from colocam.utils.files import try_writing, write_json
from colocam.utils.progress import progress, say
from colocam.utils.tables import read_rows

WARM_UP = 8
"""Frames that are localized before the time is measured: compiling and the first allocations are not counted."""


class Seen(NamedTuple):
    """A frame with its localization and its IoU with the best true box."""

    image: Image
    found: Localization
    overlap: float


class Shot(NamedTuple):
    """One shot as it was measured, and its worst frame; None where none can be shown."""

    clip: Clip
    true: dict[int, list[Box]]
    without_tag: ShotMeasurements
    with_tag: ShotMeasurements
    example: Example | None


def evaluate_dense(
    run: str | Path,
    manifest: str | Path,
    *,
    split: Split | None = None,
    shots: Sequence[str] | None = None,
    options: Options = DEFAULT,
    out: str | Path | None = None,
) -> DenseEvaluation:
    """Localize in every frame of shots with true boxes, as ``colocam localize`` does, and compare with these boxes.

    Each shot is processed without its tag and with it; where the truth has empty frames, several boxes a frame or names
    of objects, :func:`colocam.evaluation.objects.evaluate_objects` measures them too. Shots whose tag the model does
    not know are left out. Writes ``dense.json``, ``dense.npz`` and ``dense-objects.npz`` (frames for the report) into
    ``out``; with ``refine`` their names begin with ``dense-refined``, and with ``prior`` they have ``-prior``.

    Args:
        run: run folder, or an ONNX file.
        manifest: a table of frames with one row per box, as :func:`colocam.data.truth.index_of_table` reads it; or a
            folder with ``manifest.csv`` and ``truth.csv``, as ``colocam index`` writes it.
        split: which shots; None for all shots with true boxes but those of the split train.
        shots: names of the shots to use; None for all.
        options: how to run the model; neither tag nor instances.
        out: folder for the results; None: the run folder, for ``NAME.onnx`` the folder ``NAME-evaluation`` here.
    """
    run = Path(run)
    if options.tag is not None or options.instances:
        raise ColocamError(
            "evaluate_dense takes neither tag nor instances: it uses the true tags, and one box per frame"
        )
    folder = Path(f"{run.stem}-evaluation") if run.is_file() else run
    if out is not None:
        folder = Path(out)
    try_writing(folder)
    localizer = Localizer.open(run, options)
    card, segmenter = localizer.card, localizer.segmenter
    say_learned_from(card)
    clips, truth = read_shots(Path(manifest), split)
    chosen = clips if shots is None else [clip for clip in clips if clip.name in shots]
    known = [clip for clip in chosen if clip.tag in card.tags]
    unknown = {
        tag: tuple(clip.name for clip in chosen if clip.tag == tag)
        for tag in sorted({clip.tag for clip in chosen} - {*card.tags})
    }
    if unknown:
        names = "; ".join(f"{tag}: {', '.join(left_out)}" for tag, left_out in unknown.items())
        say(f"note: {len(chosen) - len(known)} of {len(chosen)} shots have a tag that the model does not know: {names}")
    if not known:
        raise ColocamError(
            f"{manifest}: no shot with true boxes has a tag of the model: it knows {', '.join(card.tags)}"
        )
    _warm_up(localizer, known[0])
    measured = []
    with progress("dense shots", len(known), unit="shots") as advance:
        for clip in known:
            measured.append(_measure(localizer, localizer.with_options(tag=clip.tag), clip, truth))
            advance(note=clip.name)
    name = dense_name(refined=segmenter is not None, prior=localizer.prior is not None)
    objects = evaluate_objects(localizer, known, truth, folder / f"{name}-{OBJECTS}.npz")
    rows = tuple(_row(shot.clip.name, [shot], shot.clip.tag) for shot in measured)
    result = DenseEvaluation(
        manifest=str(manifest),
        smooth=options.smooth,
        shots=rows,
        over_shots=DenseRow(
            name="mean of shots",
            frames=sum(row.frames for row in rows),
            boxed_frames=sum(row.boxed_frames for row in rows),
            without_tag=mean_scores([row.without_tag for row in rows]),
            with_tag=mean_scores([row.with_tag for row in rows]),
            true_jitter=mean_or_none([row.true_jitter for row in rows]),
        ),
        over_frames=_row("all frames", measured),
        unknown=unknown,
        refined=None if segmenter is None else segmenter.name,
        prior=None if localizer.prior is None else localizer.prior.name,
        objects=objects,
    )
    write_json(folder / f"{name}.json", result.to_json())
    save_examples(folder / f"{name}.npz", worst([shot.example for shot in measured if shot.example is not None]))
    return result


def read_shots(manifest: Path, split: Split | None = None) -> tuple[list[Clip], Truth]:
    """Shots with at least one true box, and the true boxes; see :func:`evaluate_dense`."""
    table = manifest / "manifest.csv" if manifest.is_dir() else manifest
    if {"frame", "x1"} <= read_rows(table)[0].keys():
        index = index_of_table(table)
        clips = list(index.clips)
        truth = index.truth
        has_split = True
    else:
        boxes = table.with_name("truth.csv")
        if not boxes.is_file():
            raise ColocamError(f"{table} has no true boxes: give a table of frames with boxes, or add {boxes}")
        (clips, has_split), truth = read_manifest(table), read_truth(boxes)
    splits = {"val", "test"} if has_split else {"train"}
    if split:
        splits = {split}
    in_splits = [clip for clip in clips if clip.split in splits]
    boxed = [clip for clip in in_splits if any(truth.frames.get(clip.name, {}).values())]
    if not boxed:
        raise ColocamError(
            f"{table}: no shot of {' or '.join(sorted(splits))} has a true box: check the clip names and the split"
        )
    return boxed, truth


def _measure(free: Localizer, tagged: Localizer, clip: Clip, truth: Truth) -> Shot:
    true = {frame: boxes for frame, boxes in sorted(truth.frames[clip.name].items()) if boxes}
    without_tag, seen = _localize(free, clip, true)
    with_tag, same = _localize(tagged, clip, true, None if seen is None else seen.found.frame)
    example = None
    if seen and same:
        found = {"without the tag": [seen.found], WAY: [same.found]}
        wrong = -float(without_tag.overlaps.mean())
        example = Example(clip, seen.image, true[seen.found.frame], found, wrong, "dense")
    return Shot(clip, true, without_tag, with_tag._replace(class_right=np.zeros(0, bool)), example)


def _localize(
    localizer: Localizer, clip: Clip, true: dict[int, list[Box]], shown: int | None = None
) -> tuple[ShotMeasurements, Seen | None]:
    """What is found in a shot against its true boxes, and the frame ``shown``, or the one with the worst box."""
    tags: list[str] = []
    boxes: dict[int, list[Box]] = {}
    overlaps, right = dict.fromkeys(true, 0.0), dict.fromkeys(true, False)
    seen: Seen | None = None
    began = time.perf_counter()
    with closing(localizer.stream(clip_frames(clip))) as stream:
        for frame, one in stream:
            tags.append(one.tag)
            boxes[one.frame] = [one.box] if one.box else []
            if one.frame not in true:
                continue
            overlap = overlaps[one.frame] = best_iou(one.box, true[one.frame])
            right[one.frame] = one.tag == clip.tag
            if one.frame == shown or (shown is None and (seen is None or overlap < seen.overlap)):
                seen = Seen(frame.image, one, overlap)
    seconds = time.perf_counter() - began
    measured = ShotMeasurements(
        overlaps=np.array([*overlaps.values()]),
        changes=neighbor_changes(boxes),
        class_right=np.array([*right.values()]),
        switches=np.array([a != b for a, b in pairwise(tags)], bool),
        frames=np.array([len(tags)]),
        seconds=np.array([seconds]),
    )
    return measured, seen


def _row(name: str, shots: Sequence[Shot], tag: str | None = None) -> DenseRow:
    """One shot, or the frames of several shots together."""
    free, tagged = pool([shot.without_tag for shot in shots]), pool([shot.with_tag for shot in shots])
    return DenseRow(
        name=name,
        frames=int(free.frames.sum()),
        boxed_frames=len(free.overlaps),
        without_tag=score_shot(free),
        with_tag=score_shot(tagged),
        true_jitter=mean_or_none(np.concatenate([neighbor_changes(shot.true) for shot in shots])),
        tag=tag,
    )


def _warm_up(localizer: Localizer, clip: Clip) -> None:
    with closing(localizer.stream(islice(clip_frames(clip), WARM_UP))) as stream:
        deque(stream, maxlen=0)

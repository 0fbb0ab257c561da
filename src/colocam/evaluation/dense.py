"""Evaluate a run as users run it: from the files of whole shots to smoothed boxes, with and without the tag."""

import time
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import scale_boxes
from colocam.data.catalogue import read_manifest
from colocam.data.frame_cache import clip_frames, resize_square
from colocam.data.index import index_of_table
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError
from colocam.evaluation.cases import write_cases
from colocam.evaluation.metrics.dense_scores import (
    ShotMeasurements,
    best_ious,
    count_switches,
    mean_or_none,
    mean_scores,
    neighbour_changes,
    pool,
    score_shot,
)
from colocam.evaluation.result import PLAIN, REFINED, DenseEvaluation, DenseRow
from colocam.inference.localizer import Localizer, open_network
from colocam.inference.options import make_options
from colocam.segment import load_segmenter
from colocam.types import Box, Clip, Float64Array, Image, Localization, Split
from colocam.utils.files import write_json
from colocam.utils.progress import progress, say
from colocam.utils.tables import read_rows

WARM_UP = 8
"""Frames that are localised before the time is measured: compiling and the first allocations are not counted."""
WORST = 3
"""Number of shots of which the report shows a frame."""


class Example(NamedTuple):
    """A frame with its localization and its IoU with the best true box."""

    image: Image
    found: Localization
    overlap: float


class DenseCase(NamedTuple):
    """One frame of a shot, with its true boxes and what was found without and with the tag."""

    clip: Clip
    true: list[Box]
    without_tag: Example
    with_tag: Example


def save_dense_cases(path: Path, cases: Sequence[DenseCase]) -> None:
    """Write frames, maps and boxes, all resized to the square of the model's maps; without a case, no file."""
    if not cases:
        path.unlink(missing_ok=True)
        return
    side = cases[0].without_tag.found.heatmap.shape[0]
    first = [case.without_tag for case in cases]
    meta = [
        {
            "clip": case.clip.name,
            "frame": case.without_tag.found.frame,
            "tag": case.clip.tag,
            "predicted": case.without_tag.found.tag,
            "probability": case.without_tag.found.probability,
            "group": "dense",
        }
        for case in cases
    ]
    methods = {}
    for way, examples in {"without the tag": first, "with the tag": [case.with_tag for case in cases]}.items():
        heatmaps = np.stack([one.found.heatmap for one in examples])
        levels = (255 * np.clip(np.nan_to_num(heatmaps), 0, 1)).astype(np.uint8)
        boxes = np.concatenate([_scaled([one.found.box or (np.nan,) * 4], one.image, side) for one in examples])
        methods[way] = levels, boxes, np.array([one.overlap for one in examples])
    images = np.stack([resize_square(one.image, side) for one in first])
    write_cases(path, images, [_scaled(case.true, case.without_tag.image, side) for case in cases], meta, methods)


def _scaled(boxes: Sequence[Sequence[float]], image: Image, side: int) -> npt.NDArray[np.float32]:
    """(k, 4) boxes of an image in pixels of a square of ``side`` pixels."""
    height, width = image.shape[:2]
    return scale_boxes(np.array(boxes, np.float64), (width, height), (side, side))


def evaluate_dense(
    run: str | Path,
    manifest: str | Path,
    *,
    split: Split | None = None,
    shots: Sequence[str] | None = None,
    device: str | None = None,
    refine: str | Path | None = None,
    **options: Any,  # noqa: ANN401 - the fields of Options
) -> DenseEvaluation:
    """Localise in every frame of shots with true boxes, as ``colocam localize`` does, and compare with these boxes.

    Each shot is processed without its tag and with it. Shots whose tag the model does not know are left out. Writes
    ``dense.json`` and ``dense.npz`` (frames for the report) into the run folder; with ``refine``
    ``dense-refined.json`` and ``dense-refined.npz``.

    Args:
        run: run folder.
        manifest: a table of frames with one row per box, as :func:`colocam.data.index.index_of_table` reads it; or a
            folder with ``manifest.csv`` and ``truth.csv``, as ``colocam index`` writes it.
        split: which shots; None for all shots with true boxes but those of the split train.
        shots: names of the shots to use; None for all.
        device: ``cpu`` or ``cuda``; None for the GPU, if there is one.
        refine: a promptable segmenter that gives the boxes, see
            :func:`colocam.segment.load_segmenter`; None: boxes learnt from tags alone.
        options: fields of :class:`colocam.inference.options.Options` but tag and instances, e.g. ``smooth="online"``.
    """
    run = Path(run)
    asked = make_options(**options)
    if asked.tag is not None or asked.instances:
        raise ColocamError("evaluate_dense takes neither tag nor instances: it gives the tags itself, one box a frame")
    if run.is_file():
        raise ColocamError(f"{run} is a file: give a run folder, because the result is written into it")
    network, card = open_network(run, device)
    segmenter = None if refine is None else load_segmenter(refine, device)

    def localizer(tag: str | None = None) -> Localizer:
        return Localizer(network, card, segmenter=segmenter, **{**options, "tag": tag})

    clips, truth = read_shots(Path(manifest), split)
    chosen = clips if shots is None else [clip for clip in clips if clip.name in shots]
    known = [clip for clip in chosen if clip.tag in card.tags]
    unknown = {
        tag: tuple(clip.name for clip in chosen if clip.tag == tag)
        for tag in sorted({clip.tag for clip in chosen} - {*card.tags})
    }
    if unknown:
        names = "; ".join(f"{tag}: {', '.join(left_out)}" for tag, left_out in unknown.items())
        say(f"note: {len(chosen) - len(known)} of {len(chosen)} shots have a tag unknown to the model: {names}")
    if not known:
        raise ColocamError(
            f"{manifest}: no shot with true boxes has a tag of the model: it knows {', '.join(card.tags)}"
        )
    _warm_up(localizer(), known[0])
    measured = []
    with progress("dense shots", len(known), unit="shots") as advance:
        for clip in known:
            measured.append(_measure(localizer(), localizer(clip.tag), clip, truth))
            advance(note=clip.name)
    rows = tuple(_row(shot.clip.name, [shot], shot.clip.tag) for shot in measured)
    result = DenseEvaluation(
        manifest=str(manifest),
        smooth=asked.smooth,
        shots=rows,
        over_shots=_over_shots(rows),
        over_frames=_row("all frames", measured),
        unknown=unknown,
        refined=None if segmenter is None else segmenter.name,
    )
    name = PLAIN if segmenter is None else REFINED
    write_json(run / f"{name}.json", result.to_json())
    worst_first = sorted(measured, key=lambda shot: float(shot.without_tag.overlaps.mean()))
    save_dense_cases(run / f"{name}.npz", [shot.worst for shot in worst_first if shot.worst is not None][:WORST])
    return result


def read_shots(manifest: Path, split: Split | None = None) -> tuple[list[Clip], Truth]:
    """Shots with at least one true box, and the true boxes; see :func:`evaluate_dense`."""
    table = manifest / "manifest.csv" if manifest.is_dir() else manifest
    if {"frame", "x1"} <= read_rows(table)[0].keys():
        index = index_of_table(table)
        clips, truth, has_split = list(index.clips), index.truth, True
    else:
        boxes = table.with_name("truth.csv")
        if not boxes.is_file():
            raise ColocamError(f"{table} has no true boxes: give a table of frames with boxes, or add {boxes}")
        (clips, has_split), truth = read_manifest(table), read_truth(boxes)
    splits = {split} if split else {"val", "test"} if has_split else {"train"}
    asked = [clip for clip in clips if clip.split in splits]
    boxed = [clip for clip in asked if any(truth.frames.get(clip.name, {}).values())]
    if not boxed:
        raise ColocamError(
            f"{table}: no shot of {' or '.join(sorted(splits))} has a true box: check the clip names and the split"
        )
    return boxed, truth


class _Shot(NamedTuple):
    """The measurements of one shot; ``worst`` is None where no frame of the film has a true box."""

    clip: Clip
    without_tag: ShotMeasurements
    with_tag: ShotMeasurements
    true_changes: Float64Array
    worst: DenseCase | None


def _measure(free: Localizer, tagged: Localizer, clip: Clip, truth: Truth) -> _Shot:
    true = {frame: boxes for frame, boxes in truth.frames[clip.name].items() if boxes}
    found, seconds, worst = _localize(free, clip, true)
    shown = {worst.found.frame: true[worst.found.frame]} if worst else {}
    told, seconds_told, same = _localize(tagged, clip, shown)
    return _Shot(
        clip,
        _compare(found, true, seconds, clip.tag),
        _compare(told, true, seconds_told, None),
        neighbour_changes(true),
        DenseCase(clip, true[worst.found.frame], worst, same) if worst and same else None,
    )


def _localize(
    localizer: Localizer, clip: Clip, shown: dict[int, list[Box]]
) -> tuple[dict[int, tuple[str, Box | None]], float, Example | None]:
    """Class and box of each frame by its index, the seconds that it took, and the worst frame of those in ``shown``."""
    found: dict[int, tuple[str, Box | None]] = {}
    worst: Example | None = None
    began = time.perf_counter()
    with closing(localizer.stream(clip_frames(clip))) as stream:
        for frame, one in stream:
            found[one.frame] = one.tag, one.box
            if one.frame in shown:
                overlap = float(best_ious({0: one.box}, {0: shown[one.frame]})[0])
                if worst is None or overlap < worst.overlap:
                    worst = Example(frame.image, one, overlap)
    return found, time.perf_counter() - began, worst


def _compare(
    found: dict[int, tuple[str, Box | None]], true: dict[int, list[Box]], seconds: float, tag: str | None
) -> ShotMeasurements:
    """Compare with the true boxes and, where the tag was not given, with the true class ``tag``."""
    boxes = {frame: box for frame, (_, box) in found.items()}
    named = [frame in found and found[frame][0] == tag for frame in sorted(true)]
    return ShotMeasurements(
        overlaps=best_ious(boxes, true),
        changes=neighbour_changes({frame: [box] for frame, box in boxes.items() if box}),
        class_right=None if tag is None else np.array(named, bool),
        switches=count_switches([found[frame][0] for frame in sorted(found)]),
        frames=len(found),
        seconds=seconds,
    )


def _row(name: str, shots: Sequence[_Shot], tag: str | None = None) -> DenseRow:
    """One shot, or the frames of several shots together."""
    free, told = (pool([shot.without_tag for shot in shots]), pool([shot.with_tag for shot in shots]))
    changes = np.concatenate([shot.true_changes for shot in shots])
    return DenseRow(
        name=name,
        frames=free.frames,
        boxed_frames=len(free.overlaps),
        without_tag=score_shot(free),
        with_tag=score_shot(told),
        true_jitter=mean_or_none(changes.tolist()),
        tag=tag,
    )


def _over_shots(rows: Sequence[DenseRow]) -> DenseRow:
    """The mean over shots, each with the same weight."""
    return DenseRow(
        name="mean of shots",
        frames=sum(row.frames for row in rows),
        boxed_frames=sum(row.boxed_frames for row in rows),
        without_tag=mean_scores([row.without_tag for row in rows]),
        with_tag=mean_scores([row.with_tag for row in rows]),
        true_jitter=mean_or_none([row.true_jitter for row in rows]),
    )


def _warm_up(localizer: Localizer, clip: Clip) -> None:
    with closing(localizer.stream(islice(clip_frames(clip), WARM_UP))) as stream:
        for _ in stream:
            pass

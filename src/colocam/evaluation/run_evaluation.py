"""Evaluate a run on frames with true boxes: all methods under all protocols, and refined by a segmenter."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.boxes.candidates import CHOOSERS, find_chooser
from colocam.boxes.extract import scale_boxes
from colocam.boxes.quantize import tags_only_threshold
from colocam.cams import find_cam
from colocam.config.options import DEFAULT, Options
from colocam.data.batches import Boxes, Samples, labeled_samples, scaled_boxes, spread_samples
from colocam.data.frame_cache import clip_frames
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError
from colocam.evaluation.cases import case_meta, choose_cases, write_cases
from colocam.evaluation.metrics import CorLoc, Frames, accuracy, box_hits, confusion, corloc, instances_of_maps, top_k
from colocam.evaluation.metrics.hits import PUBLISHED_THRESHOLDS, RIGHT, frame_overlaps
from colocam.evaluation.metrics.object_scores import ObjectScores
from colocam.evaluation.metrics.protocols import chooser_threshold, hits_of_choice
from colocam.evaluation.objects import evaluate_objects
from colocam.evaluation.result import OBJECTS, WITH, EvaluatedData, Evaluation, method_title, say_learned_from
from colocam.inference.localizer import Localizer
from colocam.maps.mapper import Mapper, cam_mapper, decoder_mapper, map_batches
from colocam.maps.prior import open_prior
from colocam.models.model_file import load_model
from colocam.run import Run, open_run
from colocam.segment import load_segmenter
from colocam.segment.refine import refine
from colocam.segment.segmenter import Segmenter
from colocam.temporal.cuts import WINDOW
from colocam.temporal.path import boxes_of_shots
from colocam.types import Clip, Float64Array, Image, Levels, Split
from colocam.utils.files import write_json
from colocam.utils.progress import progress, say


def refined_boxes(segmenter: Segmenter, samples: Samples, maps: Levels) -> Float64Array:
    """Boxes (N, 4) of the masks of N samples in pixels of their maps, as the published rule has them; 0 without a mask.

    The samples of a clip are a few frames of one shot. Frames are read from the clip: the frame cache has smaller ones.

    Args:
        segmenter: gives the masks.
        samples: the frames, clip by clip and in order.
        maps: (N, S, S) their maps in 8 bits.
    """
    boxes = np.zeros((len(samples), 4))
    size = maps.shape[1]
    row = 0
    with progress(f"masks of {segmenter.name}", len(samples), unit="frames") as advance:
        for clip, pairs in groupby(samples.where(), key=lambda pair: pair[0].clip):
            images = original_images(clip, [index for _, index in pairs])
            before: Float64Array | None = None
            for start in range(0, len(images), WINDOW):
                window = images[start : start + WINDOW]
                found_here = refine(segmenter, window, maps[row : row + len(window)], before)
                for image, found in zip(window, found_here, strict=True):
                    if found is not None:
                        before = found.box
                        boxes[row] = scale_boxes(found.box, image.shape[1::-1], (size, size))
                    row += 1
                advance(len(window))
    return boxes.clip(0, size - 1)


def original_images(clip: Clip, indices: Sequence[int]) -> list[Image]:
    """The frames of a clip with these indices, ascending, at their own size."""
    if clip.frames:
        frames = clip_frames(replace(clip, frames=tuple(clip.frames[index] for index in indices)))
        images = [frame.image for frame in frames]
    else:
        wanted = set(indices)
        images = [frame.image for frame in clip_frames(clip) if frame.index in wanted]
    if len(images) != len(indices):
        raise ColocamError(f"{clip.path}: {len(indices) - len(images)} frames of {clip.name} can no longer be read")
    return images


@dataclass(frozen=True, slots=True)
class Labeled:
    """Labeled frames with their true boxes (k, 4) in map pixels; k = 0 where the object is absent."""

    samples: Samples
    boxes: list[Boxes]
    tags: tuple[str, ...]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """(N,) whether the object is in the frame."""
        return np.array([len(boxes) > 0 for boxes in self.boxes], dtype=bool)

    @property
    def frames(self) -> Frames:
        """Tags and videos of the frames with the object."""
        videos = np.array([clip.clip.video for clip, _ in self.samples.where()])
        return Frames(self.tags, self.samples.classes.numpy()[self.present], videos[self.present])

    def hits(self, maps: Levels, thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """(frames with the object, T) whether the box of each map is right at each threshold."""
        return box_hits(maps[self.present], [boxes for boxes in self.boxes if len(boxes)], thresholds)

    @property
    def clips(self) -> npt.NDArray[np.int64]:
        """(N,) index of the clip of each frame."""
        found: npt.NDArray[np.int64] = self.samples.indices.clips.numpy()
        return found


def evaluate(
    run: str | Path,
    boxes: str | Path,
    *,
    split: Split = "test",
    cams: Sequence[str] | None = None,
    options: Options = DEFAULT,
) -> Evaluation:
    """Evaluate the CAMs of the classifier and every trained method of a run on frames with true boxes.

    Where the truth has empty frames, several boxes a frame or names of objects, whole clips are localized too, see
    :func:`colocam.evaluation.objects.evaluate_objects`. Writes ``evaluation.json``, ``cases.npz`` and ``objects.npz``
    (examples for the report) into the run folder.

    Args:
        run: run folder.
        boxes: table of true boxes: clip, frame, present, x1, y1, x2, y2.
        split: which videos to evaluate on.
        cams: names in :data:`colocam.cams.CAMS`; None for the run's source of seeds.
        options: of them ``device``; ``color_mean``, which without a value is that of the model card, and none for CAMs;
            ``focus``; ``chooser``, for the trained methods; and ``prior`` and ``refine``, which also weigh and refine
            the maps of the trained methods, as results of their own.
    """
    opened = open_run(run, options.device)
    prior = None if options.prior is None else open_prior(options.prior, opened.device)
    segmenter = None if options.refine is None else load_segmenter(options.refine, options.device)
    color_mean, chooser = options.color_mean, options.chooser
    wanted = list(cams) if cams is not None else [opened.config.cam]
    for name in wanted:
        find_cam(name)
    if chooser is not None:
        find_chooser(chooser)
    evaluation_set = open_evaluation_set(opened, Path(boxes), split)
    evaluated, found = evaluation_set.evaluated, dict[str, MethodResult]()
    for name, mapper in methods_of_run(opened, wanted, focus=options.focus).items():
        used = mapper if color_mean is None else mapper._replace(color_mean=color_mean)
        used = used if chooser is None or name in wanted else used._replace(chooser=chooser)
        if name not in wanted:
            say(f"{method_title(name)}: maps with color mean {used.color_mean}")
        if prior is not None and name not in wanted:
            found[f"{name}{WITH}{prior.name}"] = measure(evaluation_set, used._replace(prior=prior))
        found[name] = measure(evaluation_set, used)
    maps = {name: method.maps for name, method in found.items()}
    localizing = Options(str(opened.device), color_mean=color_mean, focus=options.focus, chooser=chooser)
    classes = [tag for (tag, _), there in zip(evaluation_set.predicted, evaluated.present, strict=True) if there]
    refined = None
    if segmenter is not None:
        trained = [name for method in opened.config.methods for name in maps if name.split(WITH)[0] == method]
        each = {name: measure_refined(evaluation_set, segmenter, maps[name]) for name in trained}
        refined = {segmenter.name: each}
    result = Evaluation(
        methods={name: method.corloc for name, method in found.items()},
        classification=accuracy(evaluation_set.top1, evaluated.frames),
        data=_describe(evaluated, split),
        instances=instances_of_maps(maps, evaluated.boxes, {name: one.threshold for name, one in found.items()}),
        refined=refined,
        objects=_objects(opened, evaluated, read_truth(Path(boxes)), localizing),
        confusion=confusion(evaluated.frames, classes),
    )
    write_json(opened.folder / "evaluation.json", result.to_json())
    if found:
        save_cases(opened.folder / "cases.npz", evaluation_set, found)
    return result


def _objects(run: Run, evaluated: Labeled, truth: Truth, options: Options) -> ObjectScores | None:
    """All boxes, presence and tracks of the evaluated clips, localized from their files as users do it."""
    if not run.config.methods:
        return None
    clips = list({clip.clip.name: clip.clip for clip, _ in evaluated.samples.where()}.values())
    gone = [clip for clip in clips if not (clip.frames or (clip.path,))[0].exists()]
    if gone:  # the frame cache has single frames, not the video
        say(f"note: presence, tracks and boxes of all objects are not measured: {gone[0].path} is gone")
        return None
    localizer = Localizer.open(run.folder, options)
    return evaluate_objects(localizer, clips, truth, run.folder / f"{OBJECTS}.npz")


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """The frames that the methods of a run are evaluated on.

    Attributes:
        run: the run whose classifier classified the frames.
        evaluated: the frames that count.
        validation: frames with boxes that choose the threshold ``validation``; there may be none.
        unlabeled: validation frames that choose the threshold ``tags-only``, without their boxes.
        top1: (frames with the object,) whether the class is right.
        top5: (frames with the object,) whether the class is among the five most probable.
        predicted: most probable tag of each evaluated frame and its probability.
    """

    run: Run
    evaluated: Labeled
    validation: Labeled
    unlabeled: Samples
    top1: npt.NDArray[np.bool_]
    top5: npt.NDArray[np.bool_]
    predicted: list[tuple[str, float]]


def open_evaluation_set(run: Run, boxes: Path, split: Split = "test") -> EvaluationSet:
    """The frames of ``split`` that have a label in the table ``boxes``, classified."""
    truth = read_truth(boxes)
    run.require(split)
    evaluated = labeled(run, truth, split)
    if not evaluated.present.any():
        raise ColocamError(f"{boxes} has no box for a '{split}' frame of this run: check the clip names and the split")
    per_clip = run.config.frames.per_val_clip
    validation = labeled(run, truth, "val", per_clip)
    unlabeled = spread_samples(run.clips("val"), run.catalogue.tags, per_clip)
    logits, predicted = _classify(run, evaluated.samples)
    top1, top5 = (top_k(logits[evaluated.present], evaluated.frames.tags, k) for k in (1, 5))
    return EvaluationSet(run, evaluated, validation, unlabeled, top1, top5, predicted)


class MethodResult(NamedTuple):
    """One method on the evaluated frames: 8-bit maps (N, M, M), τ of ``tags-only``, its chooser, CorLoc by protocol."""

    maps: Levels
    threshold: float
    chooser: str
    corloc: dict[str, CorLoc]

    def boxes(self, evaluated: Labeled) -> tuple[Float64Array, Float64Array]:
        """(N, 4) boxes in map pixels, NaN where there is none, and (N,) their IoU, NaN without the object."""
        boxes, has_box = boxes_of_shots(self.maps, self.threshold, self.chooser, evaluated.clips)
        return np.where(has_box[:, None], boxes, np.nan), frame_overlaps(boxes, has_box, evaluated.boxes)


def measure(evaluation_set: EvaluationSet, mapper: Mapper) -> MethodResult:
    """Evaluate one method under each protocol."""
    run, evaluated, validation = evaluation_set.run, evaluation_set.evaluated, evaluation_set.validation
    maps = maps_of(run, mapper, evaluated.samples)
    threshold = mapper.threshold
    if threshold is None:
        threshold = tags_only_threshold(maps_of(run, mapper, evaluation_set.unlabeled))
    thresholds = mapper.class_thresholds or (threshold,)
    by_shot = CHOOSERS[mapper.chooser].by_shot
    grid = np.append(PUBLISHED_THRESHOLDS, thresholds)
    chosen_on: tuple[npt.NDArray[np.bool_], Frames] | float | None = None
    if validation.present.any():
        validation_maps = maps_of(run, mapper, validation.samples)
        if by_shot:
            chosen_on = chooser_threshold(
                validation_maps, validation.boxes, validation.frames, mapper.chooser, validation.clips
            )[0]
            grid = np.append(grid, chosen_on)
        else:
            chosen_on = validation.hits(validation_maps, grid), validation.frames

    def hits_at(threshold: float) -> npt.NDArray[np.bool_]:
        return hits_of_choice(maps, evaluated.boxes, threshold, mapper.chooser, evaluated.clips)

    result = corloc(
        evaluated.hits(maps, grid),
        evaluated.frames,
        grid,
        tags_only=thresholds,
        top1=evaluation_set.top1,
        top5=evaluation_set.top5,
        validation=chosen_on,
        chosen=hits_at if by_shot else None,
    )
    return MethodResult(maps, threshold, mapper.chooser, result)


def save_cases(
    path: Path,
    evaluation_set: EvaluationSet,
    found: Mapping[str, MethodResult],
    chosen: Sequence[tuple[int, str]] | None = None,
) -> None:
    """Write frames, maps, boxes and overlaps of the examples for the report.

    Args:
        path: the .npz file.
        evaluation_set: N evaluated frames.
        found: method → its result; the last one decides which frames are chosen.
        chosen: index and group of the frames; None: by ``choose_cases``.
    """
    evaluated = evaluation_set.evaluated
    samples, where = evaluated.samples, evaluated.samples.where()
    boxes = {name: method.boxes(evaluated) for name, method in found.items()}
    last = list(found)[-1]
    cases = choose_cases(boxes[last][1], samples.classes.numpy(), evaluated.clips) if chosen is None else chosen
    at = [frame for frame, _ in cases]
    images, _ = samples.read(at, found[last].maps.shape[1], torch.device("cpu"))
    write_cases(
        path,
        images.round().byte().permute(0, 2, 3, 1).numpy(),
        [evaluated.boxes[i] for i in at],
        [case_meta(where[i][0].clip, where[i][1], *evaluation_set.predicted[i], group) for i, group in cases],
        {name: (found[name].maps[at], corners[at], overlaps[at]) for name, (corners, overlaps) in boxes.items()},
    )


def measure_refined(evaluation_set: EvaluationSet, segmenter: Segmenter, maps: Levels) -> CorLoc:
    """CorLoc of the boxes of a segmenter's masks, for maps (N, S, S); there is no threshold to choose."""
    evaluated = evaluation_set.evaluated
    boxes = refined_boxes(segmenter, evaluated.samples, maps)
    overlaps = frame_overlaps(boxes, (boxes != 0).any(axis=1), evaluated.boxes)
    hits = (overlaps[evaluated.present] >= RIGHT)[:, None]
    top1, top5 = evaluation_set.top1, evaluation_set.top5
    scores = corloc(hits, evaluated.frames, [0.0], tags_only=0.0, top1=top1, top5=top5)
    return replace(scores["tags-only"], threshold=None)


def labeled(run: Run, truth: Truth, split: Split, per_clip: int | None = None) -> Labeled:
    """Labeled frames of a split, at most ``per_clip`` of a clip; of validation clips only those with a box."""
    tags = run.catalogue.tags
    samples = labeled_samples(run.clips(split), tags, truth, per_clip, present=split == "val")
    return Labeled(samples, scaled_boxes(samples, truth, run.config.frames.map_side), tags)


def methods_of_run(run: Run, cams: Sequence[str], *, focus: bool | None = None) -> dict[str, Mapper]:
    """The methods of a run by name: CAMs, the source of the seeds first, then the trained methods."""
    own_first = sorted(cams, key=lambda cam: cam != run.config.cam)
    sources = zip(own_first, run.sources(*own_first), strict=True)
    mappers: dict[str, Mapper] = {cam: cam_mapper(source.maps, run.config.frames.map_side) for cam, source in sources}
    for method in reversed(run.config.methods):
        model = load_model(run.model_folder(method))
        card, settings = model.card, run.config.stage2(method)
        say_learned_from(card)
        # A constant of the preset, or of the decoder that stayed as it was; else these videos choose again.
        is_given = card.threshold_from == "corrections" or settings.threshold is not None
        mappers[method] = decoder_mapper(
            model.net.to(run.device),
            card.color_mean,
            focus=card.focus_power(on=focus),
            chooser=card.chooser,
            threshold=card.threshold if is_given else None,
        )._replace(class_thresholds=card.class_thresholds)
    return mappers


def maps_of(run: Run, mapper: Mapper, samples: Samples) -> Levels:
    """Maps of a method on all samples, in 8 bits."""
    size, side = run.config.frames.crop, run.config.frames.map_side
    parts = [np.zeros((0, side, side), np.uint8)]
    with progress("maps", len(samples), unit="frames") as advance:
        for levels in map_batches(mapper, samples, size, run.device):
            parts.append(levels)
            advance(len(levels))
    return np.concatenate(parts)


@torch.inference_mode()
def _classify(run: Run, samples: Samples) -> tuple[npt.NDArray[np.float32], list[tuple[str, float]]]:
    """Logits (N, C) of the run's model, and its most probable tag of each frame with the probability."""
    tags = run.catalogue.tags
    parts = []
    chosen = []
    classify: Callable[[Tensor], Tensor]
    method = next(iter(run.config.methods), "")
    settings = run.config.stage2(method) if method else None
    if settings is not None and (settings.crop_head or settings.class_in_map):  # not of whole frames
        net = load_model(run.model_folder(method)).net.to(run.device)
        classify = lambda frames: net(frames).class_logits  # noqa: E731
    else:
        classify = run.classifier().logits
    for frames, _ in samples.batches(run.config.frames.crop, run.device):
        logits = classify(frames)
        parts.append(logits.float().cpu().numpy())
        best = logits.softmax(1).max(1)
        chosen += [(tags[c], p) for c, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
    return np.concatenate(parts), chosen


def _describe(evaluated: Labeled, split: Split) -> EvaluatedData:
    where = evaluated.samples.where()
    return EvaluatedData(
        split=split,
        frames=int(evaluated.present.sum()),
        videos=len({clip.clip.video for clip, _ in where}),
        clips=len({clip.clip.name for clip, _ in where}),
        boxes=sum(len(boxes) for boxes in evaluated.boxes),
        classes=len(evaluated.tags),
        empty_frames=int((~evaluated.present).sum()),
    )

"""Evaluate a run on frames with true boxes: all methods side by side, under all protocols."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes.tags_only import tags_only_threshold
from colocam.cams.cam_source import source_name
from colocam.config import ColorMean, Source
from colocam.data.samples import Boxes, Samples, labelled_samples, scaled_boxes, spread_samples
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError
from colocam.evaluation.cases import save_cases
from colocam.maps.mapper import Mapper, cam_mapper, decoder_mapper, map_batches
from colocam.metrics import Frames, accuracy, box_hits, corloc, instances_of_maps
from colocam.metrics.hits import PUBLISHED_THRESHOLDS
from colocam.models.model_file import load_model
from colocam.run import Run, open_run
from colocam.types import Levels, Split
from colocam.utils.files import write_json
from colocam.utils.progress import progress


@dataclass(frozen=True, slots=True)
class Labelled:
    """Frames that someone has looked at, with their true boxes in model pixels; none where the object is absent."""

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


def evaluate(
    run: str | Path,
    boxes: str | Path,
    *,
    split: Split = "test",
    cams: Sequence[str] | None = None,
    color_mean: ColorMean | None = None,
    focus: bool | None = None,
    device: str | None = None,
) -> dict[str, Any]:
    """Measure CAMs of the classifier and every trained method of a run on frames of ``split`` that have true boxes.

    ``cams`` names the methods to measure, those of :func:`colocam.cams.extract` or ``clip-es``; without it, the run's
    own source of seeds. ``color_mean`` completes the maps of all methods so, and ``focus`` draws those of all decoders
    towards the class or not; without them, those of each as it was trained for, and CAMs not at all.

    Writes ``evaluation.json`` and ``cases.npz`` (examples for the report) into the run folder and returns the former:
    ``{method: {protocol: {"average": CorLoc in percent, class: …}}, "classification": …, "data": …}``, and
    ``instances`` where frames have several true boxes (:func:`colocam.metrics.instances_of_maps`).
    """
    opened = open_run(run, device)
    wanted = [source_name(name) for name in (cams if cams is not None else [opened.config.cam])]
    evaluation_set = open_evaluation_set(opened, Path(boxes), split)
    evaluated = evaluation_set.evaluated

    result: dict[str, Any] = {}
    maps, thresholds = {}, {}
    for name, mapper in methods_of_run(opened, wanted, focus=focus).items():
        asked = mapper if color_mean is None else mapper._replace(color_mean=color_mean)
        maps[name], thresholds[name], result[name] = measure(evaluation_set, asked)
    result["classification"] = accuracy(evaluation_set.classified["top1"], evaluated.frames)
    result["data"] = _describe(evaluated, split)
    if (several := instances_of_maps(maps, evaluated.boxes, thresholds)) is not None:
        result["instances"] = several
    write_json(opened.folder / "evaluation.json", result)
    if maps:
        save_cases(
            opened.folder / "cases.npz",
            evaluated.samples,
            evaluated.boxes,
            maps,
            thresholds,
            evaluation_set.predicted,
            evaluated.tags,
        )
    return result


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """What the methods of a run are measured on.

    Attributes:
        run: whose classifier judged the frames.
        evaluated: the frames that are counted.
        validation: frames with boxes that may choose a threshold; there may be none.
        unlabelled: validation frames that choose one without their boxes.
        classified: (frames with the object,) each: is the class among the first (``top1``), the first five?
        predicted: most probable tag of each evaluated frame and its probability.
    """

    run: Run
    evaluated: Labelled
    validation: Labelled
    unlabelled: Samples
    classified: dict[str, npt.NDArray[np.bool_]]
    predicted: list[tuple[str, float]]


def open_evaluation_set(run: Run, boxes: Path, split: Split = "test") -> EvaluationSet:
    """The frames of ``split`` that have a label in the table ``boxes``, and the classifier's answers on them."""
    truth = read_truth(boxes)
    run.require(split)
    evaluated = labelled(run, truth, split)
    if not evaluated.present.any():
        raise ColocamError(f"{boxes} has no box for a '{split}' frame of this run: check the clip names and --split")
    per_clip = run.config.frames.per_val_clip
    validation = labelled(run, truth, "val", per_clip)
    unlabelled = spread_samples(run.clips("val"), run.catalogue.tags, per_clip)
    ranks, predicted = _classify(run, evaluated.samples)
    right = ranks[evaluated.present]
    return EvaluationSet(run, evaluated, validation, unlabelled, {"top1": right < 1, "top5": right < 5}, predicted)


def measure(evaluation_set: EvaluationSet, mapper: Mapper) -> tuple[Levels, float, dict[str, Any]]:
    """Maps of the evaluated frames, the threshold ``tags-only``, and CorLoc under each protocol."""
    run, evaluated, validation = evaluation_set.run, evaluation_set.evaluated, evaluation_set.validation
    maps = maps_of(run, mapper, evaluated.samples)
    threshold = tags_only_threshold(maps_of(run, mapper, evaluation_set.unlabelled))
    grid = np.append(PUBLISHED_THRESHOLDS, threshold)
    chosen_on = None
    if validation.present.any():
        chosen_on = validation.hits(maps_of(run, mapper, validation.samples), grid), validation.frames
    result = corloc(
        evaluated.hits(maps, grid),
        evaluated.frames,
        grid,
        tags_only=threshold,
        classified=evaluation_set.classified,
        validation=chosen_on,
    )
    return maps, threshold, result


def labelled(run: Run, truth: Truth, split: Split, per_clip: int | None = None) -> Labelled:
    """Frames of a split that carry a label, at most ``per_clip`` of a clip; of validation clips those with a box."""
    tags = run.catalogue.tags
    samples = labelled_samples(run.clips(split), tags, truth, per_clip, present=split == "val")
    return Labelled(samples, scaled_boxes(samples, truth, run.config.frames.crop), tags)


def methods_of_run(run: Run, cams: Sequence[Source], *, focus: bool | None = None) -> dict[str, Mapper]:
    """The methods of a run by name: class activation maps, source of seeds first, then what was trained."""
    own_first = sorted(cams, key=lambda cam: cam != run.config.cam)
    sources = zip(own_first, run.sources(*own_first), strict=True)
    mappers: dict[str, Mapper] = {cam: cam_mapper(source.maps, run.config.frames.crop) for cam, source in sources}
    for method in reversed(run.config.methods):
        model = load_model(run.model_folder(method))
        drawn_towards = model.card.focus if focus is None else focus
        mappers[method] = decoder_mapper(model.net.to(run.device), model.card.color_mean, focus=drawn_towards)
    return mappers


def maps_of(run: Run, mapper: Mapper, samples: Samples) -> Levels:
    """Maps of a method on all samples, in 8 bits."""
    size = run.config.frames.crop
    parts = [np.zeros((0, size, size), np.uint8)]
    with progress("maps", len(samples), unit="frames") as advance:
        for levels in map_batches(mapper, samples, size, run.device):
            parts.append(levels)
            advance(len(levels))
    return np.concatenate(parts)


@torch.inference_mode()
def _classify(run: Run, samples: Samples) -> tuple[npt.NDArray[np.int64], list[tuple[str, float]]]:
    """(N,) how many classes the classifier finds more likely than the frame's tag; its choice with its probability."""
    classifier, tags = run.classifier(), run.catalogue.tags
    ranks, chosen = [], []
    for frames, classes in samples.batches(run.config.frames.crop, run.device):
        logits = classifier(frames).logits
        ranks.append((logits > logits.gather(1, classes[:, None])).sum(1).cpu().numpy())
        best = logits.softmax(1).max(1)
        chosen += [(tags[c], p) for c, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
    return np.concatenate(ranks), chosen


def _describe(evaluated: Labelled, split: str) -> dict[str, Any]:
    where = evaluated.samples.where()
    return {
        "split": split,
        "frames": int(evaluated.present.sum()),
        "empty_frames": int((~evaluated.present).sum()),
        "boxes": sum(len(boxes) for boxes in evaluated.boxes),
        "clips": len({clip.clip.name for clip, _ in where}),
        "videos": len({clip.clip.video for clip, _ in where}),
        "classes": len(evaluated.tags),
    }

"""Evaluate a run on frames with true boxes: all methods side by side, under all protocols."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.boxes.quantize import to_8bit
from colocam.cams import full_size, layercam
from colocam.data.samples import Samples, labelled_samples, scaled_boxes, spread_samples
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError
from colocam.files import write_json
from colocam.metrics import Frames, accuracy, box_hits, corloc
from colocam.metrics.hits import PUBLISHED_THRESHOLDS
from colocam.models import LocalizerNet, foreground
from colocam.models.store import load_model
from colocam.progress import progress
from colocam.report.cases import save_cases
from colocam.run import Run, open_run
from colocam.selection import tags_only_threshold
from colocam.types import Split

Levels = npt.NDArray[np.uint8]
"""(N, S, S) maps in 8 bits: 255 · map, truncated, as the published protocol reads them."""

Mapper = Callable[[Tensor, Tensor], Tensor]
"""frames (B, 3, S, S) in 0–255, classes (B,) → maps (B, S, S) in 0–1."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """A method's maps on the evaluated frames, and the threshold that tags and maps alone suggest for it."""

    maps: Levels
    validation: Levels
    threshold: float


def evaluate(run: str | Path, boxes: str | Path, *, split: Split = "test", device: str | None = None) -> dict[str, Any]:
    """Measure LayerCAM and every trained method of a run on the frames of ``split`` that have true boxes.

    Writes ``evaluation.json`` and ``cases.npz`` (examples for the report) into the run folder and returns the former:
    ``{method: {protocol: {"average": CorLoc in percent, class: …}}, "classification": …, "data": …}``.
    """
    opened, truth = open_run(run, device), read_truth(Path(boxes))
    clips = opened.clips(*{split, "val"})
    size, tags = opened.config.frames.crop, opened.catalogue.tags
    samples = labelled_samples([c for c in clips if c.clip.split == split], tags, truth)
    true_boxes = scaled_boxes(samples, truth, size)
    present = np.array([len(frame) > 0 for frame in true_boxes], dtype=bool)
    if not present.any():
        raise ColocamError(f"{boxes} has no box for a '{split}' frame of this run: check the clip names and --split")
    held_out = [c for c in clips if c.clip.split == "val"]
    validation = spread_samples(held_out, tags, opened.config.frames.per_val_clip)
    validation_boxes = scaled_boxes(validation, truth, size)
    boxed = np.array([len(frame) > 0 for frame in validation_boxes], dtype=bool)

    frames, validation_frames = _frames(samples, tags, present), _frames(validation, tags, boxed)
    ranks, predicted_tags = _classify(opened, samples)
    classified = {"top1": ranks[present] < 1, "top5": ranks[present] < 5}
    result: dict[str, Any] = {}
    predictions = {name: _predict(opened, mapper, samples, validation) for name, mapper in _mappers(opened).items()}
    for name, predicted in predictions.items():
        grid = np.append(PUBLISHED_THRESHOLDS, predicted.threshold)
        hits = box_hits(predicted.maps[present], [b for b in true_boxes if len(b)], grid)
        chosen_on = None
        if boxed.any():
            hits_there = box_hits(predicted.validation[boxed], [b for b in validation_boxes if len(b)], grid)
            chosen_on = (hits_there, validation_frames)
        result[name] = corloc(
            hits, frames, grid, tags_only=predicted.threshold, classified=classified, validation=chosen_on
        )
    result["classification"] = accuracy(classified["top1"], frames)
    result["data"] = _describe(opened, samples, present, split, truth)
    write_json(opened.folder / "evaluation.json", result)
    save_cases(
        opened.folder / "cases.npz",
        samples,
        true_boxes,
        {name: predicted.maps for name, predicted in predictions.items()},
        {name: predicted.threshold for name, predicted in predictions.items()},
        predicted_tags,
        tags,
        size,
    )
    return result


def _mappers(run: Run) -> dict[str, Mapper]:
    """The methods of a run by name: LayerCAM of the frozen classifier first, then what was trained, best last."""
    classifier, size = run.classifier("cam"), run.config.frames.crop

    def cam(frames: Tensor, classes: Tensor) -> Tensor:
        return full_size(layercam(classifier, frames, classes), size)

    mappers: dict[str, Mapper] = {"layercam": cam}
    for method in reversed(run.config.methods):
        mappers[method] = _decoder(load_model(run.model_folder(method)).net.to(run.device))
    return mappers


def _decoder(net: LocalizerNet) -> Mapper:
    return lambda frames, _: foreground(net(frames).map_logits)


def _predict(run: Run, mapper: Mapper, samples: Samples, validation: Samples) -> Predictions:
    maps, held_out = (_maps(run, mapper, part) for part in (samples, validation))
    return Predictions(maps, held_out, tags_only_threshold(held_out))


@torch.inference_mode()
def _maps(run: Run, mapper: Mapper, samples: Samples) -> Levels:
    parts = []
    with progress("maps", len(samples), unit="frames") as advance:
        for frames, classes in samples.batches(run.config.frames.crop, run.device):
            parts.append(to_8bit(mapper(frames, classes)).cpu().numpy())
            advance(len(frames))
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


def _frames(samples: Samples, tags: tuple[str, ...], keep: npt.NDArray[np.bool_]) -> Frames:
    videos = np.array([clip.clip.video for clip, _ in samples.where()])
    return Frames(tags, samples.classes.numpy()[keep], videos[keep])


def _describe(run: Run, samples: Samples, present: npt.NDArray[np.bool_], split: str, truth: Truth) -> dict[str, Any]:
    where = samples.where()
    return {
        "split": split,
        "frames": int(present.sum()),
        "empty_frames": int((~present).sum()),
        "boxes": sum(len(truth.boxes(clip.clip.name, frame)) for clip, frame in where),
        "clips": len({clip.clip.name for clip, _ in where}),
        "videos": len({clip.clip.video for clip, _ in where}),
        "classes": len(run.catalogue.tags),
    }

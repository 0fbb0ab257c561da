"""Stage 1: train the classifier g on single frames, min −log Pr(y | X)."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.config import Config
from colocam.data.augment import crop, jitter, sample_crops, sample_jitter
from colocam.data.batches import BatchIndices, plan_frames, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.models import make_classifier
from colocam.training.frozen_encoder import fit_frozen
from colocam.training.journal import Journal
from colocam.training.loop import Task, Validation, fit
from colocam.training.processes import first
from colocam.training.validation import Validator
from colocam.utils.prefetch import Tensors
from colocam.utils.randomness import generator


def train_classifier(
    config: Config,
    clips: Sequence[CachedClip],
    tags: Sequence[str],
    validator: Validator,
    folder: Path,
    journal: Journal,
) -> None:
    """Train the classifier in the way of ``config.classifier.fit``, or continue; a finished one is left as it is.

    Writes the checkpoints ``folder/last`` and ``folder/best``, and with SGD and boxes ``folder/cam``.
    """
    if config.classifier.fit == "logistic":
        first(lambda: fit_frozen(config, clips, tags, validator, folder, journal))
    else:
        task = first(lambda: classifier_task(config, clips, tags, validator))  # the first downloads the weights
        fit(task, folder, journal)


def classifier_task(config: Config, clips: Sequence[CachedClip], tags: Sequence[str], validator: Validator) -> Task:
    """The task of stage 1; its checkpoints are ``best`` (classification) and, with boxes, ``cam`` (its CAMs)."""
    settings, device = config.classifier, validator.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        classifier = make_classifier(config, config.backbone, len(tags)).to(device)
    classes = torch.tensor([tags.index(clip.clip.tag) for clip in clips])

    def plan(epoch: int) -> list[BatchIndices]:
        return plan_frames(
            [len(clip) for clip in clips],
            per_clip=settings.frames_per_clip,
            batch=settings.batch,
            window=settings.window,
            seed=config.seed,
            epoch=epoch,
        )

    def load(indices: BatchIndices, step: int) -> Tensors:
        rng, rows = generator(config.seed, "augment classifier", step), indices.rows
        return {
            "frames": read_frames(clips, indices),
            "classes": classes[indices.clips],
            "crops": sample_crops(indices.whole, config.frames.resize, config.frames.crop, rng)[rows],
            "jitter": sample_jitter(indices.whole, settings.jitter, rng)[rows],
        }

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:  # noqa: ARG001 - the loop's
        frames = jitter(crop(loaded["frames"], loaded["crops"], config.frames.crop), loaded["jitter"])
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = classifier.logits(frames).float()
        loss = F.cross_entropy(logits, loaded["classes"], label_smoothing=settings.label_smoothing)
        return {"cross_entropy": loss * (len(frames) / indices.whole)}

    def validate(epoch: int) -> Validation:  # noqa: ARG001 - the loop's signature
        return validator.classifier(classifier)

    late = [*classifier.encoder.last_stage(), *classifier.head.parameters()]
    late_ids = {id(parameter) for parameter in late}
    early = [parameter for parameter in classifier.parameters() if id(parameter) not in late_ids]
    groups = [(early, 1.0), (late, settings.head_lr_factor)]
    return Task("classifier", classifier, groups, settings, plan, load, terms, validate)

"""Stage 1: train the classifier g on single frames, min −log Pr(y | X)."""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.config import Config
from colocam.data.augment import crop, jitter, sample_crops, sample_jitter
from colocam.data.batches import BatchIndices, plan_frames, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.models import Classifier, make_classifier
from colocam.training.frozen_encoder import fit_frozen
from colocam.training.journal import Journal
from colocam.training.loop import Task, Validation, fit
from colocam.training.processes import first, world
from colocam.training.validation import Validator
from colocam.utils.cuda_graphs import RecordedLoss
from colocam.utils.prefetch import Tensors
from colocam.utils.tensors import generator


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


class _ClassLoss(nn.Module):
    """Augment frames and compute the cross entropy of their classes.

    Args:
        classifier: g; on a GPU it computes in bfloat16.
        size: side of the crops in pixels.
        smoothing: label smoothing.
    """

    def __init__(self, classifier: Classifier, size: int, smoothing: float) -> None:
        super().__init__()
        self.classifier, self.size, self.smoothing = classifier, size, smoothing

    def forward(self, frames: Tensor, classes: Tensor, crops: Tensor, factors: Tensor) -> Tensor:
        """(B, 3, R, R) uint8, (B,), (B, 3) and (B, 3) → scalar."""
        images = jitter(crop(frames, crops, self.size), factors)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=images.is_cuda, cache_enabled=False):
            logits = self.classifier.logits(images).float()
        return F.cross_entropy(logits, classes, label_smoothing=self.smoothing)


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
            "factors": sample_jitter(indices.whole, settings.jitter, rng)[rows],
        }

    loss = _ClassLoss(classifier, config.frames.crop, settings.label_smoothing)
    # Processes that share a step exchange the statistics of batch norms within it, which is not recorded.
    recorded = RecordedLoss(loss, device) if world() == 1 else loss

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:  # noqa: ARG001 - the loop's
        return {"cross_entropy": recorded(**loaded) * (len(loaded["frames"]) / indices.whole)}

    def validate(epoch: int) -> Validation:  # noqa: ARG001 - the loop's signature
        return validator.classifier(classifier)

    late = [*classifier.encoder.last_stage(), *classifier.head.parameters()]
    late_ids = {id(parameter) for parameter in late}
    early = [parameter for parameter in classifier.parameters() if id(parameter) not in late_ids]
    groups = [(early, 1.0), (late, settings.head_lr_factor)]
    return Task("classifier", classifier, groups, settings, plan, load, terms, validate)

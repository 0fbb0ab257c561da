"""Stage 1: train the classifier g on single frames, min −log Pr(y | X), or take over that of another run.

Tests: tests/training/test_train.py, tests/training/test_resume.py.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.cams import extract
from colocam.config import Config
from colocam.data.augment import crop, jitter, sample_crops, sample_jitter
from colocam.data.batches import BatchIndices, plan_frames, read_frames
from colocam.data.frame_cache import CachedClip
from colocam.data.run_data import data_difference, read_data
from colocam.errors import ColocamError
from colocam.maps.mapper import Mapper, cam_mapper
from colocam.models import Classifier
from colocam.run import Run, config_difference, open_run
from colocam.training.distributed import first, world
from colocam.training.frozen_encoder import fit_frozen, new_classifier
from colocam.training.loop import AfterEpoch, Journal, Task, Validation, fit
from colocam.training.validation import Validator
from colocam.utils.cuda_graphs import RecordedLoss
from colocam.utils.files import atomic_path, explain_os_errors, link
from colocam.utils.prefetch import Tensors
from colocam.utils.tensors import generator, load_checkpoint


def train_classifier(
    run: Run,
    clips: Sequence[CachedClip],
    validator: Validator,
    journal: Journal,
    after_epoch: AfterEpoch | None = None,
) -> None:
    """Train the classifier in the way of ``config.classifier.fit``, or continue; a finished one is left as it is.

    Writes the checkpoints ``classifier/last`` and ``classifier/best``, and with SGD and boxes ``classifier/cam``.
    """
    config, tags = run.config, run.catalogue.tags
    if config.classifier.fit == "logistic":
        first(lambda: fit_frozen(run, clips, validator, journal))
    else:
        task = first(lambda: classifier_task(config, clips, tags, validator))  # the first downloads the weights
        fit(task, run.folder / "classifier", journal, after_epoch)


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
    classifier = new_classifier(config, len(tags)).to(device)
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

    def mapper() -> Mapper:
        return cam_mapper(partial(extract, validator.cam, classifier), config.frames.map_side)

    late = [*classifier.encoder.last_stage(), *classifier.head.parameters()]
    late_ids = {id(parameter) for parameter in late}
    early = [parameter for parameter in classifier.parameters() if id(parameter) not in late_ids]
    groups = [(early, 1.0), (late, settings.head_lr_factor)]
    return Task("classifier", classifier, groups, settings, plan, load, terms, validate, mapper)


def take_over(run: Run, other: Path) -> None:
    """Give ``run`` the finished stage 1 of the run folder ``other``, unless it already has one.

    These are its classifier, its CAMs and its lines of the journal; the runs may differ in stage 2 alone. Files are
    hard-linked where the file system allows it, else copied. Every writer replaces whole files, so neither run can
    change the other's.

    Raises:
        ColocamError: stage 1 of ``other`` is unfinished, or ``run`` would train a different one.
    """
    if (run.folder / "classifier" / "last.json").is_file():
        return
    donor = open_run(other)
    saved = load_checkpoint(other / "classifier", "last")
    if saved is None or saved[1]["epoch"] < donor.config.classifier.passes:
        raise ColocamError(f"{other} has no finished classifier: finish 'colocam train' there first")
    if (changed := config_difference(donor.config.stage1(), run.config.stage1())) is not None:
        raise ColocamError(
            f"{other} has a classifier with a different configuration ({changed}): leave the argument 'classifier' out"
        )
    if (changed := data_difference(read_data(other), read_data(run.folder))) is not None:
        raise ColocamError(
            f"{other} was trained on different videos or boxes ({changed}): leave the argument 'classifier' out"
        )
    with explain_os_errors(run.folder):
        journal = (other / "metrics.jsonl").read_bytes()[: saved[1]["journal"]]
        with atomic_path(run.folder / "metrics.jsonl") as temporary:
            temporary.write_bytes(journal)
        target = run.folder / "classifier"
        target.mkdir(exist_ok=True)
        # a checkpoint exists once last.json does, so it is linked last: after an interruption nothing looks complete
        for file in sorted((other / "classifier").iterdir(), key=lambda path: path.name == "last.json"):
            if not file.name.startswith("."):
                link(file, target / file.name)

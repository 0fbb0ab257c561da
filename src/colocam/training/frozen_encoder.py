"""Stage 1 with ``fit: logistic``: keep the encoder as loaded, and fit the linear head to its pooled features.

A pretrained encoder knows far more kinds of images than the training videos show. Fine-tuning on few videos replaces
part of that by what tells these videos apart; a linear head on frozen features does not (docs/method/classifier.md).
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from colocam.config import Backbone, Config
from colocam.data.augment import blur, jitter, resized_crop, sample_blurs, sample_jitter, sample_resized_crops, whole
from colocam.data.batches import BatchIndices, evenly, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.data.samplers import central
from colocam.data.samples import Samples, chosen_samples
from colocam.models import Classifier, make_classifier
from colocam.models.timm_networks import family
from colocam.training.journal import Journal
from colocam.training.logistic_regression import fit_logistic
from colocam.training.validation import Validator
from colocam.utils.checkpoint import load_checkpoint, save_checkpoint
from colocam.utils.files import read_array, write_array
from colocam.utils.interrupt import raise_if_stopped
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import Advance, progress, say
from colocam.utils.randomness import generator

EXTENDED = frozenset({"vgg", "inception_v3"})
"""Modules of timm whose networks get new convolutions for CAMs."""
BATCH = 64
"""Frames of one pass."""
AREA, ASPECT = (0.3, 1.0), 0.4
"""Random crops cover this share of the frame; the logarithm of their aspect ratio is at most this."""
BLUR = 0.01
"""Largest σ of the blur, relative to the side of the frame."""
JITTER = 0.4
"""Largest change of brightness, contrast and saturation."""


def fit_frozen(
    config: Config,
    clips: Sequence[CachedClip],
    tags: Sequence[str],
    validator: Validator,
    folder: Path,
    journal: Journal,
) -> None:
    """Fit the head and write the checkpoints ``folder/best`` and ``folder/last``, unless they are there.

    ``last`` has no weights: it says that the stage is finished. The features of each view are kept until then, so that
    an interruption loses one view at most.
    """
    if (saved := load_checkpoint(folder, "last")) is not None:
        journal.length = saved[1]["journal"]
        return
    journal.rewind(0)
    device = validator.device
    _warn(config.backbone)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        classifier = make_classifier(config, config.backbone, len(tags)).to(device).eval()
    samples = _training_frames(config, clips, tags)
    views = [folder / f"view-{view}.npy" for view in range(config.classifier.views)]
    features = _all_features(classifier, samples, views, config, device)
    steps = 0

    def report(step: int, loss: float, gradient: float) -> None:
        nonlocal steps
        steps = step
        journal.add("classifier", "train", 0, step, loss=loss)
        note(note=f"loss {loss:.4f}, gradient {gradient:.0e}")
        raise_if_stopped("classifier")

    with progress("classifier, logistic regression", 0, unit="steps") as note:
        weight, bias = fit_logistic(
            features,
            samples.classes.repeat(len(views)).to(device),
            balance(samples, len(tags)).repeat(len(views)).to(device),
            len(tags),
            config.classifier.penalty,
            report,
        )
    with torch.no_grad():
        classifier.head.weight.copy_(weight)
        classifier.head.bias.copy_(bias)
    result = validator.classifier(classifier)
    journal.add("classifier", "val", 0, steps, **result.scores, **result.values)
    kept = {"epoch": 0, "step": steps, "score": result.scores["best"], **result.values}
    save_checkpoint(folder, "best", classifier.state_dict(), kept)
    for view in views:
        view.unlink()
    save_checkpoint(folder, "last", {}, {"epoch": 1, "step": steps, "journal": journal.flush()})


def balance(samples: Samples, count: int) -> Tensor:
    """(N,) weights of the frames: each class has the same sum, and in it each video the square root of its frames.

    A video of many frames counts more than one of few, but its frames, which resemble each other, do not decide alone.
    """
    videos = [samples.clips[clip].clip.video for clip in samples.indices.clips.tolist()]
    ids = torch.from_numpy(np.unique(videos, return_inverse=True)[1])
    groups = ids * count + samples.classes  # a video may have clips of several classes
    weights = groups.bincount()[groups].double().rsqrt()
    sums = samples.classes.bincount(weights, minlength=count)
    return weights / sums[samples.classes]


def _warn(backbone: Backbone) -> None:
    """Print a line where weights of the encoder are random and would stay so."""
    if not backbone.pretrained and backbone.weights is None:
        say("warning: classifier.fit is logistic, but the encoder has random weights: set backbone.weights, or use sgd")
    elif family(backbone.name) in EXTENDED:
        say(f"warning: classifier.fit is logistic, but new convolutions of '{backbone.name}' stay random: use sgd")


def _training_frames(config: Config, clips: Sequence[CachedClip], tags: Sequence[str]) -> Samples:
    """Evenly spaced frames of the central window of each clip."""
    chosen = []
    for clip in clips:
        first, last = central(len(clip), config.classifier.window)
        chosen.append([first + index for index in evenly(last - first, config.classifier.frames_per_clip)])
    return chosen_samples(clips, tags, chosen)


def _all_features(
    classifier: Classifier, samples: Samples, views: Sequence[Path], config: Config, device: torch.device
) -> Tensor:
    """(V·N, C) pooled features of all frames, view by view; ``views`` are the files that keep those of each."""
    parts = []
    with progress("classifier, features", len(views) * len(samples), unit="frames") as advance:
        for view, path in enumerate(views):
            if (kept := read_array(path)) is not None and kept.ndim == 2 and len(kept) == len(samples):
                stored = np.array(kept)
                advance(len(samples))
            else:
                stored = _view_features(classifier, samples, view, config, device, advance).cpu().numpy()
                write_array(path, stored)
            parts.append(torch.from_numpy(stored))
    return torch.cat(parts).to(device)


@torch.no_grad()
def _view_features(
    classifier: Classifier, samples: Samples, view: int, config: Config, device: torch.device, advance: Advance
) -> Tensor:
    """(N, C) pooled features of one view of all frames; view 0 is the frame as it is classified later."""

    def load(indices: BatchIndices, batch: int) -> Tensors:
        rows, rng = len(indices.clips), generator(config.seed, "classifier views", view, batch)
        return {
            "frames": read_frames(samples.clips, indices),
            "crops": sample_resized_crops(rows, AREA, ASPECT, rng),
            "blurs": sample_blurs(rows, BLUR, rng),
            "jitter": sample_jitter(rows, JITTER, rng),
        }

    def images(loaded: Tensors) -> Tensor:
        if view == 0:
            return classifier.class_frames(whole(loaded["frames"], config.frames.crop))
        cropped = classifier.class_frames(resized_crop(loaded["frames"], loaded["crops"], config.frames.crop))
        return jitter(blur(cropped, loaded["blurs"], BLUR), loaded["jitter"])

    parts = []
    batches = (samples.indices.part(slice(start, start + BATCH)) for start in range(0, len(samples), BATCH))
    for _, indices, loaded in prefetch(enumerate(batches), load, device):
        parts.append(classifier.pooled(classifier.encoder(images(loaded))[-1]))
        advance(len(indices.clips))
        raise_if_stopped("classifier")
    return torch.cat(parts)

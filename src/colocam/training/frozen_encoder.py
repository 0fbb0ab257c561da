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
from colocam.data.batches import BatchIndices, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.data.samplers import central
from colocam.data.samples import Samples, chosen_samples
from colocam.models import Classifier, make_classifier
from colocam.models.timm_networks import family
from colocam.training.journal import Journal
from colocam.training.logistic_regression import fit_logistic
from colocam.training.validation import Validator
from colocam.training.view_features import forget_views, view_features
from colocam.utils.prefetch import Tensors
from colocam.utils.progress import progress, raise_if_stopped, say
from colocam.utils.tensors import generator, load_checkpoint, save_checkpoint
from colocam.video.frame_choice import evenly

EXTENDED = frozenset({"vgg", "inception_v3"})
"""Modules of timm whose networks get new convolutions for CAMs."""
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
    samples, views = training_frames(config, clips, tags), config.classifier.views
    features = _features(classifier, samples, config, folder, device)
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
            samples.classes.repeat(views).to(device),
            balance(samples, len(tags)).repeat(views).to(device),
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
    forget_views(folder, views)
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


def training_frames(config: Config, clips: Sequence[CachedClip], tags: Sequence[str]) -> Samples:
    """Evenly spaced frames of the central window of each clip."""
    chosen = []
    for clip in clips:
        first, last = central(len(clip), config.classifier.window)
        chosen.append([first + index for index in evenly(last - first, config.classifier.frames_per_clip)])
    return chosen_samples(clips, tags, chosen)


def sample_view(rows: int, rng: torch.Generator) -> Tensors:
    """Random blurs and colour changes of ``rows`` frames."""
    return {"blurs": sample_blurs(rows, BLUR, rng), "jitter": sample_jitter(rows, JITTER, rng)}


def changed(images: Tensor, loaded: Tensors) -> Tensor:
    """Images (B, 3, H, W) with the blurs and colours of :func:`sample_view`."""
    return jitter(blur(images, loaded["blurs"], BLUR), loaded["jitter"])


def _features(classifier: Classifier, samples: Samples, config: Config, folder: Path, device: torch.device) -> Tensor:
    """(V·N, C) pooled features of all views of all frames; view 0 is the frame as it is classified later."""

    def load(indices: BatchIndices, view: int, batch: int) -> Tensors:
        rows, rng = len(indices.clips), generator(config.seed, "classifier views", view, batch)
        crops = sample_resized_crops(rows, AREA, ASPECT, rng)
        return {"frames": read_frames(samples.clips, indices), "crops": crops, **sample_view(rows, rng)}

    def encode(loaded: Tensors, view: int) -> Tensor:
        frames, size = loaded["frames"], config.frames.crop
        if view == 0:
            images = classifier.class_frames(whole(frames, size))
        else:
            images = changed(classifier.class_frames(resized_crop(frames, loaded["crops"], size)), loaded)
        return classifier.pooled(classifier.encoder(images)[-1])

    return view_features("classifier", samples, folder, config.classifier.views, load, encode, device)

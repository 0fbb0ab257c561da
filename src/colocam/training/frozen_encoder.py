"""Fit linear heads to features of an encoder that stays as it was loaded.

With ``fit: logistic``, stage 1 is such a head on pooled features of whole frames. A pretrained encoder knows far more
kinds of images than the training videos show. Fine-tuning on few videos replaces part of that by what tells these
videos apart; a linear head on frozen features does not.

A whole frame shows the object and its surroundings, and a head for whole frames learns both: in videos of other cameras
the surroundings mislead it. The decoder says where the object is, so a second head, :func:`fit_crop_head`, learns from
crops alone (docs/method/classifier.md).
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.config import Backbone, Config
from colocam.data.augment import blur, jitter, resized_crop, sample_blurs, sample_jitter, sample_resized_crops, whole
from colocam.data.batches import BatchIndices, Samples, central, chosen_samples, frames_per_pass, read_frames
from colocam.data.frame_cache import CachedClip
from colocam.models import Classifier, LocalizerNet, make_classifier
from colocam.models.localizer_net import expanded
from colocam.models.timm_networks import family
from colocam.run import Run
from colocam.training.loop import Journal
from colocam.training.start import open_start
from colocam.training.validation import Validator
from colocam.utils.files import read_array, write_array
from colocam.utils.prefetch import Tensors, prefetch
from colocam.utils.progress import progress, raise_if_stopped, say
from colocam.utils.tensors import generator, load_checkpoint, save_checkpoint
from colocam.video.frame_choice import evenly

BATCH = 64
"""Frames that share random numbers; on a CPU they take several passes."""
EXTENDED = frozenset({"vgg", "inception_v3"})
"""Modules of timm whose networks get new convolutions for CAMs."""
AREA, ASPECT = (0.3, 1.0), 0.4
"""Random crops cover this share of the frame; the logarithm of their aspect ratio is at most this."""
BLUR = 0.01
"""Largest σ of the blur, relative to the side of the frame."""
JITTER = 0.4
"""Largest change of brightness, contrast and saturation."""
CROP_PENALTY = 1e-3
"""λ, ten times that of the head for whole frames: crops of one object resemble each other more than whole frames."""
EXPANSION, SHIFT, CROP_ASPECT = (1.0, 2.0), 0.1, 0.2
"""Random crops: sides relative to the box, shift relative to the sides, logarithm of the change of each side."""
GRADIENT = 1e-6
"""The solution is found when no entry of the gradient exceeds this; the loss is of order 1."""
STEPS = 200
"""Most calls of the optimizer, each of up to :data:`ITERATIONS` iterations."""
ITERATIONS = 10

Crops = Callable[[int, slice, torch.Generator], Tensor]
"""(view, rows of the samples, random numbers) → crops (B, 4); called in another thread."""
Encode = Callable[[Tensors, int], Tensor]
"""(``frames``, ``crops``, ``blurs`` and ``jitter`` of a batch, view) → features (B, C)."""


def fit_frozen(run: Run, clips: Sequence[CachedClip], validator: Validator, journal: Journal) -> None:
    """Fit the head of stage 1 and write its checkpoints ``best`` and ``last``, unless they are there.

    ``last`` has no weights: it says that the stage is finished. The features of each view are kept until then, so that
    an interruption loses one view at most.
    """
    config = run.config
    tags = run.catalogue.tags
    folder = run.folder / "classifier"
    if (saved := load_checkpoint(folder, "last")) is not None:
        journal.length = saved[1]["journal"]
        return
    journal.rewind(0)
    if config.start is None:
        _warn(config.backbone)
    classifier = new_classifier(config, len(tags)).to(validator.device).eval()
    size = config.frames.crop

    def crops(_: int, rows: slice, rng: torch.Generator) -> Tensor:
        return sample_resized_crops(rows.stop - rows.start, AREA, ASPECT, rng)

    def encode(loaded: Tensors, view: int) -> Tensor:
        if view == 0:
            images = classifier.class_frames(whole(loaded["frames"], size))
        else:
            images = _changed(classifier.class_frames(resized_crop(loaded["frames"], loaded["crops"], size)), loaded)
        return classifier.pooled(classifier.encoder(images)[-1])

    samples = training_frames(config, clips, tags)
    names, penalty = ("classifier", "classifier views"), config.classifier.penalty
    steps = _fit_head(classifier.head, names, samples, config, folder, crops, encode, penalty, journal)
    result = validator.classifier(classifier)
    journal.add("classifier", "val", 0, steps, **result.scores, **result.values)
    kept = {"epoch": 0, "step": steps, "score": result.scores["best"], **result.values}
    save_checkpoint(folder, "best", classifier.state_dict(), kept)
    _forget_views(folder)
    save_checkpoint(folder, "last", {}, {"epoch": 1, "step": steps, "journal": journal.flush()})


def fit_crop_head(run: Run, net: LocalizerNet, clips: Sequence[CachedClip], folder: Path) -> None:
    """Fit ``net.crop_head`` to the training frames, or load it from the checkpoint ``folder/crop_head``.

    Args:
        run: the run.
        net: with a trained decoder, on its device, in evaluation mode.
        clips: of the training videos.
        folder: of the method in the run folder.
    """
    head = net.crop_head
    kept = folder / "crop_head"
    size = run.config.frames.crop
    assert head is not None
    if (saved := load_checkpoint(kept, "best")) is not None:
        head.load_state_dict(saved[0])
        return
    kept.mkdir(parents=True, exist_ok=True)
    samples = training_frames(run.config, clips, run.catalogue.tags)
    boxes = _boxes(net, samples, size, head.weight.device)

    def crops(view: int, rows: slice, rng: torch.Generator) -> Tensor:
        return expanded(boxes[rows]) if view == 0 else random_crops(boxes[rows], rng)

    def encode(loaded: Tensors, view: int) -> Tensor:
        frames = whole(loaded["frames"], size)
        return net.crop_features(frames if view == 0 else _changed(frames, loaded), loaded["crops"])

    _fit_head(head, ("crop head", "crop views"), samples, run.config, kept, crops, encode, CROP_PENALTY)
    save_checkpoint(kept, "best", head.state_dict(), {"step": 0})
    _forget_views(kept)


def new_classifier(config: Config, classes: int) -> Classifier:
    """The classifier before stage 1; what is random in it depends on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        classifier = make_classifier(config, config.backbone, classes)
    if (start := open_start(config)) is not None:
        classifier.encoder.load_state_dict(start.net.classifier.encoder.state_dict())
    return classifier


def _fit_head(
    head: nn.Linear,
    names: tuple[str, str],
    samples: Samples,
    config: Config,
    folder: Path,
    crops: Crops,
    encode: Encode,
    penalty: float,
    journal: Journal | None = None,
) -> int:
    """Fit ``head`` to the features of all views of all frames; view 0 is the frame as its class is read later.

    Args:
        head: on its device.
        names: of the phase, and of its random numbers.
        samples: frames to learn.
        config: of the run.
        folder: keeps the features of each view until :func:`_forget_views`.
        crops: makes the crops of a view.
        encode: makes the features of a view.
        penalty: λ.
        journal: gets the loss of each step.

    Returns:
        The number of steps.
    """
    (phase, stream), views, device, steps = names, config.classifier.views, head.weight.device, 0

    def load(indices: BatchIndices, batch: int) -> Tensors:
        rows, rng = (
            slice(batch * BATCH, batch * BATCH + len(indices.clips)),
            generator(config.seed, stream, view, batch),
        )
        loaded = {"frames": read_frames(samples.clips, indices), "crops": crops(view, rows, rng)}
        count = len(indices.clips)
        return loaded | {"blurs": sample_blurs(count, BLUR, rng), "jitter": sample_jitter(count, JITTER, rng)}

    def report(step: int, loss: float, gradient: float) -> None:
        nonlocal steps
        steps = step
        if journal is not None:
            journal.add(phase, "train", 0, step, loss=loss)
        note(note=f"loss {loss:.4f}, gradient {gradient:.0e}")
        raise_if_stopped(phase)

    parts = []
    with progress(f"{phase}, features", views * len(samples), unit="frames") as advance, torch.no_grad():
        for view in range(views):
            kept = read_array(folder / f"view-{view}.npy")
            if kept is not None and kept.ndim == 2 and len(kept) == len(samples):
                advance(len(samples))
            else:
                batches = (samples.indices.part(slice(start, start + BATCH)) for start in range(0, len(samples), BATCH))
                found = []
                for _, indices, loaded in prefetch(enumerate(batches), load, device):
                    found += [encode(part, view) for part in _passes(loaded, device)]
                    advance(len(indices.clips))
                    raise_if_stopped(phase)
                kept = torch.cat(found).cpu().numpy()
                write_array(folder / f"view-{view}.npy", kept)
            parts.append(torch.from_numpy(np.array(kept)))
    classes = samples.classes.repeat(views)
    weights = balance(samples, head.out_features).repeat(views)
    with progress(f"{phase}, logistic regression", 0, unit="steps") as note:
        features = torch.cat(parts).to(device)
        weight, bias = fit_logistic(
            features, classes.to(device), weights.to(device), head.out_features, penalty, report
        )
    with torch.no_grad():
        head.weight.copy_(weight)
        head.bias.copy_(bias)
    return steps


def _passes(loaded: Tensors, device: torch.device) -> Iterator[Tensors]:
    """The rows of a batch, divided for passes of the encoder."""
    count, most = len(loaded["frames"]), frames_per_pass(device)
    for start in range(0, count, most):
        yield {name: rows[start : start + most] for name, rows in loaded.items()}


def _forget_views(folder: Path) -> None:
    for path in folder.glob("view-*.npy"):
        path.unlink(missing_ok=True)


def _changed(images: Tensor, loaded: Tensors) -> Tensor:
    """Images (B, 3, H, W) with random blurs and colors."""
    return jitter(blur(images, loaded["blurs"], BLUR), loaded["jitter"])


def training_frames(config: Config, clips: Sequence[CachedClip], tags: Sequence[str]) -> Samples:
    """Evenly spaced frames of the central window of each clip."""
    chosen = []
    for clip in clips:
        first, last = central(len(clip), config.classifier.window)
        chosen.append([first + index for index in evenly(last - first, config.classifier.frames_per_clip)])
    return chosen_samples(clips, tags, chosen)


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
        say(
            f"warning: classifier.fit is logistic, but new convolutions of '{backbone.name}' stay random: "
            "set classifier.fit to sgd"
        )


def random_crops(boxes: Tensor, rng: torch.Generator) -> Tensor:
    """Crops (B, 4) around boxes (B, 4) in 0–1, of random size, shape and position; x2 < x1: mirrored."""
    rows, (least, most) = len(boxes), EXPANSION
    factor = least + (most - least) * torch.rand((rows, 1), generator=rng)
    narrower = torch.exp(CROP_ASPECT * (2 * torch.rand((rows, 1), generator=rng) - 1))
    shift = SHIFT * (2 * torch.rand((rows, 2), generator=rng) - 1) * (boxes[:, 2:] - boxes[:, :2])
    crops = expanded(boxes + shift.repeat(1, 2), factor * torch.cat([narrower, 1 / narrower], 1))
    mirrored = torch.randint(2, (rows, 1), generator=rng) > 0
    return torch.where(mirrored, crops[:, [2, 1, 0, 3]], crops)


@torch.inference_mode()
def _boxes(net: LocalizerNet, samples: Samples, size: int, device: torch.device) -> Tensor:
    """(N, 4) boxes in 0–1 of the tagged objects, in host memory."""
    parts = []
    with progress("crop head, boxes", len(samples), unit="frames") as advance:
        for frames, classes in samples.batches(size, device):
            map_logits, activations = net.maps(frames)
            parts.append(net.boxes(map_logits, activations, classes).cpu())
            advance(len(classes))
            raise_if_stopped("crop head")
    return torch.cat(parts)


def fit_logistic(
    features: Tensor,
    classes: Tensor,
    weights: Tensor,
    count: int,
    penalty: float,
    report: Callable[[int, float, float], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Minimize ``Σ_i ω_i CE(W x_i + b, y_i) / Σ_i ω_i + λ/2 ‖W‖²`` over W and b.

    The bias has no penalty, so that a shift of all features changes b alone. The features are therefore centered for
    the optimizer, which then needs fewer steps.

    Args:
        features: x (N, C).
        classes: y (N,) int64 in 0 … K − 1, each of them at least once.
        weights: ω (N,), not negative, with a positive sum.
        count: K.
        penalty: λ > 0.
        report: called with the number of steps, the loss and the largest entry of its gradient, from step 0 on.

    Returns:
        W (K, C) and b (K,) in float64.
    """
    share = weights.double() / weights.double().sum()
    mean = (share.to(features.dtype) @ features).double()
    x = features - mean  # in float64, without a further copy
    w = torch.zeros(count, x.shape[1], dtype=torch.float64, device=x.device, requires_grad=True)
    b = torch.zeros(count, dtype=torch.float64, device=x.device, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [w, b],
        max_iter=ITERATIONS,
        tolerance_grad=GRADIENT,
        tolerance_change=0.0,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        losses = F.cross_entropy(x @ w.T + b, classes, reduction="none")
        value = share @ losses + penalty / 2 * w.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    for step in range(STEPS + 1):
        with torch.enable_grad():
            value = float(loss().detach())
        assert w.grad is not None
        assert b.grad is not None
        gradient = max(float(w.grad.abs().max()), float(b.grad.abs().max()))
        if report is not None:
            report(step, value, gradient)
        if gradient <= GRADIENT or step == STEPS:
            break
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    found = w.detach()
    return found, b.detach() - found @ mean

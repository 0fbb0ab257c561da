"""Fit the heads that name the class to corrected frames: refit them, or add an output for a class that is new.

The encoder stays as it is. For a new class only its own row is fitted, so that what the model says of the other classes
stays as well.

Tests: tests/training/test_learn_classes.py.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.data.batches import Samples
from colocam.labels.corrections import Correction
from colocam.labels.labeled_videos import LeftOut
from colocam.models import LocalizerNet
from colocam.models.localizer_net import expanded
from colocam.models.model_file import Model
from colocam.run import Run
from colocam.training.learning.frames import CorrectedFrames, History, corrected_frames

LEAST_FRAMES = 5
"""Frames with a box of a class, set or checked by people and not held out, from which it can be learned."""
NEVER = -1e4
"""Bias of a class that is not learned yet: no frame shows it."""
REPLAYED = 2
"""Frames of each training clip that are replayed."""
PENALTY = 0.1
"""Weight of the squared change of the head, relative to its squared size."""
STEPS = 30


def frames_and_classes(
    run: Run, corrections: Sequence[Correction], left_out: LeftOut, history: History, *, new: bool
) -> tuple[Run, CorrectedFrames]:
    """The frames of corrections, and the run with the classes that they add to those of the model.

    Args:
        run: the run.
        corrections: what people said.
        left_out: gets what cannot be found or used, and why.
        history: which videos the model has learned from before.
        new: add classes that have at least :data:`LEAST_FRAMES` frames; other ones serve as labels only.
    """
    known = run.catalogue.tags
    added = sorted({one.tag for one in corrections if one.boxes} - {"", *known}) if new else []
    while True:
        grown = replace(run, catalogue=replace(run.catalogue, tags=(*known, *added)))
        lacking = LeftOut()
        frames = corrected_frames(grown, corrections, lacking, history)
        used = frames.present & ~frames.held_out & (frames.weights == 1)
        counts = np.bincount(frames.classes[used], minlength=len(known) + len(added))[len(known) :]
        enough = [tag for tag, count in zip(added, counts.tolist(), strict=True) if count >= LEAST_FRAMES]
        if enough == added:
            left_out.update(lacking)
            return grown, frames
        added = enough


def grown_model(model: Model, tags: tuple[str, ...]) -> Model:
    """The model with further ``tags`` after its own, which no frame shows yet."""
    net = deepcopy(model.net)
    card = model.card
    more = len(tags) - len(model.card.tags)
    if not more:
        return model
    net.classifier.head = _grown(net.classifier.head, more)
    if net.crop_head is not None:
        net.crop_head = _grown(net.crop_head, more)
    if net.names is not None:
        net.names.grown(tags)
    own = card.class_thresholds and (*card.class_thresholds, *[card.threshold] * more)
    return Model(net, card.model_copy(update={"tags": tags, "class_thresholds": own}))


def _grown(head: nn.Linear, more: int) -> nn.Linear:
    new = nn.Linear(head.in_features, head.out_features + more).requires_grad_(requires_grad=False)
    new.weight.copy_(F.pad(head.weight, (0, 0, 0, more)))
    new.bias.copy_(F.pad(head.bias, (0, more), value=NEVER))
    return new.to(head.weight.device)


def class_head(net: LocalizerNet) -> nn.Linear:
    """The head that names the class: of crops around the object, if the network has one."""
    return net.classifier.head if net.crop_head is None else net.crop_head


@torch.no_grad()
def head_features(
    net: LocalizerNet, samples: Samples, size: int, device: torch.device, *, whole: bool = False
) -> Tensor:
    """(N, C) input of the head that names the class, float64; with ``whole`` of the head of whole frames."""
    parts, classifier = [], net.classifier
    for frames, classes in samples.batches(size, device):
        if net.crop_head is None:
            features = net.class_features(frames)
        elif whole:
            features = classifier.pooled(classifier.last(frames))
        else:
            features = net.crop_features(frames, expanded(net.boxes(*net.maps(frames), classes)))
        parts.append(features.double())
    return torch.cat(parts) if parts else torch.zeros(0, classifier.head.in_features, dtype=torch.float64)


@torch.no_grad()
def fit_heads(
    net: LocalizerNet, corrected: Samples, replayed: Samples, size: int, device: torch.device, *, first_new: int = 0
) -> None:
    """Fit the head that names the class in place, or the rows of new classes of all heads, see :func:`fitted_rows`.

    Args:
        net: the trained one, with outputs for the new classes.
        corrected: frames whose class a person stated.
        replayed: frames of training clips with the class of their tag; may be none.
        size: side of the frames.
        device: the network's device.
        first_new: index of the first new class; 0: there is none.
    """
    heads = [(class_head(net), net.crop_head is None)]
    if first_new and net.crop_head is not None:
        heads.insert(0, (net.classifier.head, True))  # a crop is cut where this one sees the class
    for head, whole in heads:
        parts = [
            (head_features(net, one, size, device, whole=whole), one.classes.to(device))
            for one in (corrected, replayed)
        ]
        weight, bias = fitted_rows(head.weight.double(), head.bias.double(), first_new, parts)
        head.weight[first_new:], head.bias[first_new:] = weight, bias


def fitted_rows(
    weight: Tensor, bias: Tensor, first: int, parts: Sequence[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Rows w, b from ``first`` on that minimize Σ CE(part) + PENALTY · ‖w − w₀‖² / r.

    Of new rows, w₀ is 0 and r the mean of ‖W_k‖², k < first; with ``first`` = 0, w₀ is W and r is ‖W‖².

    Args:
        weight: W (K, C), of which the rows before ``first`` stay.
        bias: (K,).
        first: index of the first new row; 0: none is new, and all are fitted.
        parts: features (n, C) and classes (n,); a part without frames does not count.

    Returns:
        (K − first, C) and (K − first,).
    """
    kept, kept_bias = weight[:first], bias[:first]
    if first:
        start = torch.zeros_like(weight[first:])
        start_bias = kept_bias.mean().repeat(len(weight) - first)
        scale = kept.square().sum(1).mean()
    else:
        start = weight
        start_bias = bias
        scale = weight.square().sum()
    w, b = start.clone().requires_grad_(), start_bias.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([w, b], max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = PENALTY * (w - start).square().sum() / scale
        for features, classes in parts:
            if len(features):
                logits = features @ torch.cat([kept, w]).T + torch.cat([kept_bias, b])
                value = value + F.cross_entropy(logits, classes)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimizer.step(loss)  # type: ignore[no-untyped-call]
    return w.detach(), b.detach()

"""Learn a class that the model does not know: one more output of its heads, from corrected frames.

Only the row of the new class is fitted, to features of the frozen encoder: what the model says of the other classes
stays as it is.
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
from colocam.labels.imported import LeftOut
from colocam.models import LocalizerNet
from colocam.models.model_file import Model
from colocam.run import Run
from colocam.training.learning.frames import CorrectedFrames, History, corrected_frames
from colocam.training.learning.head import PENALTY, STEPS, head_features

LEAST_FRAMES = 5
"""Frames with a box of a class, set or checked by people and not held out, from which it can be learnt."""
NEVER = -1e4
"""Bias of a class that is not learnt yet: no frame shows it."""


def frames_and_classes(
    run: Run, corrections: Sequence[Correction], left_out: LeftOut, history: History, *, new: bool
) -> tuple[Run, CorrectedFrames]:
    """The frames of corrections, and the run with the classes that they add to those of the model.

    Args:
        run: the run.
        corrections: what people said.
        left_out: gets what cannot be found or used, and why.
        history: which videos the model has learnt from before.
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
    net, card, more = deepcopy(model.net), model.card, len(tags) - len(model.card.tags)
    if not more:
        return model
    net.classifier.head = _grown(net.classifier.head, more)
    if net.crop_head is not None:
        net.crop_head = _grown(net.crop_head, more)
    own = card.class_thresholds and (*card.class_thresholds, *[card.threshold] * more)
    return Model(net, card.model_copy(update={"tags": tags, "class_thresholds": own}))


def _grown(head: nn.Linear, more: int) -> nn.Linear:
    new = nn.Linear(head.in_features, head.out_features + more).requires_grad_(requires_grad=False)
    new.weight.copy_(F.pad(head.weight, (0, 0, 0, more)))
    new.bias.copy_(F.pad(head.bias, (0, more), value=NEVER))
    return new.to(head.weight.device)


def fit_classes(
    net: LocalizerNet, first: int, corrected: Samples, replayed: Samples, size: int, device: torch.device
) -> None:
    """Fit the rows of new classes of all heads in place, see :func:`fitted_rows`.

    Args:
        net: with heads that have outputs for the new classes.
        first: index of the first new class.
        corrected: frames whose class a person stated.
        replayed: frames of training clips with the class of their tag; may be none.
        size: side of the frames.
        device: the network's device.
    """
    heads = [net.classifier.head, *([] if net.crop_head is None else [net.crop_head])]
    for whole, head in zip((True, False), heads, strict=False):  # a crop is cut where the first one sees the class
        features = [head_features(net, one, size, device, whole=whole) for one in (corrected, replayed)]
        parts = [
            (one, samples.classes.to(device)) for one, samples in zip(features, (corrected, replayed), strict=True)
        ]
        weight, bias = fitted_rows(head.weight.detach().double(), head.bias.detach().double(), first, parts)
        head.weight[first:], head.bias[first:] = weight, bias


def fitted_rows(
    weight: Tensor, bias: Tensor, first: int, parts: Sequence[tuple[Tensor, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Rows w, b from ``first`` on that minimise Σ CE(part) + PENALTY · ‖w‖² / r, with r the mean of ‖W_k‖², k < first.

    Args:
        weight: (K, C), of which the first rows stay.
        bias: (K,).
        first: index of the first new row.
        parts: features (n, C) and classes (n,); a part without frames does not count.

    Returns:
        (K − first, C) and (K − first,).
    """
    old, scale = weight[:first], weight[:first].square().sum(1).mean()
    w = torch.zeros_like(weight[first:]).requires_grad_()
    b = bias[:first].mean().repeat(len(weight) - first).requires_grad_()
    optimiser = torch.optim.LBFGS([w, b], max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = PENALTY * w.square().sum() / scale
        for features, classes in parts:
            if len(features):
                logits = features @ torch.cat([old, w]).T + torch.cat([bias[:first], b])
                value = value + F.cross_entropy(logits, classes)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimiser.step(loss)  # type: ignore[no-untyped-call]
    return w.detach().to(torch.float32), b.detach().to(torch.float32)

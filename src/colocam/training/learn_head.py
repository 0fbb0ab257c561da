"""Refit the classifier's head where classes were corrected; the encoder stays as it is."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.data.cache_entry import CachedClip
from colocam.data.samples import Samples, spread_samples
from colocam.models import Classifier

REPLAYED = 2
"""Frames of each training clip that are replayed."""
PENALTY = 0.1
"""Weight of the squared change of the head, relative to its squared size."""
STEPS = 30


@torch.no_grad()
def pooled_features(classifier: Classifier, samples: Samples, size: int, device: torch.device) -> Tensor:
    """(N, C) input of the head, float64."""
    parts = []
    for frames, _ in samples.batches(size, device):
        last = classifier.encoder(classifier.class_frames(frames))[-1]
        parts.append(classifier.pooled(last).double())
    return torch.cat(parts) if parts else torch.zeros(0, classifier.head.in_features, dtype=torch.float64)


def refit_head(
    classifier: Classifier,
    corrected: Tensor,
    classes: Tensor,
    training: Sequence[CachedClip],
    tags: Sequence[str],
    size: int,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Minimise CE(corrected) + CE(replayed) + PENALTY · ‖W − W₀‖² / ‖W₀‖² over W and b, from the head W₀, b₀.

    Args:
        classifier: the trained one; it is not changed.
        corrected: (N, C) features of frames whose class a person stated.
        classes: (N,) these classes.
        training: clips of which some frames are replayed with the class of their tag.
        tags: names of the classes.
        size: side of the frames.
        device: the classifier's device.

    Returns:
        W (K, C) and b (K,) in float32.
    """
    replay = spread_samples(training, tags, REPLAYED)
    kept, kept_classes = pooled_features(classifier, replay, size, device), replay.classes.to(device)
    start, bias = classifier.head.weight.detach().double(), classifier.head.bias.detach().double()
    w, b = start.clone().requires_grad_(), bias.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([w, b], max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(corrected @ w.T + b, classes) + F.cross_entropy(kept @ w.T + b, kept_classes)
        value = value + PENALTY * (w - start).square().sum() / start.square().sum()
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimiser.step(loss)  # type: ignore[no-untyped-call]
    return w.detach().float(), b.detach().float()

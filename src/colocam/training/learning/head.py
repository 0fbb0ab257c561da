"""Refit the head that names the class where classes were corrected; the encoder stays as it is."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.data.batches import Samples
from colocam.models import LocalizerNet
from colocam.models.localizer_net import expanded

REPLAYED = 2
"""Frames of each training clip that are replayed."""
PENALTY = 0.1
"""Weight of the squared change of the head, relative to its squared size."""
STEPS = 30


def class_head(net: LocalizerNet) -> nn.Linear:
    """The head that names the class: of crops around the object, if the network has one, else of whole frames."""
    return net.classifier.head if net.crop_head is None else net.crop_head


@torch.no_grad()
def head_features(
    net: LocalizerNet, samples: Samples, size: int, device: torch.device, *, whole: bool = False
) -> Tensor:
    """(N, C) input of the head that names the class, float64; with ``whole`` of the head of whole frames."""
    parts, classifier = [], net.classifier
    for frames, classes in samples.batches(size, device):
        if whole or net.crop_head is None:
            features = classifier.pooled(classifier.encoder(classifier.class_frames(frames))[-1])
        else:
            features = net.crop_features(frames, expanded(net.boxes(*net.maps(frames), classes)))
        parts.append(features.double())
    return torch.cat(parts) if parts else torch.zeros(0, classifier.head.in_features, dtype=torch.float64)


def refit_head(net: LocalizerNet, corrected: Samples, replayed: Samples, size: int, device: torch.device) -> None:
    """Minimise CE(corrected) + CE(replayed) + PENALTY · ‖W − W₀‖² / ‖W₀‖² over W and b, from the head W₀, b₀.

    Args:
        net: the trained one; its head is changed.
        corrected: frames whose class a person stated.
        replayed: frames of training clips with the class of their tag; may be none.
        size: side of the frames.
        device: the network's device.
    """
    head = class_head(net)
    parts = [(head_features(net, one, size, device), one.classes.to(device)) for one in (corrected, replayed)]
    start, bias = head.weight.detach().double(), head.bias.detach().double()
    w, b = start.clone().requires_grad_(), bias.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([w, b], max_iter=STEPS, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = PENALTY * (w - start).square().sum() / start.square().sum()
        for features, classes in parts:
            if len(features):
                value = value + F.cross_entropy(features @ w.T + b, classes)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    with torch.enable_grad():
        optimiser.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        head.weight.copy_(w)
        head.bias.copy_(b)

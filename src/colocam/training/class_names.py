"""Let the names of ImageNet's classes help to tell the tags apart, where held-out tags say so (docs/method/names.md).

Tests: tests/training/test_class_names.py.
"""

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.data.frame_cache import CachedClip
from colocam.models import LocalizerNet
from colocam.models.imagenet_names import ImagenetNames, tells_apart
from colocam.models.model_file import Model
from colocam.models.timm_networks import imagenet_layers
from colocam.run import Run
from colocam.training.frozen_encoder import balance, training_frames
from colocam.training.start import open_start
from colocam.training.validation import Validator
from colocam.utils.progress import progress, raise_if_stopped, say

STEPS = 200
"""Most iterations of the optimizer."""
PENALTY = 1e-3
"""Of ‖b‖², so that a tag of few frames stays near the others."""


def with_names(run: Run, model: Model, clips: Sequence[CachedClip], validator: Validator) -> Model:
    """The model that also asks the names of ImageNet's classes, if that makes held-out tags likelier; else the model.

    Args:
        run: the run.
        model: reads the class without a crop head.
        clips: of the training videos.
        validator: has the held-out frames.
    """
    names = imagenet_names(run, model.card.tags)
    if names is None:
        return model
    net = model.net.to(run.device).eval()
    net.names = names.to(run.device)
    fit_names(run, net, clips)
    before, after = likelihoods(net, validator)
    helps = after <= before
    told = f"{after:.2f} with the names of ImageNet's classes, {before:.2f} without"
    say(f"class: cross-entropy of held-out tags {told}, so they are {'used' if helps else 'left out'}")
    if not helps:
        net.names = None
        return model
    return Model(net, model.card.model_copy(update={"imagenet": names.classes.in_features}))


@torch.inference_mode()
def likelihoods(net: LocalizerNet, validator: Validator) -> tuple[float, float]:
    """Cross-entropy of the tags of the held-out frames without the names of a network, and with them."""
    names = net.names

    def read(frames: Tensor) -> Iterator[Tensor]:
        for net.names in (None, names):
            yield net(frames).class_logits

    before, after = validator.entropies(read)
    return before, after


def imagenet_names(run: Run, tags: Sequence[str]) -> ImagenetNames | None:
    """What the tags mean on ImageNet, not yet fitted; None: too few of them have a name, or the encoder no classifier.

    The layers are those of ``classifier.imagenet``, or of the model that the run starts from.
    """
    config = run.config
    start = open_start(config)
    if not tells_apart(tags):
        return None
    if (path := config.classifier.imagenet) is not None:
        conv, classes = imagenet_layers(config.backbone, path)
    elif start is not None and start.net.names is not None:
        conv, classes = start.net.names.conv, start.net.names.classes
    else:
        return None
    channels = classes.in_features if conv is None else conv.in_channels
    names = ImagenetNames(channels, classes.in_features, tags)
    names.conv, names.classes = conv, classes
    return names.requires_grad_(requires_grad=False)


@torch.no_grad()
def fit_names(run: Run, net: LocalizerNet, clips: Sequence[CachedClip]) -> None:
    """Fit t and b of ``net.names`` to the tags of the training frames (docs/method/names.md).

    Args:
        run: the run.
        net: on its device, in evaluation mode.
        clips: of the training videos.
    """
    names = net.names
    assert names is not None
    samples, parts = training_frames(run.config, clips, run.catalogue.tags), []
    device = names.shift.device
    with progress("names, features", len(samples), unit="frames") as advance:
        for frames, classes in samples.batches(run.config.frames.crop, device):
            parts.append(net.evidence(frames).double())
            advance(len(classes))
            raise_if_stopped("names")
    named = names.named().to(device)
    known = named[samples.classes.to(device)]
    evidence, classes = torch.cat(parts)[known][:, named], (named.cumsum(0) - 1)[samples.classes.to(device)][known]
    weights = balance(samples, len(names.shift)).to(device)[known]
    scale = torch.ones(1, dtype=torch.float64, device=device, requires_grad=True)
    shift = torch.zeros(evidence.shape[1], dtype=torch.float64, device=device, requires_grad=True)

    def fit(*unknown: Tensor) -> None:
        optimizer = torch.optim.LBFGS(unknown, max_iter=STEPS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            optimizer.zero_grad()
            losses = F.cross_entropy(scale * evidence + shift, classes, reduction="none")
            value = (losses * weights).sum() / weights.sum() + PENALTY * shift.square().sum()
            value.backward()  # type: ignore[no-untyped-call]
            return value

        with torch.enable_grad():
            optimizer.step(loss)  # type: ignore[no-untyped-call]

    fit(scale, shift)
    if scale < 0:  # the names contradict the tags: say nothing
        scale.zero_()
        fit(shift)
    names.scale.copy_(scale)
    names.shift[named] = shift.to(names.shift.dtype)

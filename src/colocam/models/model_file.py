"""A trained model on disk: ``model.safetensors`` with the weights, ``model.json`` with its card.

Kernels and matrices are stored in float16, which halves the file; biases and the statistics of batch norms, which may
be too large or too small for it, in float32.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.config.card import Card, read_card
from colocam.errors import ColocamError
from colocam.models.classifier import Classifier, Encoder
from colocam.models.imagenet_names import ImagenetNames
from colocam.models.localizer_net import LocalizerNet
from colocam.models.resnet import is_plain_resnet
from colocam.utils.files import stored, write_json
from colocam.utils.tensors import save_tensors

__all__ = ["Card", "Model", "build_checked", "fill", "load_model", "save_model"]

Network = TypeVar("Network", bound=nn.Module)

MOST_COMPUTED = 1 << 26
"""Numbers in tables that a network computes when it is built, e.g. relative positions."""
DEPTHS = frozenset({"depth", "depths", "layers"})
"""Arguments of a backbone that count blocks."""


@dataclass(frozen=True, slots=True)
class Model:
    """A network with its card."""

    net: LocalizerNet
    card: Card


def save_model(folder: Path, model: Model) -> None:
    """Write both files, the card last: a folder with a card is complete."""
    card = folder / "model.json"
    card.unlink(missing_ok=True)
    weights = {name: _stored(value) for name, value in model.net.state_dict().items()}
    save_tensors(folder / "model.safetensors", weights)
    write_json(card, model.card.model_dump(mode="json"))


def load_model(folder: Path) -> Model:
    """Read a trained model onto the CPU, in evaluation mode.

    The files may come from a stranger: nothing is allocated before the shapes of the stored weights say how much.
    """
    card, weights = read_card(folder), folder / "model.safetensors"
    try:
        shapes = _stored_shapes(stored(weights))
        net = build_checked(lambda: _network(card), card.backbone, shapes, str(folder / "model.json"), weights.name)
        tensors = load_file(weights)
        fill(net, tensors)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ColocamError(f"{weights} is missing or damaged: train again or restore the file") from error
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ColocamError(f"{weights}: '{name}' has NaN or infinite values: train again or restore the file")
    return Model(net.eval(), card)


def _network(card: Card) -> LocalizerNet:
    backbone = card.backbone.model_copy(update={"pretrained": False, "weights": None})
    classifier = Classifier(backbone, len(card.tags), size=card.class_size, normalize=card.normalize)
    width = card.imagenet
    names = None if width is None else ImagenetNames(classifier.encoder.channels[-1], width, card.tags)
    return LocalizerNet(
        classifier,
        card.decoder,
        map_size=card.map_size,
        crop_head=card.crop_head,
        class_in_map=card.class_in_map,
        prior=card.prior_decoder,
        names=names,
    )


def _stored_shapes(weights: Path) -> dict[str, tuple[int, ...]]:
    """Shapes in the header of a file; the weights themselves are not read."""
    with safe_open(weights, framework="pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a dict


def build_checked(
    build: Callable[[], Network],
    backbone: Backbone,
    stored: Mapping[str, tuple[int, ...]],
    described: str,
    weights: str,
) -> Network:
    """Build a network; one with other shapes than the stored weights is refused before memory is allocated for it.

    Its weights are not set, and may have no memory yet: see :func:`fill`.

    Args:
        build: makes the network.
        backbone: of the network.
        stored: shapes of the stored weights.
        described: file that describes the network, for errors.
        weights: file of the weights, for errors.
    """
    _check_depth(backbone.args, len(stored))
    with torch.device("meta"):
        net = build()
    planned = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
    wrong = next((name for name in planned | dict(stored) if planned.get(name) != stored.get(name)), None)
    if wrong is not None:
        raise ColocamError(
            f"{described} does not fit {weights}: '{wrong}' is {planned.get(wrong, 'missing')} in the first, "
            f"{stored.get(wrong, 'missing')} in the second: train again or restore both files"
        )
    tables = sum(buffer.numel() for buffer in net.buffers())  # those that are computed are not stored
    if tables > MOST_COMPUTED + sum(map(prod, stored.values())):
        raise ColocamError(
            f"{described}: the network computes tables of {tables} numbers, more than weights: train again"
        )
    # Random weights, only to be replaced, would take a second; networks of timm may compute tables when they are built.
    return net if is_plain_resnet(backbone) else build()


def fill(net: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load the weights into a network of :func:`build_checked`."""
    planned = net.state_dict()
    if any(weight.is_meta for weight in planned.values()):
        net.load_state_dict({name: tensors[name].to(weight.dtype) for name, weight in planned.items()}, assign=True)
        net.to(memory_format=torch.channels_last)  # as it was built
        for part in net.modules():
            if isinstance(part, Encoder):
                part.normalize()
            elif isinstance(part, ImagenetNames):
                part.connect(part.tags)
    else:
        net.load_state_dict(tensors)


def _check_depth(arguments: Mapping[str, object], tensors: int) -> None:
    """Refuse a network with more blocks than its file has tensors, before any block is built."""
    for name in DEPTHS & arguments.keys():
        if (blocks := _total(arguments[name])) > tensors:
            raise ColocamError(f"backbone.args.{name} asks for {blocks} blocks, but the weights have {tensors} tensors")


def _total(value: object) -> int:
    if isinstance(value, list | tuple):
        return sum(map(_total, value))
    return int(value) if isinstance(value, int) else 0


def _stored(weight: Tensor) -> Tensor:
    """Kernels and matrices in float16, unless a value overflows."""
    half = weight.half()
    return half if weight.dim() > 1 and weight.is_floating_point() and bool(half.isfinite().all()) else weight

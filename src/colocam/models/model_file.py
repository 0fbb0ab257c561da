"""A trained model on disk: ``model.safetensors`` with the weights, ``model.json`` with its card.

Kernels and matrices are stored in float16, which halves the file; biases and the statistics of batch norms, which may
be too large or too small for it, in float32.
"""

from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from colocam.config.card import Card, parse_card
from colocam.errors import ColocamError
from colocam.models.classifier import Classifier
from colocam.models.localizer_net import LocalizerNet
from colocam.utils.checkpoint import save_tensors
from colocam.utils.files import write_json

__all__ = ["Card", "Model", "load_model", "save_model"]


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
    """Read a trained model onto the CPU, in evaluation mode."""
    path = folder / "model.json"
    if not path.is_file():
        raise ColocamError(f"no trained model in {folder} (model.json is missing): finish 'colocam train' first")
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError:  # not UTF-8
        text = ""
    card = parse_card(text, str(path))
    backbone = card.backbone.model_copy(update={"pretrained": False, "weights": None})
    classifier = Classifier(backbone, len(card.tags), size=card.class_size, normalise=card.normalise)
    net = LocalizerNet(classifier, card.decoder, map_size=card.map_size)
    weights = folder / "model.safetensors"
    try:
        net.load_state_dict(load_file(weights))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ColocamError(f"{weights} is missing or damaged: train again or restore the file") from error
    return Model(net.eval(), card)


def _stored(weight: Tensor) -> Tensor:
    """Kernels and matrices in float16, unless a value overflows."""
    half = weight.half()
    return half if weight.dim() > 1 and weight.is_floating_point() and bool(half.isfinite().all()) else weight

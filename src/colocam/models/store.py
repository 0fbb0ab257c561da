"""A trained model on disk: ``model.safetensors`` with the weights, ``model.json`` with all else it needs."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file

from colocam.checkpoint import save_tensors
from colocam.config import Backbone
from colocam.errors import ColocamError
from colocam.files import write_json
from colocam.models.classifier import Classifier
from colocam.models.localizer import LocalizerNet

FORMAT = 1


class Card(BaseModel):
    """What a model is: enough to rebuild the network and to read its maps.

    Attributes:
        tags: names of the classes in the order of the logits.
        size: side of the square input in pixels.
        threshold: τ, relative to each map's maximum, that was chosen when the model was trained.
        threshold_from: how τ was chosen: ``tags-only`` or ``validation`` boxes.
        method: colocam, fcam or tcam.
        presence: slope and offset that turn the peak of a class's activation map into evidence
            (:mod:`colocam.presence`); None where nothing was calibrated.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    method: str
    tags: tuple[str, ...]
    size: int
    threshold: float
    threshold_from: str
    backbone: Backbone
    decoder: tuple[int, ...]
    presence: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A network with its card."""

    net: LocalizerNet
    card: Card


def save_model(folder: Path, model: Model) -> None:
    """Write both files; the card comes last, so a folder with a card is whole."""
    card = folder / "model.json"
    card.unlink(missing_ok=True)
    save_tensors(folder / "model.safetensors", model.net.state_dict())
    write_json(card, model.card.model_dump(mode="json"))


def load_model(folder: Path) -> Model:
    """Open a trained model on the CPU, in evaluation mode."""
    path = folder / "model.json"
    if not path.is_file():
        raise ColocamError(f"no trained model in {folder} (model.json is missing): finish 'colocam train' first")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if (found := values["format"]) != FORMAT:  # first of all, since another format may have other keys
            raise ColocamError(f"{path} has format {found}, this colocam reads {FORMAT}: update colocam or train again")
        card = Card.model_validate_json(json.dumps(values))
    except (ValueError, LookupError, TypeError) as error:
        raise ColocamError(f"{path} is not a colocam model card: train again or restore the file") from error
    backbone = card.backbone.model_copy(update={"pretrained": False, "weights": None})
    net = LocalizerNet(Classifier(backbone, len(card.tags)), card.decoder)
    weights = folder / "model.safetensors"
    try:
        net.load_state_dict(load_file(weights))
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ColocamError(f"{weights} is missing or damaged: train again or restore the file") from error
    return Model(net.eval(), card)

"""The card of a trained model: what must be known of it beside its weights. Read without torch."""

import json

from pydantic import BaseModel, ConfigDict

from colocam.config import Backbone, ColorMean
from colocam.errors import ColocamError

FORMAT = 2
"""Raised whenever a number in a card changes its meaning (2: presence is read from peaks)."""


class Card(BaseModel):
    """What a model is: enough to rebuild the network and to read its maps.

    Attributes:
        tags: names of the classes in the order of the logits.
        size: side of the square input in pixels.
        threshold: τ, relative to each map's maximum, that was chosen when the model was trained.
        threshold_from: how τ was chosen: ``tags-only`` or ``validation`` boxes.
        method: colocam, fcam or tcam.
        presence: slope and offset that turn the peak of a class's activation map into evidence
            (:mod:`colocam.temporal.presence`); None where nothing was calibrated.
        color_mean: whose colours complete the maps, ``off``, ``frame`` or ``clip``; τ was chosen on such maps.
        focus: whether they are drawn towards the class (:mod:`colocam.maps.focus`); likewise.
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
    color_mean: ColorMean = "off"
    focus: bool = False


def parse_card(text: str, origin: str, remedy: str = "train again or restore the file") -> Card:
    """Read a card from its JSON; errors name ``origin`` and the ``remedy``."""
    try:
        values = json.loads(text)
        if (found := values["format"]) != FORMAT:  # first of all, since another format may have other keys
            raise ColocamError(
                f"{origin} has format {found}, this colocam reads {FORMAT}: update colocam or train again"
            )
        return Card.model_validate_json(json.dumps(values))
    except (ValueError, LookupError, TypeError) as error:
        raise ColocamError(f"{origin} is not a colocam model card: {remedy}") from error

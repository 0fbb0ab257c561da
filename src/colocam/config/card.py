"""The card of a trained model: everything besides its weights. Read without torch."""

import json

from pydantic import BaseModel, ConfigDict

from colocam.config import Backbone, ColorMean
from colocam.errors import ColocamError

FORMAT = 2
"""Increased whenever a value in a card changes its meaning (2: presence is computed from peaks)."""


class Card(BaseModel):
    """Everything that is needed to rebuild the network and to use its maps.

    Attributes:
        tags: names of the classes in the order of the logits.
        size: side of the square input in pixels.
        threshold: τ, relative to each map's maximum, chosen in training.
        threshold_from: how τ was chosen: ``tags-only``, or ``validation`` for boxes of validation videos.
        method: name in ``METHODS``.
        presence: slope and offset of the log-odds of presence as a function of the CAM's peak
            (:mod:`colocam.temporal.presence`); None: not calibrated.
        color_mean: post-processing by colour, ``off``, ``frame`` or ``clip``; τ was chosen on such maps.
        focus: post-processing by the class's CAM (:mod:`colocam.maps.focus`); τ was chosen on such maps.
        chooser: name in :data:`colocam.boxes.CHOOSERS`.
        class_size: side in pixels that the class is read at; None: ``size``.
        map_size: side of the heat maps in pixels; None: ``size``.
        normalise: the head takes pooled features of Euclidean norm 1.
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
    chooser: str = "largest"
    class_size: int | None = None
    map_size: int | None = None
    normalise: bool = False


def parse_card(text: str, origin: str, remedy: str = "train again or restore the file") -> Card:
    """Read a card from its JSON; errors name ``origin`` and the ``remedy``."""
    try:
        values = json.loads(text)
        if (found := values["format"]) != FORMAT:  # first, since another format may have other keys
            raise ColocamError(
                f"{origin} has format {found}, this colocam reads {FORMAT}: update colocam or train again"
            )
        return Card.model_validate_json(json.dumps(values))
    except (ValueError, LookupError, TypeError) as error:
        raise ColocamError(f"{origin} is not a colocam model card: {remedy}") from error

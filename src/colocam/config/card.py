"""The card of a trained model: everything besides its weights. Read without torch."""

import json
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from colocam.config import Backbone
from colocam.config.explain import explain
from colocam.config.number_types import Focus, Side
from colocam.errors import ColocamError
from colocam.types import MOST_LOOKS, ColorMean, ReadInMap
from colocam.utils.files import parse_json, stored

FORMAT = 2
"""Increased whenever a value in a card changes its meaning (2: presence is computed from peaks)."""


Share = Annotated[float, Field(ge=0, le=1)]
Looks = Annotated[int, Field(ge=1, le=MOST_LOOKS)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Channels = Annotated[int, Field(ge=1, le=1 << 16)]
LONGEST_TAG = 1000
"""Characters."""
Tag = Annotated[str, Field(min_length=1, max_length=LONGEST_TAG)]


class LearnedPrior(BaseModel):
    """The prior of which a model learned what stands out: more than tags (docs/method/prior.md).

    Attributes:
        name: the stem of its file's name.
        digest: SHA-256 of its file.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(max_length=LONGEST_TAG)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Card(BaseModel):
    """Everything that is needed to rebuild the network and to use its maps.

    Attributes:
        tags: names of the classes in the order of the logits.
        size: side of the square input in pixels.
        threshold: τ, relative to each map's maximum, chosen in training.
        threshold_from: how τ was chosen: ``tags-only``, ``validation`` for boxes of validation videos, or
            ``corrections``.
        class_thresholds: τ of each class, in the order of ``tags``, instead of ``threshold``; None: one for all.
        method: name in ``METHODS``.
        presence: slope and offset of the log-odds of presence as a function of the CAM's peak
            (:mod:`colocam.temporal.presence`); None: not calibrated.
        color_mean: post-processing by color, ``off``, ``frame`` or ``clip``; τ was chosen on such maps.
        color_growth: size of the boxes with color mean relative to those without it, which decided about it
            (docs/method/color-mean.md); None: it was set, or true boxes decided.
        focus: power of the post-processing by the class's CAM (:mod:`colocam.maps.postprocess`), true is 1; τ was
            chosen on such maps.
        chooser: name in :data:`colocam.boxes.CHOOSERS`.
        class_size: side in pixels that the class is read at; None: ``size``.
        map_size: side of the heat maps in pixels; None: ``size``.
        normalize: the head takes pooled features of Euclidean norm 1.
        crop_head: the class is read from a crop around the object (:mod:`colocam.models.localizer_net`).
        class_in_map: the class is read from features that are weighted by the map; ``large``: and of the whole frame.
        looks: how often each frame is looked at where nobody says it (docs/method/second-look.md).
        prior: of which it or its teacher learned; None: it learned from tags alone.
        prior_decoder: channels of the decoder that draws what the prior sees and weighs the maps; None: there is none.
        imagenet: width of the features that ImageNet's 1,000 classes are read from, where their names help to read the
            class (:mod:`colocam.models.imagenet_names`); None: they do not.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT
    method: str
    tags: Annotated[tuple[Tag, ...], Field(min_length=1)]
    size: Side
    threshold: Share
    threshold_from: str
    class_thresholds: tuple[Share, ...] | None = None
    backbone: Backbone
    decoder: Annotated[tuple[Channels, ...], Field(min_length=1, max_length=16)]
    presence: tuple[Finite, Finite] | None = None
    color_mean: ColorMean = "off"
    color_growth: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    focus: Focus = False
    chooser: str = "largest"
    class_size: Side | None = None
    map_size: Side | None = None
    normalize: Annotated[bool, Field(validation_alias=AliasChoices("normalize", "normalise"))] = False  # up to 0.2.0
    crop_head: bool = False
    class_in_map: ReadInMap = False
    looks: Looks = 1
    prior: LearnedPrior | None = None
    prior_decoder: Annotated[tuple[Channels, ...], Field(min_length=1, max_length=16)] | None = None
    imagenet: Channels | None = None

    def focus_power(self, *, on: bool | None = None) -> float:
        """Power of the focus, 0 for none; ``on`` overrides whether there is one."""
        return float(self.focus) if on is None else float(on and (self.focus or 1.0))

    @model_validator(mode="after")
    def _values_fit(self) -> "Card":
        if self.class_thresholds is not None and len(self.class_thresholds) != len(self.tags):
            raise ValueError(f"class_thresholds has {len(self.class_thresholds)} values for {len(self.tags)} tags")
        if self.imagenet is not None and self.crop_head:
            raise ValueError("imagenet and crop_head exclude each other")
        for name, side in (("class_size", self.class_size), ("map_size", self.map_size)):
            if side is not None and self.size % side:
                raise ValueError(f"{name} must divide size {self.size}, got {side}")
        return self


def read_card(folder: Path) -> Card:
    """Read the card of the model in a run folder."""
    path = folder / "model.json"
    if not stored(path).is_file():
        raise ColocamError(f"no trained model in {folder} (model.json is missing): finish 'colocam train' first")
    return parse_card(path.read_bytes(), str(path))


def parse_card(text: str | bytes, origin: str, remedy: str = "train again or restore the file") -> Card:
    """Read a card from its JSON; errors name ``origin`` and the ``remedy``."""
    try:
        values = parse_json(text)
        if (found := values["format"]) != FORMAT:  # first, since another format may have other keys
            raise ColocamError(
                f"{origin} has format {str(found)[:20]}, this colocam reads {FORMAT}: update colocam or train again"
            )
        return Card.model_validate_json(json.dumps(values))
    except ValidationError as error:
        foreign = error.errors()[0]["type"] in {"missing", "extra_forbidden", "json_invalid"}
        problem = "" if foreign else f" ({explain(error, Card)})"
        raise ColocamError(f"{origin} is not a colocam model card{problem}: {remedy}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise ColocamError(f"{origin} is not a colocam model card: {remedy}") from error

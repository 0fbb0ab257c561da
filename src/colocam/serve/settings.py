"""Settings of a server: what a person chose for one video or for all of them, and what a model finds with that."""

import hashlib
import json
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from colocam.inference.localizer import Localizer

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Wanted(NamedTuple):
    """How to localise in one video.

    Attributes:
        tag: class that the video shows; None: the classifier finds it.
        presence: no box where the probability of presence is below this; None: all boxes.
        threshold: of the maps, relative to their maxima; None: that of the model.
        instances: find every object, not only one a frame.
        segmenter: key of the segmenter that refines boxes to masks; "": none does.
    """

    tag: str | None = None
    presence: float | None = None
    threshold: float | None = None
    instances: bool = False
    segmenter: str = ""

    def key(self, model: str) -> str:
        """Stands for the results of a model with these settings: the key of the model alone, where all are defaults."""
        if self == Wanted():
            return model
        known = 5 if self.segmenter else 4 if self.instances else 3  # keys of earlier versions had fewer settings
        stated = self[:known]
        return f"{model}-{hashlib.blake2b(json.dumps(stated).encode(), digest_size=6).hexdigest()}"


class Settings(BaseModel):
    """Settings of all videos, see :class:`Wanted`; ``refine``: use the segmenter, where the server has one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    presence: Share | None = None
    threshold: Share | None = None
    instances: bool = False
    refine: bool = True

    def of(self, tag: str, segmenter: str = "") -> Wanted:
        """The settings for a video of a class; "": nobody set one. ``segmenter``: key of that of the server."""
        used = segmenter if self.refine else ""
        return Wanted(tag or None, self.presence, self.threshold, self.instances, used)


def with_wanted(localizer: Localizer, wanted: Wanted) -> Localizer:
    """A model with these settings; what it cannot do is left out, as they may have been chosen for another model."""
    tag = wanted.tag if wanted.tag in localizer.tags else None
    presence = None if localizer.card.presence is None else wanted.presence
    if not wanted.segmenter:
        localizer = localizer.without_segmenter()
    if (tag, presence, wanted.threshold, wanted.instances) == Wanted()[:4]:
        return localizer
    return localizer.with_options(tag=tag, presence=presence, threshold=wanted.threshold, instances=wanted.instances)

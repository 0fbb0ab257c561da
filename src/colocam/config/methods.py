"""The trained methods by name: which settings of stage 2 make CoLo-CAM, F-CAM or TCAM, and how to add your own.

All methods are trained by the same loop. Register one, and ``methods: [mine]`` in a configuration trains it:

>>> from colocam.config import METHODS, Method
>>> METHODS["mine"] = Method("Mine, no CRF", {"losses": {"crf": 0.0}})
>>> del METHODS["mine"]
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Method(NamedTuple):
    """A trained method.

    Attributes:
        title: what reports print.
        settings: the keys of ``localizer`` that the method sets, with their values; all others are the user's.
    """

    title: str
    settings: Mapping[str, Any]


_PUBLISHED = {
    "losses": {"coloc": 0.0},
    "seeds": {"region": "mask", "blobs": "all", "foreground": 1, "background": 1},
    "rounds": 1,
    "teacher": None,
    "color_mean": "off",
    "focus": False,
    "chooser": "largest",
    "threshold": None,
}
"""F-CAM and TCAM as published: one seed of each kind per frame, one round, maps without post-processing, the
largest contour."""

METHODS: dict[str, Method] = {
    "colocam": Method("CoLo-CAM", {}),
    "fcam": Method("F-CAM", _PUBLISHED),
    "tcam": Method("TCAM", {**_PUBLISHED, "pool": 1}),
}
"""Name in the configuration → method. CoLo-CAM without its colour term is ``localizer.losses.coloc=0``."""

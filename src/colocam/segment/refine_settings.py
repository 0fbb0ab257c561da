"""How heat maps become prompts, and how masks are compared with heat maps and with each other."""

from typing import NamedTuple


class RefineSettings(NamedTuple):
    """Settings of :func:`colocam.segment.refine.refine`; they suit the maps of a kind of model.

    Attributes:
        thresholds: τ of the boxes that are prompts, relative to the maximum of the map.
        fade: foreground probabilities below which a pixel does not count in the comparison with masks, and from which
            it counts fully.
        quality: exponent of the segmenter's own expectation of a mask's quality, a factor of the soft IoU.
        agreement: weight of the agreement with the other masks of the frame.
        jump: cost of a change to a box without overlap from one frame to the next, in units of the score.
    """

    thresholds: tuple[float, ...] = (0.085, 0.16, 0.26, 0.35, 0.5)
    fade: tuple[float, float] = (0.0, 0.5)
    quality: float = 4.0
    agreement: float = 2.0
    jump: float = 0.3


SETTINGS = RefineSettings()

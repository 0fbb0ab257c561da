"""The registry of choosers: which of a map's contours is the object.

A chooser gives the candidate boxes of each frame with scores, the chosen one first. The path through a shot
(:mod:`colocam.temporal.path`) then chooses among the eligible ones by the neighbouring frames.

>>> CHOOSERS["mine"] = Chooser("my rule", my_rule)                              # doctest: +SKIP
"""

from collections.abc import Callable
from typing import NamedTuple

from colocam.boxes.candidates import Candidates, candidate_boxes
from colocam.boxes.consensus import consensus_boxes
from colocam.boxes.quantize import Maps
from colocam.errors import ArgumentError, suggest


class Chooser(NamedTuple):
    """A rule that finds the object's box in a map.

    Attributes:
        title: what help and reports print.
        candidates: (maps (B, H, W) as floats in 0–1 or 8-bit levels, τ) → the candidates of each map.
        by_shot: ``evaluate`` lets the frames of a shot choose together; false: each frame by itself, as published.
    """

    title: str
    candidates: Callable[[Maps, float], list[Candidates]]
    by_shot: bool = True


CHOOSERS: dict[str, Chooser] = {
    "largest": Chooser("largest contour at τ, as published", candidate_boxes, by_shot=False),
    "consensus": Chooser("consensus of the thresholds around τ", consensus_boxes),
}


def find_chooser(name: str) -> Chooser:
    """The chooser of that name."""
    if name not in CHOOSERS:
        raise ArgumentError("chooser", f"{name}{suggest(name, list(CHOOSERS))}")
    return CHOOSERS[name]

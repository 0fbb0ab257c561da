"""What to expect of a training: warnings where classes have few videos, or where their class is not learnt."""

from collections import Counter
from math import log
from typing import NamedTuple

from colocam.config import Config
from colocam.data.catalogue import Catalogue

FEW = 10
"""Videos of a class, or shots of its videos, below which training warns. With 10 a class (a game, 8 classes, preset
``resnet50``) 84 % of the classes were right; with 6 a class a small world of 4 classes was trained to 31 %, at a chance
of 25 %."""
NEAR = 0.25
"""An accuracy nearer to chance than this share of the way to 100 % counts as near."""


class Expected(NamedTuple):
    """A point of the curve of ``colocam study videos``: what so many tagged clips of each class gave, in percent."""

    videos: int
    corloc: float
    accuracy: float


CURVE: tuple[Expected, ...] = ()
"""Measured points; the warning quotes the one nearest to the tag with the fewest videos."""


def few_videos(catalogue: Catalogue, config: Config) -> str | None:
    """The warning for classes with fewer than :data:`FEW` clips to learn from; None where all have enough."""
    counts = Counter(clip.tag for clip in catalogue.clips if clip.split != "test")
    few = sorted((count, tag) for tag, count in counts.items() if count < FEW)
    if not few:
        return None
    named = ", ".join(f"{tag} {count}" for count, tag in few[:5])
    more = f" and {len(few) - 5} more" if len(few) > 5 else ""
    told = "expect many wrong classes and boxes"
    if CURVE:
        like = min(CURVE, key=lambda point: abs(log(point.videos / few[0][0])))
        told = (
            f"with {like.videos}, {like.accuracy:.0f} % of the classes and {like.corloc:.0f} % of the boxes were right"
        )
    return (
        f"warning: {len(few)} of {len(counts)} tags have fewer than {FEW} videos or shots ({named}{more}): {told}; "
        f"add videos with other backgrounds{_pretrained(config)}"
    )


def near_chance(accuracy: float, classes: int, config: Config) -> str | None:
    """The warning for a classifier that is hardly better than chance on held-out videos; None for a better one.

    Args:
        accuracy: share of the frames whose class is right, mean over classes, 0–1: chance is 1 / classes.
        classes: their number.
        config: of the run.
    """
    chance = 1 / classes
    if accuracy >= chance + NEAR * (1 - chance):
        return None
    return (
        f"warning: the class is right in {100 * accuracy:.0f} % of the frames of held-out videos, where chance is "
        f"{100 * chance:.0f} %: the maps will hardly show the tags; add videos, choose tags that differ in appearance"
        f"{_pretrained(config)}"
    )


def _pretrained(config: Config) -> str:
    """The advice to use pretrained weights, where the run does not."""
    return "" if config.backbone.pretrained else ", or begin with pretrained weights (--preset resnet50)"

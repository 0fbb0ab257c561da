"""Titles of methods, and their order in reports."""

from collections.abc import Iterable

from colocam.cams import CAMS
from colocam.config import METHODS

MAIN = "colocam"
"""The method whose gain over the first one is reported."""


def method_title(name: str) -> str:
    """Title of a CAM, a trained method or a training phase; the name itself where it is not registered."""
    if name == "classifier":
        return "Classifier"
    entry = CAMS.get(name) or METHODS.get(name)
    return name if entry is None else entry.title


def refined_title(method: str, segmenter: str) -> str:
    """Title of a method whose boxes a segmenter refined, e.g. ``CoLo-CAM + MobileSAM``."""
    return f"{method_title(method)} + {segmenter}"


def ordered_methods(names: Iterable[str]) -> list[str]:
    """CoLo-CAM last, the others as they come: an evaluation lists the source of the seeds first, the baseline."""
    return sorted(names, key=lambda name: name == MAIN)

"""Titles of methods, and their order in reports."""

from collections.abc import Iterable

from colocam.config import METHODS

MAIN = "colocam"
"""The method whose gain over the first one is reported."""


def method_title(name: str) -> str:
    """Title of a CAM, a trained method or a training phase; the name itself where it is not registered."""
    if name == "classifier":
        return "Classifier"
    if name in METHODS:
        return METHODS[name].title
    try:
        from colocam.cams import CAMS  # noqa: PLC0415 - scores of files need no torch
    except ModuleNotFoundError:  # without torch there are no CAMs
        return name
    return CAMS[name].title if name in CAMS else name


def refined_title(method: str, segmenter: str) -> str:
    """Title of a method whose boxes a segmenter refined, e.g. ``CoLo-CAM + MobileSAM``."""
    return f"{method_title(method)} + {segmenter}"


def ordered_methods(names: Iterable[str]) -> list[str]:
    """CoLo-CAM last, the others as they come: an evaluation lists the source of the seeds first, the baseline."""
    return sorted(names, key=lambda name: name == MAIN)

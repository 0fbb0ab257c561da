"""Class activation maps of a frozen classifier: where it looked for its class."""

from colocam.cams.normalise import full_size, min_max
from colocam.cams.registry import METHODS, extract

__all__ = ["METHODS", "extract", "full_size", "min_max"]

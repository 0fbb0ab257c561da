"""Class activation maps of a frozen classifier: where it looked for its class."""

from colocam.cams.methods import METHODS, extract
from colocam.cams.normalise import full_size, min_max

__all__ = ["METHODS", "extract", "full_size", "min_max"]

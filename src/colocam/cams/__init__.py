"""Class activation maps of a frozen classifier: where it looked for its class."""

from colocam.cams.layercam import layercam
from colocam.cams.normalise import full_size, min_max

__all__ = ["full_size", "layercam", "min_max"]

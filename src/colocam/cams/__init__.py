"""Class activation maps of a frozen classifier: where it looked for its class."""

from colocam.cams.layercam import layercam
from colocam.cams.normalise import min_max

__all__ = ["layercam", "min_max"]

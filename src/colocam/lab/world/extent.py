"""The true box of an object, from its mask."""

import numpy as np

from colocam.lab.world.textures import Array
from colocam.types import Box

COVERED = 0.4
"""Opacity from which a pixel counts as the object's; below one half, so that thin legs in motion still count."""
MOSTLY_SEEN = 0.3
"""Hidden share below which the box encloses the whole object, as an annotator would draw it."""
FEWEST_PIXELS = 25
SMALLEST_SHARE = 0.06


def true_box(own: Array, before: Array, whole: float) -> tuple[Box | None, float]:
    """The box of an object, and the share of it that is hidden.

    Of the object's pixels inside the frame, those under something at least half opaque are hidden. Where less than
    30 % is hidden, the box holds the object's whole extent inside the frame; otherwise only what is visible. There is
    no box where fewer than 25 pixels, or less than 6 % of the whole object inside and outside the frame, are visible.

    Args:
        own: the object's opacity (h, w), as if nothing stood before it.
        before: opacity (h, w) of what stands before it.
        whole: pixels that the whole object would cover on an endless frame.

    Returns:
        The box in pixels or None: x1, y1 are the outer edges of the first column and row, x2, y2 those of the last
        (last index + 1). Then the hidden share of what is inside the frame, 0–1.
    """
    inside = own >= COVERED
    visible = inside & (before < 0.5)
    covered, seen = int(np.count_nonzero(inside)), int(np.count_nonzero(visible))
    hidden = 1 - seen / covered if covered else 0.0
    if seen < max(FEWEST_PIXELS, SMALLEST_SHARE * whole):
        return None, hidden
    mask = inside if hidden < MOSTLY_SEEN else visible
    columns, rows = np.flatnonzero(mask.any(0)), np.flatnonzero(mask.any(1))
    return Box(float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)), hidden

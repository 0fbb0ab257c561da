"""Scale boxes between frame sizes, for instance from the model's square input to the original video."""

from typing import Any

import numpy as np
import numpy.typing as npt


def scale_boxes(
    boxes: npt.NDArray[np.floating] | npt.NDArray[np.integer[Any]],
    from_size: tuple[int, int],
    to_size: tuple[int, int],
) -> npt.NDArray[np.float32]:
    """Scale boxes (..., 4) x1, y1, x2, y2 from a frame of (width, height) to another; each axis by its own factor."""
    x, y = to_size[0] / from_size[0], to_size[1] / from_size[1]
    return (np.asarray(boxes, np.float64) * (x, y, x, y)).astype(np.float32)

"""Post-processing of a network's maps: colour mean, focus on a class, both or neither."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from colocam.maps.color_mean import arrays_with_color_mean, with_color_mean
from colocam.maps.focus import array_focus_of, arrays_focused, focus_of, focused
from colocam.types import Float32Array

if TYPE_CHECKING:
    from torch import Tensor


def postprocess(frames: "Tensor", maps: "Tensor", sequences: "Tensor | None", activations: "Tensor | None") -> "Tensor":
    """Post-processed maps (B, H, W) in 0–1.

    Args:
        frames: (B, 3, H, W) RGB in 0–255.
        maps: (B, H, W) in 0–1.
        sequences: (B,) ids; frames of one id share a colour mean, see :mod:`colocam.maps.color_mean`; None: none.
        activations: (B, h, w) LayerCAM of each frame's class (:mod:`colocam.maps.focus`); None: no focus.
    """

    def complete(drawn: "Tensor") -> "Tensor":
        return drawn if sequences is None else with_color_mean(frames, drawn, sequences)

    if activations is None:
        return complete(maps)
    return focused(maps, focus_of(activations, (maps.shape[1], maps.shape[2])), complete)


def arrays_postprocess(
    frames: npt.NDArray[np.uint8],
    maps: Float32Array | npt.NDArray[np.uint8],
    sequences: npt.NDArray[np.int64] | None,
    activations: Float32Array | None,
) -> Float32Array | npt.NDArray[np.uint8]:
    """Twin of :func:`postprocess` without torch; frames are (B, H, W, 3), and maps may be 8-bit levels."""
    if sequences is None and activations is None:
        return maps
    s: Float32Array = np.divide(maps, 255 if maps.dtype == np.uint8 else 1, dtype=np.float32)

    def complete(drawn: Float32Array) -> Float32Array:
        return drawn if sequences is None else arrays_with_color_mean(frames, drawn, sequences)

    if activations is None:
        return complete(s)
    return arrays_focused(s, array_focus_of(activations, (s.shape[1], s.shape[2])), complete)

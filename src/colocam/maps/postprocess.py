"""Post-processing of a network's maps: colour mean, focus on a class, both or neither."""

from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from colocam.maps.color_mean import arrays_with_color_mean, with_color_mean
from colocam.maps.focus import array_focus_of, arrays_focused, focus_of, focused
from colocam.types import Float32Array

if TYPE_CHECKING:
    from torch import Tensor


def postprocess(
    frames: "Tensor",
    maps: "Tensor",
    sequences: "Tensor | None",
    activations: "Tensor | None",
    power: float = 1.0,
) -> "Tensor":
    """Post-processed maps (B, H, W) in 0–1.

    Args:
        frames: (B, 3, k·H, k·W) RGB in 0–255; colours are means over squares of k × k pixels.
        maps: (B, H, W) in 0–1.
        sequences: (B,) ids; frames of one id share a colour mean, see :mod:`colocam.maps.color_mean`; None: none.
        activations: (B, h, w) LayerCAM of each frame's class (:mod:`colocam.maps.focus`); None: no focus.
        power: of the focus.
    """
    colors = None if sequences is None else _averaged(frames, maps.shape[-1])

    def complete(drawn: "Tensor") -> "Tensor":
        return drawn if colors is None or sequences is None else with_color_mean(colors, drawn, sequences)

    if activations is None:
        return complete(maps)
    return focused(maps, focus_of(activations, (maps.shape[1], maps.shape[2]), power), complete)


def arrays_postprocess(
    frames: npt.NDArray[np.uint8],
    maps: Float32Array | npt.NDArray[np.uint8],
    sequences: npt.NDArray[np.int64] | None,
    activations: Float32Array | None,
    power: float = 1.0,
) -> Float32Array | npt.NDArray[np.uint8]:
    """Twin of :func:`postprocess` without torch; frames are (B, k·H, k·W, 3), and maps may be 8-bit levels."""
    if sequences is None and activations is None:
        return maps
    s: Float32Array = np.divide(maps, 255 if maps.dtype == np.uint8 else 1, dtype=np.float32)
    colors = None if sequences is None else _averaged_arrays(frames, maps.shape[-1])

    def complete(drawn: Float32Array) -> Float32Array:
        return drawn if colors is None or sequences is None else arrays_with_color_mean(colors, drawn, sequences)

    if activations is None:
        return complete(s)
    return arrays_focused(s, array_focus_of(activations, (s.shape[1], s.shape[2]), power), complete)


def _averaged(frames: "Tensor", side: int) -> "Tensor":
    """Frames (B, 3, k·H, k·W) with W = ``side``, averaged over squares to (B, 3, H, W) and rounded to 8 bits."""
    if (factor := frames.shape[-1] // max(side, 1)) <= 1:
        return frames
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not

    return torch.floor(torch.nn.functional.avg_pool2d(frames.float(), factor) + 0.5)


def _averaged_arrays(frames: npt.NDArray[np.uint8], side: int) -> npt.NDArray[np.uint8]:
    """Twin of :func:`_averaged` for (B, k·H, k·W, 3)."""
    if (factor := frames.shape[2] // max(side, 1)) <= 1:
        return frames
    size = side, frames.shape[1] // factor
    return np.stack([cv2.resize(frame, size, interpolation=cv2.INTER_AREA) for frame in frames])

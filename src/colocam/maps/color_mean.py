"""The colour mean: the mean of the maps over all pixels of similar colour, in one frame or in a window of frames.

M_i = (W S)_i / (W 1)_i with W_ij = exp(-|c_i - c_j|² / 2σ²) over all pixels i, j of a sequence. This is the
idea of eq. 4 without training: pixels of the same colour get the same activation, wherever the object moves. A map that
covers half of an object, or covers it in half of the frames, is completed by the pixels of its colours
(docs/method/colour-mean.md).
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.losses.affinity.basis import color_basis
from colocam.types import Float32Array

if TYPE_CHECKING:
    from torch import Tensor


SHARE = 2 / 3
"""Share of the colour mean in the result; the rest is the map itself, which has the position."""
SIGMA = 15.0
"""σ in colour levels, as in eq. 4."""
TOLERANCE = 5e-3


def with_color_mean(frames: "Tensor", maps: "Tensor", sequences: "Tensor") -> "Tensor":
    """(1 - share) S + share M.

    Args:
        frames: (B, 3, H, W) RGB in 0–255.
        maps: S, (B, H, W) in 0–1.
        sequences: (B,) int64 ids from 0: frames with one id share their colours.

    Returns:
        (B, H, W) float32 in 0–1.
    """
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not

    from colocam.losses.affinity import engine  # noqa: PLC0415

    _check_shapes((len(frames), *frames.shape[2:], frames.shape[1]), maps.shape, sequences.shape)

    groups = int(sequences.max()) + 1 if len(sequences) else 0
    with torch.autocast(maps.device.type, enabled=False):
        s = maps.float().flatten(1)
        # S − ½ instead of S: the error of the product is relative to the sum of absolute values
        values = torch.stack([torch.ones_like(s), s - 0.5], dim=1)
        gaussian = engine.Gaussian(SIGMA, TOLERANCE)
        mass, tilt = engine.product(frames.flatten(2), values, sequences.to(s.device), groups, gaussian).unbind(1)
        return torch.lerp(s, (0.5 + tilt / mass).clamp(0, 1), SHARE).view_as(maps)


def arrays_with_color_mean(
    frames: npt.NDArray[np.uint8], maps: Float32Array | npt.NDArray[np.uint8], sequences: npt.NDArray[np.int64]
) -> Float32Array:
    """Twin of :func:`with_color_mean` without torch.

    Args:
        frames: (B, H, W, 3) RGB.
        maps: (B, H, W) in 0–1, or their 8-bit levels.
        sequences: (B,) ids.
    """
    from colocam.losses.affinity.cpu import ColorSequence  # noqa: PLC0415 - the arrays of a light installation

    _check_shapes(frames.shape, maps.shape, sequences.shape)
    basis, out = color_basis(SIGMA, TOLERANCE), np.empty(maps.shape, np.float32)
    anywhere = np.ones((1, out[:1].size), np.float32)
    for number in np.unique(sequences):
        mine = sequences == number
        s = maps[mine].reshape(int(mine.sum()), -1)
        s = s / np.float32(255) if s.dtype == np.uint8 else s
        values = np.stack([np.ones_like(s), s - np.float32(0.5)], axis=1)
        rgb = frames[mine].reshape(len(s), -1, 3).transpose(0, 2, 1).astype(np.float32, order="C")
        colors = ColorSequence(rgb, anywhere, basis)
        product = np.empty_like(values)
        colors.product(colors.spectrum(values), product)
        mean = np.clip(0.5 + product[:, 1] / product[:, 0], 0, 1)
        out[mine] = ((1 - SHARE) * s + SHARE * mean).reshape(-1, *maps.shape[1:])
    return out


def _check_shapes(frames: tuple[int, ...], maps: tuple[int, ...], sequences: tuple[int, ...]) -> None:
    """Refuse shapes that do not fit each other, since compiled code does not check its bounds."""
    if len(maps) != 3 or frames != (*maps, 3) or sequences != maps[:1]:
        raise ColocamError(
            f"the colour mean needs frames (B, H, W, 3), maps (B, H, W) and sequences (B,), "
            f"got {tuple(frames)}, {tuple(maps)} and {tuple(sequences)}"
        )

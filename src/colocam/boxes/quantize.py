"""Maps as 8-bit levels, at which the published protocol applies thresholds; arrays need no torch."""

from typing import TYPE_CHECKING, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.types import Levels

if TYPE_CHECKING:
    from torch import Tensor

Array = npt.NDArray[np.floating] | Levels
Maps: TypeAlias = "Tensor | Array"
"""(B, H, W): floats in 0–1, or uint8 levels taken as they are."""


@overload
def to_8bit(maps: "Tensor") -> "Tensor": ...
@overload
def to_8bit(maps: Array) -> Levels: ...
def to_8bit(maps: Maps) -> "Tensor | Levels":
    """Levels ⌊255·map⌋ of maps in 0–1, uint8, same shape and device; uint8 maps pass through.

    Half-precision maps are converted to float32 first, since 255·map needs more bits. Values are not checked: on a GPU
    that would make the host wait.
    """
    if isinstance(maps, np.ndarray):
        if maps.dtype == np.uint8:
            return np.asarray(maps, np.uint8)
        return (255 * maps.astype(np.result_type(maps, np.float32), copy=False)).astype(np.uint8)
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not

    if maps.dtype == torch.uint8:
        return maps
    wide = maps if maps.dtype == torch.float64 else maps.float()
    return (255 * wide).to(torch.uint8)


def checked_levels(maps: Maps) -> Levels:
    """``to_8bit`` as a contiguous (B, H, W) array in host memory, after checking shape and values."""
    if isinstance(maps, np.ndarray):
        _check(maps, floating=np.issubdtype(maps.dtype, np.floating))
        return np.ascontiguousarray(to_8bit(maps))
    tensor = maps.detach()
    _check(tensor, floating=tensor.is_floating_point())
    return np.ascontiguousarray(to_8bit(tensor).cpu().numpy())


def _check(maps: Maps, *, floating: bool) -> None:
    if maps.ndim != 3 or 0 in maps.shape[1:]:
        raise ColocamError(f"maps must have shape (frames, height, width), got {tuple(maps.shape)}")
    if str(maps.dtype).removeprefix("torch.") == "uint8":
        return
    if not floating:
        raise ColocamError(f"maps must be floats in 0–1 or uint8 levels, got {maps.dtype}")
    if not bool(((maps >= 0) & (maps <= 1)).all()):
        raise ColocamError("maps must be in 0–1 without NaN: normalise them first")

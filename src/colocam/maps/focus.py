"""Focus: a decoder's map drawn towards the tagged class.

A decoder learns one foreground for all classes, so it also lights up what merely looks like an object: a hand beside
the bird, the bridge behind the motorbike. The frozen classifier knows better which of these is the class, and coarsely
where. With A the class's LayerCAM at the resolution of the features, scaled to 0–1, and G a Gaussian,

    F = G A / max(G A),      S' = F ⊙ M(F ⊙ S),

where M completes a map by colour (:mod:`colocam.maps.color_mean`), or is the identity; S' is then scaled back to the
maximum that S had (docs/method/focus.md).
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from colocam.types import Float32Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor


WIDTH = 1 / 14
"""σ of G in sides of the frame: two places of 28 × 28 features."""


def focus_of(activations: "Tensor", size: tuple[int, int]) -> "Tensor":
    """F of each frame.

    Args:
        activations: A, (B, h, w) LayerCAM of the frame's class, of any scale.
        size: height and width of the maps.

    Returns:
        (B, *size) in 0–1, 1 at the maximum; all 1 where A is constant, for then it does not say where.
    """
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not
    import torch.nn.functional as F  # noqa: PLC0415

    from colocam.cams.normalise import min_max  # noqa: PLC0415

    rows, columns = (_gaussian_on(activations.device, side) for side in activations.shape[1:])
    spread = rows @ min_max(activations.float()) @ columns.T
    peak = spread.amax(dim=(1, 2), keepdim=True)
    focus = torch.where(peak > 0, spread / torch.where(peak > 0, peak, 1.0), 1.0)
    return F.interpolate(focus[:, None], size=size, mode="bilinear", align_corners=False)[:, 0]


def array_focus_of(activations: Float32Array, size: tuple[int, int]) -> Float32Array:
    """Twin of :func:`focus_of` without torch."""
    low = activations.min(axis=(1, 2), keepdims=True)
    spread = activations.max(axis=(1, 2), keepdims=True) - low
    scaled = np.where(spread > 0, (activations - low) / np.where(spread > 0, spread, 1), 0)
    rows, columns = (_gaussian(side) for side in activations.shape[1:])
    wide = (rows @ scaled @ columns.T).astype(np.float32)
    peak = wide.max(axis=(1, 2), keepdims=True)
    focus = np.where(peak > 0, wide / np.where(peak > 0, peak, 1), np.float32(1))
    return np.stack([cv2.resize(one, size[::-1], interpolation=cv2.INTER_LINEAR) for one in focus])


def focused(maps: "Tensor", focus: "Tensor", complete: Callable[["Tensor"], "Tensor"]) -> "Tensor":
    """S' of maps S and focus F, (B, H, W) each; ``complete`` is M."""
    drawn = focus * complete(focus * maps)
    before, after = (m.amax(dim=(1, 2), keepdim=True) for m in (maps, drawn))
    return drawn * (before / after.clamp(min=1e-12))


def arrays_focused(
    maps: Float32Array, focus: Float32Array, complete: Callable[[Float32Array], Float32Array]
) -> Float32Array:
    """Twin of :func:`focused` without torch."""
    drawn = focus * complete(focus * maps)
    before, after = (m.max(axis=(1, 2), keepdims=True) for m in (maps, drawn))
    scaled: Float32Array = drawn * (before / np.maximum(after, np.float32(1e-12)))
    return scaled


def of_classes(activations: "Tensor", classes: "Tensor") -> "Tensor":
    """(B, K, h, w) of all classes, (B,) class of each frame → (B, h, w)."""
    import torch  # noqa: PLC0415

    return activations[torch.arange(len(classes), device=classes.device), classes]


def classes_of(logits: "Tensor", sequences: "Tensor", tag: int | None) -> "Tensor":
    """(B,) class that each frame is focused on: ``tag``, or the likeliest one of all frames of its sequence.

    Args:
        logits: (B, K).
        sequences: (B,) int64 ids from 0, in host memory.
        tag: what the video is known to show.
    """
    import torch  # noqa: PLC0415

    if tag is not None:
        return torch.full((len(logits),), tag, device=logits.device)
    members = torch.nn.functional.one_hot(sequences).to(logits.device, logits.dtype, non_blocking=True)
    return (members @ (members.T @ logits)).argmax(1)  # sums in a fixed order, which index_add has not on a GPU


def array_classes_of(logits: Float32Array, sequences: npt.NDArray[np.int64], tag: int | None) -> npt.NDArray[np.int64]:
    """Twin of :func:`classes_of` without torch."""
    if tag is not None:
        return np.full(len(logits), tag)
    sums = np.zeros_like(logits)
    np.add.at(sums, sequences, logits)
    best: npt.NDArray[np.int64] = sums[sequences].argmax(1)
    return best


@lru_cache(maxsize=16)
def _gaussian_on(device: "torch.device", side: int) -> "Tensor":
    """The same on a device, copied once: a copy from the host waits for all that the device has to do before it."""
    import torch  # noqa: PLC0415

    return torch.from_numpy(_gaussian(side)).to(device)


@cache
def _gaussian(side: int) -> Float32Array:
    """G along one axis, (side, side): each row a mean, so that a map does not fade towards the frame's edge."""
    at = np.arange(side) / side
    weights = np.exp(-((at[:, None] - at) ** 2) / (2 * WIDTH**2))
    means: Float32Array = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return means

"""Focus: weight a decoder's map by the region of the tagged class.

A decoder learns one foreground for all classes, so it also activates on other objects: a hand beside the bird, the
bridge behind the motorbike. The frozen classifier knows coarsely where the class is. With A the LayerCAM of the class
at the resolution of the features, scaled to 0–1, and G a Gaussian,

    F = (G A / max(G A))^p,      S' = F ⊙ M(F ⊙ S),

where M is the colour mean (:mod:`colocam.maps.color_mean`) or the identity, and p is the power of the focus. S' is then
scaled to the maximum of S (docs/method/focus.md).
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
"""σ of G relative to the side of the frame: two cells of 28 × 28 features."""


def focus_of(activations: "Tensor", size: tuple[int, int], power: float = 1.0) -> "Tensor":
    """F of each frame.

    Args:
        activations: A, (B, h, w) LayerCAM of the frame's class, of any scale.
        size: height and width of the maps.
        power: p; less than 1 keeps more of the object's ends.

    Returns:
        (B, *size) in 0–1, 1 at the maximum; all 1 where A is constant and has no position.
    """
    import torch  # noqa: PLC0415 - a tensor brings torch along, an array need not
    import torch.nn.functional as F  # noqa: PLC0415

    from colocam.cams.normalise import min_max  # noqa: PLC0415

    rows, columns = (_gaussian_on(activations.device, side) for side in activations.shape[1:])
    spread = rows @ min_max(activations.float()) @ columns.T
    peak = spread.amax(dim=(1, 2), keepdim=True)
    focus = torch.where(peak > 0, spread / torch.where(peak > 0, peak, 1.0), 1.0)
    wide = F.interpolate(focus[:, None], size=size, mode="bilinear", align_corners=False)[:, 0]
    return wide if power == 1 else wide**power


def array_focus_of(activations: Float32Array, size: tuple[int, int], power: float = 1.0) -> Float32Array:
    """Twin of :func:`focus_of` without torch."""
    low = activations.min(axis=(1, 2), keepdims=True)
    spread = activations.max(axis=(1, 2), keepdims=True) - low
    scaled = np.where(spread > 0, (activations - low) / np.where(spread > 0, spread, 1), 0)
    rows, columns = (_gaussian(side) for side in activations.shape[1:])
    wide = (rows @ scaled @ columns.T).astype(np.float32)
    peak = wide.max(axis=(1, 2), keepdims=True)
    focus = np.where(peak > 0, wide / np.where(peak > 0, peak, 1), np.float32(1))
    wider = np.stack([cv2.resize(one, size[::-1], interpolation=cv2.INTER_LINEAR) for one in focus])
    return wider if power == 1 else wider ** np.float32(power)


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
    """(B,) class that each frame is focused on: ``tag``, or the class with the largest sum of logits in its sequence.

    Args:
        logits: (B, K).
        sequences: (B,) int64 ids from 0, in host memory.
        tag: index of the class that the video shows; None: unknown.
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
    """The same on a device, cached: a copy from the host would wait for all earlier work of the device."""
    import torch  # noqa: PLC0415

    return torch.from_numpy(_gaussian(side)).to(device)


@cache
def _gaussian(side: int) -> Float32Array:
    """G along one axis, (side, side); rows sum to 1, so that a map does not fade towards the edge of the frame."""
    at = np.arange(side) / side
    weights = np.exp(-((at[:, None] - at) ** 2) / (2 * WIDTH**2))
    means: Float32Array = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return means

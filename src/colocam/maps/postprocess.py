"""Post-processing of a network's maps: color mean, focus on a class, both or neither.

Color mean: the mean of the maps over all pixels of similar color, in one frame or in a window of frames.
M_i = (W S)_i / (W 1)_i with W_ij = exp(-|c_i - c_j|² / 2σ²) over all pixels i, j of a sequence. This is the idea of
eq. 4 without training: pixels of the same color get the same activation, wherever the object moves. A map that covers
half of an object, or covers it in half of the frames, is completed by the pixels of its colors
(docs/method/color-mean.md).

Focus: weight a decoder's map by the region of the tagged class. A decoder learns one foreground for all classes, so it
also activates on other objects: a hand beside the bird, the bridge behind the motorbike. The frozen classifier knows
coarsely where the class is. With A the LayerCAM of the class at the resolution of the features, scaled to 0–1, and G a
Gaussian,

    F = (G A / max(G A))^p,      S' = F ⊙ M(F ⊙ S),

where M is the color mean or the identity, and p is the power of the focus. S' is then scaled to the maximum of S
(docs/method/focus.md). Functions that begin with ``array`` are twins without torch.

Tests: tests/maps/test_color_mean.py, tests/maps/test_focus.py.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.losses.affinity.basis import color_basis
from colocam.types import Float32Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor


SHARE = 2 / 3
"""Share of the color mean in the result; the rest is the map itself, which has the position."""
SIGMA = 15.0
"""σ in color levels, as in eq. 4."""
TOLERANCE = 5e-3
WIDTH = 1 / 14
"""σ of G relative to the side of the frame: two cells of 28 × 28 features."""


def postprocess(
    frames: "Tensor",
    maps: "Tensor",
    sequences: "Tensor | None",
    activations: "Tensor | None",
    power: float = 1.0,
) -> "Tensor":
    """Post-processed maps (B, H, W) in 0–1.

    Args:
        frames: (B, 3, k·H, k·W) RGB in 0–255; colors are means over squares of k × k pixels.
        maps: (B, H, W) in 0–1.
        sequences: (B,) ids; frames of one id share a color mean, see :mod:`colocam.maps.postprocess`; None: none.
        activations: (B, h, w) LayerCAM of each frame's class (:mod:`colocam.maps.postprocess`); None: no focus.
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


def with_color_mean(frames: "Tensor", maps: "Tensor", sequences: "Tensor") -> "Tensor":
    """(1 - share) S + share M.

    Args:
        frames: (B, 3, H, W) RGB in 0–255.
        maps: S, (B, H, W) in 0–1.
        sequences: (B,) int64 ids from 0: frames with one id share their colors.

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
        product = colors.product(colors.spectrum(values))
        mean = np.clip(0.5 + product[:, 1] / product[:, 0], 0, 1)
        out[mine] = ((1 - SHARE) * s + SHARE * mean).reshape(-1, *maps.shape[1:])
    return out


def _check_shapes(frames: tuple[int, ...], maps: tuple[int, ...], sequences: tuple[int, ...]) -> None:
    """Refuse shapes that do not fit each other, since compiled code does not check its bounds."""
    if len(maps) != 3 or frames != (*maps, 3) or sequences != maps[:1]:
        raise ColocamError(
            f"the color mean needs frames (B, H, W, 3), maps (B, H, W) and sequences (B,), "
            f"got {tuple(frames)}, {tuple(maps)} and {tuple(sequences)}"
        )


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

    from colocam.models.cam_formulas import min_max  # noqa: PLC0415

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
    """G along one axis, (side, side); rows sum to 1, so that a map does not fade toward the edge of the frame."""
    at = np.arange(side) / side
    weights = np.exp(-((at[:, None] - at) ** 2) / (2 * WIDTH**2))
    means: Float32Array = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return means

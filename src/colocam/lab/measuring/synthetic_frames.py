"""Synthetic frames for measurements: scenes with the statistics of photographs, and noise, the worst case."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

Kind = Literal["scene", "noise"]


def make_frames(count: int, size: int, kind: Kind, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Frames (count, 3, size, size) uint8 and maps (count, size, size) float32 of one moving blob.

    A scene is one sequence: coloured noise with amplitudes 1/f, as in photographs, mostly grey, a moving coloured
    object, and sensor noise.
    """
    generator = torch.Generator().manual_seed(seed)
    y, x = torch.meshgrid(*[torch.linspace(0, 1, size)] * 2, indexing="ij")
    t = torch.linspace(0, 6.28, count)[:, None, None]
    distance = (y - 0.5 - 0.2 * t.sin()).square() + (x - 0.5 - 0.2 * t.cos()).square()
    maps = torch.sigmoid(12 * (0.25 - distance.sqrt()) / 0.25)
    if kind == "noise":
        return torch.randint(0, 256, (count, 3, size, size), generator=generator, dtype=torch.uint8), maps
    field = torch.zeros(1, 3, size, size)
    cells = 2
    while cells < size:
        octave = torch.randn(1, 3, cells, cells, generator=generator) / cells**0.5
        field += functional.interpolate(octave, size=(size, size), mode="bicubic", align_corners=False)
        cells *= 2
    grey = field.mean(1, keepdim=True)
    background = 120 + 55 * grey + 22 * (field - grey)
    color = torch.tensor([190.0, 90.0, 60.0]).view(1, 3, 1, 1) + 25 * grey
    mask = (distance < 0.0625).float()[:, None]
    grain = torch.randn(count, 3, size, size, generator=generator) * 3
    frames = background * (1 - mask) + color * mask + grain
    return frames.round().clamp(0, 255).byte(), maps

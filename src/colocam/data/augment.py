"""Random crops, flips and colour changes of whole batches, on the device the batch is on."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Crops:
    """One crop and flip for each picture of a batch, so that a frame and its CAM are cut alike.

    Attributes:
        top: (B,) int64, first row.
        left: (B,) int64, first column.
        flip: (B,) bool, mirror left and right.
        size: side of the crop in pixels.
    """

    top: Tensor
    left: Tensor
    flip: Tensor
    size: int

    def apply(self, pictures: Tensor) -> Tensor:
        """(B, C, R, R) → (B, C, size, size)."""
        device = pictures.device
        steps = torch.arange(self.size, device=device)
        rows = self.top.to(device)[:, None] + steps
        columns = self.left.to(device)[:, None] + torch.where(self.flip.to(device)[:, None], steps.flip(0), steps)
        batch = torch.arange(len(pictures), device=device)[:, None, None]
        return pictures.permute(0, 2, 3, 1)[batch, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def draw_crops(batch: int, side: int, size: int, generator: torch.Generator) -> Crops:
    """Uniform crops of ``size`` out of ``side`` pixels, each flipped with probability ½."""
    span = side - size + 1
    top, left = torch.randint(span, (2, batch), generator=generator)
    return Crops(top, left, torch.rand(batch, generator=generator) < 0.5, size)


def whole(frames: Tensor, size: int) -> Tensor:
    """The whole frame at test size: (B, 3, R, R) uint8 → (B, 3, size, size) float in 0–255."""
    frames = frames.float()
    if frames.shape[-1] == size:
        return frames
    return F.interpolate(frames, size=(size, size), mode="bilinear", antialias=True)


def jitter(frames: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Random brightness, contrast and saturation of (B, 3, H, W) frames in 0–255, each by a factor in 1 ± strength."""
    if strength == 0:
        return frames
    factors = 1 + strength * (2 * torch.rand((3, len(frames), 1, 1, 1), generator=generator) - 1)
    brightness, contrast, saturation = factors.to(frames.device)
    frames = frames.float() * brightness
    frames = (frames - (mean := frames.mean(dim=(1, 2, 3), keepdim=True))) * contrast + mean
    frames = (frames - (grey := frames.mean(dim=1, keepdim=True))) * saturation + grey
    return frames.clamp(0, 255)

"""Random crops, flips and colour changes of whole batches, on the batch's device."""

import torch
import torch.nn.functional as F
from torch import Tensor


def sample_crops(batch: int, side: int, size: int, generator: torch.Generator) -> Tensor:
    """Sample uniform crops of ``size`` from ``side`` pixels: (B, 3) int64, first row, first column, mirrored or not."""
    span = side - size + 1
    corners = torch.randint(span, (batch, 2), generator=generator)
    mirrored = torch.randint(2, (batch, 1), generator=generator)
    return torch.cat([corners, mirrored], dim=1)


def crop(images: Tensor, crops: Tensor, size: int) -> Tensor:
    """Crop (B, C, R, R) to (B, C, size, size) by the (B, 3) ``crops``; frames and their CAMs take the same crops."""
    top, left, mirrored = crops.unbind(1)
    steps = torch.arange(size, device=images.device)
    rows = top[:, None] + steps
    columns = left[:, None] + torch.where(mirrored[:, None] > 0, size - 1 - steps, steps)
    batch = torch.arange(len(images), device=images.device)[:, None, None]
    return images.permute(0, 2, 3, 1)[batch, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def whole(frames: Tensor, size: int) -> Tensor:
    """Resize whole frames to the test size: (B, 3, R, R) uint8 → (B, 3, size, size) float in 0–255."""
    frames = frames.float()
    if frames.shape[-1] == size:
        return frames
    return F.interpolate(frames, size=(size, size), mode="bilinear", antialias=True)


def sample_jitter(batch: int, strength: float, generator: torch.Generator) -> Tensor:
    """Sample (B, 3) factors of brightness, contrast and saturation, uniform in 1 ± strength."""
    return 1 + strength * (2 * torch.rand((batch, 3), generator=generator) - 1)


def jitter(frames: Tensor, factors: Tensor) -> Tensor:
    """Change brightness, contrast and saturation of (B, 3, H, W) frames in 0–255 by (B, 3) factors."""
    brightness, contrast, saturation = factors[:, :, None, None, None].unbind(1)
    frames = frames.float() * brightness
    frames = (frames - (mean := frames.mean(dim=(1, 2, 3), keepdim=True))) * contrast + mean
    frames = (frames - (grey := frames.mean(dim=1, keepdim=True))) * saturation + grey
    return frames.clamp(0, 255)

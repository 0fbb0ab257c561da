"""Random crops, flips, color changes and blur of whole batches, on the batch's device."""

import math
from collections.abc import Sequence

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
    frames = (frames - (gray := frames.mean(dim=1, keepdim=True))) * saturation + gray
    return frames.clamp(0, 255)


def sample_resized_crops(batch: int, area: tuple[float, float], aspect: float, generator: torch.Generator) -> Tensor:
    """Sample rectangles of a frame: (B, 5) left, top, width and height in 0–1, and 1 for mirrored or −1.

    The share of the frame's area is uniform in ``area``, the logarithm of the aspect ratio in ± ``aspect``; a
    rectangle that is too long is cut.
    """
    least, most = area
    shares, ratios, *corners = torch.rand((4, batch), generator=generator)
    shares, ratios = least + (most - least) * shares, torch.exp(aspect * (ratios - 0.5))
    sides = [(shares.sqrt() * ratios).clamp(max=1), (shares.sqrt() / ratios).clamp(max=1)]
    starts = [corner * (1 - side) for corner, side in zip(corners, sides, strict=True)]
    mirrored = 2 * torch.randint(2, (batch,), generator=generator) - 1
    return torch.stack([*starts, *sides, mirrored], dim=1)


def resized_crop(frames: Tensor, crops: Tensor, size: int) -> Tensor:
    """Cut (B, C, R, R) images to the (B, 5) rectangles of :func:`sample_resized_crops`: (B, C, size, size) float."""
    left, top, width, height, mirrored = crops.unbind(1)
    none = torch.zeros_like(left)
    rows = [-mirrored * width, none, 2 * left + width - 1, none, height, 2 * top + height - 1]
    return _sampled(frames, rows, size, "border")


def sample_places(batch: int, smallest: float, generator: torch.Generator) -> Tensor:
    """Sample where a shrunk frame lies in another one: (B, 4) its side, the center x and y in −1–1, 1 or −1 (mirrored).

    The logarithm of the side is uniform between that of ``smallest`` and 0; the frame lies inside the other one.
    """
    sides, *centers = torch.rand((3, batch), generator=generator)
    mirrored = 2 * torch.randint(2, (batch,), generator=generator) - 1
    sides = smallest**sides
    return torch.stack([sides, *((1 - sides) * (2 * center - 1) for center in centers), mirrored], dim=1)


def placed(images: Tensor, places: Tensor, size: int) -> Tensor:
    """Shrink (B, C, R, R) images to the (B, 4) places of :func:`sample_places`: (B, C, size, size), 0 around them."""
    side, x, y, mirrored = places.unbind(1)
    none = torch.zeros_like(side)
    rows = [mirrored / side, none, -mirrored * x / side, none, 1 / side, -y / side]
    return _sampled(images, rows, size, "zeros")


def _sampled(images: Tensor, entries: Sequence[Tensor], size: int, padding: str) -> Tensor:
    """Sample (B, C, R, R) images by the 6 entries (B,) of the matrix of ``F.affine_grid``: (B, C, size, size)."""
    matrices = torch.stack([*entries], dim=1).view(-1, 2, 3)
    grid = F.affine_grid(matrices, [*images.shape[:2], size, size], align_corners=False)
    return F.grid_sample(images.float(), grid, mode="bilinear", padding_mode=padding, align_corners=False)


def sample_blurs(batch: int, most: float, generator: torch.Generator) -> Tensor:
    """Sample (B,) σ of a blur: 0 for half of the frames, uniform up to ``most`` for the others."""
    return most * (2 * torch.rand(batch, generator=generator) - 1).clamp(min=0)


def blur(frames: Tensor, sigmas: Tensor, most: float) -> Tensor:
    """Blur (B, C, H, W) frames by Gaussians of (B,) σ ≤ ``most``, relative to the side W; edges are mirrored."""
    batch, channels, height, width = frames.shape
    radius = min(math.ceil(3 * most * width), min(height, width) - 1)
    steps = torch.arange(-radius, radius + 1, device=frames.device) / width
    kernels = torch.exp(-(steps**2) / (2 * sigmas[:, None].clamp(min=1e-6) ** 2))
    kernels = (kernels / kernels.sum(1, keepdim=True)).repeat_interleave(channels, dim=0)[:, None, None]
    padded = F.pad(frames, [radius] * 4, mode="reflect").flatten(0, 1)[None]
    across = F.conv2d(padded, kernels, groups=batch * channels)
    return F.conv2d(across, kernels.transpose(2, 3), groups=batch * channels).view_as(frames)

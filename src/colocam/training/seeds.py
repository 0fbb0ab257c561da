"""Pixel seeds: CAM C_t → sparse labels Y_t (Algorithm 1 of the paper, with the published settings as options)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.boxes.blobs import bounding_box, largest_blob
from colocam.boxes.quantize import otsu_levels, to_8bit
from colocam.config import Seeds

BACKGROUND, FOREGROUND, UNKNOWN = 0, 1, 255


def seed_noise(shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The random numbers of :func:`sample_seeds`: uniform in 0–1, for foreground and background, each of ``shape``."""
    foreground, background = (torch.rand(shape, generator=generator, device=generator.device) for _ in range(2))
    return foreground, background


def sample_seeds(cams: Tensor, settings: Seeds, foreground_noise: Tensor, background_noise: Tensor) -> Tensor:
    """Sample the labeled pixels of each frame.

    The foreground region C⁺ is where the CAM exceeds Otsu's threshold. Foreground pixels are sampled from it without
    replacement in proportion to the CAM, background pixels uniformly from the lowest activations or from outside C⁺.
    Each is dilated to a small square; pixels of both kinds are left unknown. A constant CAM gives no seeds.

    Args:
        cams: (B, H, W) in 0–1.
        settings: the region and the numbers of pixels.
        foreground_noise: (B, H, W) of :func:`seed_noise`.
        background_noise: (B, H, W) of :func:`seed_noise`.

    Returns:
        (B, H, W) int64: 0 background, 1 foreground, 255 unknown. Each frame depends on its own values alone.
    """
    levels, defined = otsu_levels(cams)
    above = (to_8bit(cams) > levels[:, None, None]) & defined[:, None, None]
    region = largest_blob(above) if settings.blobs == "largest" else above
    if settings.region == "box":
        region = bounding_box(region)
    values, region = cams.flatten(1), region.flatten(1)
    bright = region & (values >= quantile_from_top(values, region, settings.foreground_top))
    if settings.background_bottom is None:
        dark = ~region
    else:
        everywhere = torch.ones_like(region)
        dark = -values >= quantile_from_top(-values, everywhere, settings.background_bottom)
    dark = dark & defined[:, None]
    foreground = sample_pixels(values, bright, settings.foreground, foreground_noise.flatten(1))
    background = sample_pixels(torch.ones_like(values), dark, settings.background, background_noise.flatten(1))
    foreground, background = (dilate(mask.view_as(cams), settings.dilation) for mask in (foreground, background))
    return torch.where(foreground ^ background, torch.where(foreground, FOREGROUND, BACKGROUND), UNKNOWN)


def sure_labels(masks: Tensor) -> Tensor:
    """Labels (B, H, W) as of :func:`sample_seeds`, of interpolated masks (B, H, W) in 0–1; unknown within ¼ of ½."""
    return torch.where((masks - 0.5).abs() > 0.25, (masks > 0.5).long(), UNKNOWN)


def quantile_from_top(values: Tensor, region: Tensor, share: float) -> Tensor:
    """(B, 1): the value that ``share`` of each region's pixels reach, at least one pixel; +∞ for an empty region."""
    ordered = torch.where(region, values, -torch.inf).sort(dim=1, descending=True).values
    count = region.sum(1, keepdim=True)
    last = (count * share).ceil().long().clamp(min=1) - 1
    return torch.where(count > 0, ordered.gather(1, last), torch.inf)


def sample_pixels(weights: Tensor, allowed: Tensor, count: int, uniform: Tensor) -> Tensor:
    """(B, P) bool: ``count`` allowed pixels (or all, if fewer) without replacement, in proportion to ``weights``.

    The pixels with the largest keys log(u) / w are such a sample (Efraimidis and Spirakis, 2006).
    """
    keys = torch.log(uniform.clamp(min=1e-30)) / weights.clamp(min=1e-8)
    keys = torch.where(allowed, keys, -torch.inf)
    chosen = keys.topk(min(count, keys.shape[1]), dim=1).indices
    sampled = torch.zeros_like(allowed).scatter_(1, chosen, value=True)
    return sampled & allowed


def dilate(mask: Tensor, side: int) -> Tensor:
    """(B, H, W) bool: each true pixel of a mask becomes a square of ``side`` pixels, which is odd."""
    return F.max_pool2d(mask.float()[:, None], side, stride=1, padding=side // 2)[:, 0] > 0

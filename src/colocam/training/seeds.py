"""Pixel seeds: CAM C_t → sparse labels Y_t (Algorithm 1 of the paper, and the published settings as options)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.boxes.blobs import bounding_box, largest_blob
from colocam.boxes.otsu import otsu_levels
from colocam.boxes.quantize import to_8bit
from colocam.config import Seeds

BACKGROUND, FOREGROUND, UNKNOWN = 0, 1, 255


def draw_seeds(cams: Tensor, settings: Seeds, generator: torch.Generator) -> Tensor:
    """Draw the labelled pixels of one step.

    The foreground region C⁺ is where the CAM exceeds Otsu's threshold. Foreground pixels are drawn from it without
    replacement in proportion to the CAM, background pixels uniformly from the lowest activations or from outside C⁺.
    Each grows to a small square; what both claim is left unknown. A constant CAM yields no seeds at all.

    Args:
        cams: (B, H, W) in 0–1.
        settings: region and numbers of pixels.
        generator: on the device of ``cams``.

    Returns:
        (B, H, W) int64: 0 background, 1 foreground, 255 unknown.
    """
    return pick_seeds(cams, settings, *draw_chances(cams.shape, generator))


def draw_chances(shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Uniform numbers in 0–1 that decide over foreground and background pixels, each of ``shape``."""
    foreground, background = (torch.rand(shape, generator=generator, device=generator.device) for _ in range(2))
    return foreground, background


def pick_seeds(cams: Tensor, settings: Seeds, foreground_chances: Tensor, background_chances: Tensor) -> Tensor:
    """:func:`draw_seeds` with the random numbers given, (B, H, W) each: frame by frame, and nothing left to chance."""
    levels, defined = otsu_levels(cams)
    above = (to_8bit(cams) > levels[:, None, None]) & defined[:, None, None]
    region = largest_blob(above) if settings.blobs == "largest" else above
    if settings.region == "box":
        region = bounding_box(region)
    values, region = cams.flatten(1), region.flatten(1)
    bright = region & (values >= _quantile_from_top(values, region, settings.foreground_top))
    if settings.background_bottom is None:
        dark = ~region
    else:
        everywhere = torch.ones_like(region)
        dark = -values >= _quantile_from_top(-values, everywhere, settings.background_bottom)
    dark = dark & defined[:, None]
    foreground = _draw(values, bright, settings.foreground, foreground_chances.flatten(1))
    background = _draw(torch.ones_like(values), dark, settings.background, background_chances.flatten(1))
    foreground, background = (_grow(drawn.view_as(cams), settings.dilation) for drawn in (foreground, background))
    return torch.where(foreground ^ background, torch.where(foreground, FOREGROUND, BACKGROUND), UNKNOWN)


def _quantile_from_top(values: Tensor, region: Tensor, share: float) -> Tensor:
    """(B, 1): the value that ``share`` of each region's pixels reach, at least one pixel; +∞ for an empty region."""
    ordered = torch.where(region, values, -torch.inf).sort(dim=1, descending=True).values
    count = region.sum(1, keepdim=True)
    last = (count * share).ceil().long().clamp(min=1) - 1
    return torch.where(count > 0, ordered.gather(1, last), torch.inf)


def _draw(weights: Tensor, allowed: Tensor, count: int, uniform: Tensor) -> Tensor:
    """(B, P) bool: ``count`` allowed pixels (or all, if fewer) without replacement, in proportion to ``weights``.

    Efraimidis and Spirakis: the largest keys log(u)/w are such a sample.
    """
    keys = torch.log(uniform.clamp(min=1e-30)) / weights.clamp(min=1e-8)
    keys = torch.where(allowed, keys, -torch.inf)
    chosen = keys.topk(min(count, keys.shape[1]), dim=1).indices
    drawn = torch.zeros_like(allowed).scatter_(1, chosen, value=True)
    return drawn & allowed


def _grow(mask: Tensor, side: int) -> Tensor:
    return F.max_pool2d(mask.float()[:, None], side, stride=1, padding=side // 2)[:, 0] > 0

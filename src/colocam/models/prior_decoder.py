"""A second decoder that draws what a prior sees, and weighs the maps of the first by it (docs/method/prior.md).

With S the map of the decoder, s that of the prior decoder, both in 0–1,

    S' = (S ⊙ s)^0.7,

scaled to the maximum of S, in frames where s and S correlate.

Tests: tests/models/test_prior_decoder.py.
"""

import torch
from torch import Tensor

POWER = 0.7
"""A little more than a geometric mean, so that the threshold of S suits S', too."""
AGREEMENT = 0.3
"""Correlation of s and S from which a frame is weighed. Below it, the prior mostly sees something else."""
TINY = 1e-12
CERTAIN = 1e-4
"""S' keeps this distance from 0 and 1, whose logits would be infinite; an 8-bit level is 40 times as much."""


def weighed(map_logits: Tensor, seen: Tensor) -> Tensor:
    """Logits (B, 1, M, M) of S', a sigmoid gives it.

    Args:
        map_logits: (B, 2, M, M) of background and foreground, or (B, 1, M, M), their difference.
        seen: the same of the prior decoder.
    """
    maps, prior = torch.sigmoid(_odds(map_logits)), torch.sigmoid(_odds(seen))
    product = (maps * prior) ** POWER
    highest = product.amax((2, 3), keepdim=True).clamp(min=TINY)
    product = product * (maps.amax((2, 3), keepdim=True) / highest)
    agrees = _correlation(maps, prior) >= AGREEMENT
    return torch.logit(torch.where(agrees, product, maps), eps=CERTAIN)


def _odds(map_logits: Tensor) -> Tensor:
    """(B, 1, M, M) float32 log-odds of the foreground."""
    floats = map_logits.float()
    return floats if floats.shape[1] == 1 else floats[:, 1:] - floats[:, :1]


def _correlation(one: Tensor, other: Tensor) -> Tensor:
    """Pearson's over the pixels, (B, 1, 1, 1); 0 where one of both is the same everywhere."""
    x, y = (maps - maps.mean((2, 3), keepdim=True) for maps in (one, other))
    spread = x.square().sum((2, 3), keepdim=True) * y.square().sum((2, 3), keepdim=True)
    return (x * y).sum((2, 3), keepdim=True) / spread.clamp(min=TINY).sqrt()

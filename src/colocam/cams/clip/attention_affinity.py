"""Class-aware attention-based affinity (CAA): refine maps by the attention between patches."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.cams.normalise import min_max
from colocam.errors import ColocamError


@dataclass(frozen=True, slots=True)
class Refinement:
    """Parameters of the refinement.

    Attributes:
        layers: number of last attention maps that are averaged.
        rounds: number of row and column normalisations (Sinkhorn).
        threshold: λ in 0–1; boxes are drawn around the regions of the normalised map that exceed it.
        times: t, how often the affinity is applied.
    """

    layers: int = 8
    rounds: int = 3
    threshold: float = 0.4
    times: int = 2

    def __post_init__(self) -> None:
        if min(self.layers, self.rounds, self.times) < 1:
            raise ColocamError(f"layers, rounds and times of a CLIP-ES refinement must be at least 1, got {self}")
        if not 0 <= self.threshold < 1:
            raise ColocamError(f"threshold of a CLIP-ES refinement must be in 0–1, got {self.threshold}")


def attention_affinity(attention: Tensor, rounds: int) -> Tensor:
    """(B, N, N) attention → symmetric affinity A whose rows and columns sum to 1.

    Sinkhorn's algorithm alternately scales the rows and the columns of D to sum 1; ``A = (D + Dᵀ)/2``.
    """
    balanced = attention
    for _ in range(rounds):
        balanced = balanced / balanced.sum(1, keepdim=True)
        balanced = balanced / balanced.sum(2, keepdim=True)
    return (balanced + balanced.mT) / 2


def refine(maps: Tensor, affinity: Tensor, threshold: float, times: int) -> Tensor:
    """Spread each map along the affinity: ``M' = (B ⊙ Aᵗ) vec(M)``.

    The row vector B is 1 in the boxes around the regions that exceed the threshold: values inside them are spread, to
    any patch; values outside are dropped. M is scaled to 0–1 first.

    Args:
        maps: (B, K, h, w), K maps per frame.
        affinity: (B, N, N), N = h·w, one per frame.
        threshold: λ in 0–1.
        times: t.

    Returns:
        (B, K, h, w), ≥ 0; a constant map becomes zero.
    """
    scaled = min_max(maps.flatten(0, 1))
    inside = region_boxes(scaled > threshold)
    evidence = torch.where(inside, scaled, 0).view(maps.shape).flatten(2)
    for _ in range(times):
        evidence = torch.einsum("bij,bkj->bki", affinity, evidence)
    return evidence.view(maps.shape)


def region_boxes(mask: Tensor) -> Tensor:
    """Fill the bounding box of every 8-connected region of each (B, h, w) bool mask."""
    batch, height, width = mask.shape
    numbers = torch.arange(1, height * width + 1, device=mask.device, dtype=torch.float32).view(1, height, width)
    labels = numbers * mask
    while not torch.equal(spread := F.max_pool2d(labels, 3, stride=1, padding=1) * mask, labels):
        labels = spread
    regions = labels.flatten(1).long()
    rows, columns = (
        index.to(mask.device).expand(batch, -1, -1).flatten(1)
        for index in torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    )

    def covered(index: Tensor, side: int) -> Tensor:
        """(B, N, side): which rows or columns the box of each region covers."""
        empty = index.new_full((batch, height * width + 1), side)
        low = empty.scatter_reduce(1, regions, index, "amin")[:, 1:, None]
        high = (-empty).scatter_reduce(1, regions, index, "amax")[:, 1:, None]
        line = torch.arange(side, device=mask.device)
        return ((low <= line) & (line <= high)).float()

    return torch.einsum("blh,blw->bhw", covered(rows, height), covered(columns, width)) > 0

"""Sample the n frames of a clip that train together (section "frame sampling" of the paper), as pure functions.

Each returns sorted indices without repetition, from the central ``window`` of the clip: the ends of a shot are often
blurred or empty. A window of at most n frames is returned whole.
"""

from collections.abc import Callable

import torch
from torch import Tensor

Sampler = Callable[..., Tensor]
"""``sampler(length, n, generator, window=0.6)`` → (≤ n,) int64 frame indices."""


def adjacent(length: int, n: int, generator: torch.Generator, window: float = 0.6) -> Tensor:
    """A uniform frame t and the n−1 before it, fewer at the start of the window: the least diverse frames."""
    first, last = central(length, window)
    if last - first <= n:
        return torch.arange(first, last)
    t = int(torch.randint(first, last, (), generator=generator))
    return torch.arange(max(first, t - n + 1), t + 1)


def interval(length: int, n: int, generator: torch.Generator, window: float = 0.6) -> Tensor:
    """One uniform frame from each of n equal, disjoint intervals: the most diverse frames."""
    first, last = central(length, window)
    if last - first <= n:
        return torch.arange(first, last)
    edges = first + torch.arange(n + 1) * (last - first) // n
    shares = torch.rand(n, generator=generator, dtype=torch.float64)
    return edges[:-1] + (shares * (edges[1:] - edges[:-1])).long()


def gaussian(length: int, n: int, generator: torch.Generator, window: float = 0.6) -> Tensor:
    """Sample n frames with weights exp(−(i − c)² / 2σ²), c the middle of the clip and σ a quarter of the window."""
    first, last = central(length, window)
    if last - first <= n:
        return torch.arange(first, last)
    frames = torch.arange(first, last)
    sigma = (last - first) / 4
    weights = torch.exp(-((frames - (length - 1) / 2) ** 2) / (2 * sigma**2))
    sampled = torch.multinomial(weights, n, replacement=False, generator=generator)
    return frames[sampled].sort().values


def central(length: int, window: float) -> tuple[int, int]:
    """Half-open range of the central ``window`` (0–1) of a clip; never empty."""
    if length < 1 or not 0 < window <= 1:
        raise ValueError(f"no window of {window} in a clip of {length} frames")
    margin = min(int(length * (1 - window) / 2 + 1e-9), (length - 1) // 2)
    return margin, length - margin


SAMPLERS: dict[str, Sampler] = {"adjacent": adjacent, "interval": interval, "gaussian": gaussian}

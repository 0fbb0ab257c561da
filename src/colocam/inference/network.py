"""From pictures to logits, maps and peaks: the one thing a :class:`Localizer` asks of a model, whatever runs it."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from colocam.colormean import arrays_with_color_mean

Floats = npt.NDArray[np.float32]
Levels = npt.NDArray[np.uint8]
Answers = tuple[Floats, Floats | Levels, Floats]


class Network(Protocol):
    """Frames (B, S, S, 3), uint8 RGB → class logits (B, K), foreground probabilities (B, h, w) and peaks (B, K)."""

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> Answers:
        """Logits before the softmax; maps in 0–1 or their 8-bit levels, h × w being the model's own; peaks of CAMs."""
        ...


def begin(network: Network, pictures: Levels, sequences: npt.NDArray[np.int64] | None = None) -> Callable[[], Answers]:
    """Begin with a batch; what is returned waits for the answers.

    Where ``sequences`` (B,) are given, maps are completed by the colours of the frames with the same number
    (:mod:`colocam.colormean`). A network that can work on several batches at a time says so by a method ``begin`` of
    its own; others are done here.
    """
    own: Callable[..., Callable[[], Answers]] | None = getattr(network, "begin", None)
    if own is not None:
        return own(pictures, sequences)
    logits, maps, peaks = network(pictures)
    if sequences is not None:
        maps = arrays_with_color_mean(pictures, maps, sequences)
    return lambda: (logits, maps, peaks)

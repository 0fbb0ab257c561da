"""From pictures to logits, maps and peaks: the one thing a :class:`Localizer` asks of a model, whatever runs it."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


class Network(Protocol):
    """Frames (B, S, S, 3), uint8 RGB → class logits (B, K), foreground probabilities (B, h, w) and peaks (B, K)."""

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats, Floats]:
        """Logits before the softmax; maps in 0–1, h × w being the model's own; peaks of activation maps."""
        ...

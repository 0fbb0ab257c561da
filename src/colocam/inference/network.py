"""From pictures to logits, maps and peaks: the one thing a :class:`Localizer` asks of a model, whatever runs it."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from colocam.models import LocalizerNet, foreground

Floats = npt.NDArray[np.float32]


class Network(Protocol):
    """Frames (B, S, S, 3), uint8 RGB → class logits (B, K), foreground probabilities (B, h, w) and peaks (B, K)."""

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats, Floats]:
        """Logits before the softmax; maps in 0–1, h × w being the model's own; peaks of activation maps."""
        ...


class TorchNetwork:
    """The network as it was trained, on a device."""

    def __init__(self, net: LocalizerNet, device: torch.device) -> None:
        self.device = device
        self.net = net.to(device).eval()

    @torch.inference_mode()
    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats, Floats]:
        """See :class:`Network`."""
        seen = self.net(torch.from_numpy(pictures).permute(0, 3, 1, 2).to(self.device))
        parts = (seen.class_logits.float(), foreground(seen.map_logits), seen.peaks.float())
        logits, maps, peaks = (part.cpu().numpy() for part in parts)
        return logits, maps, peaks

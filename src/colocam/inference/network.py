"""From pictures to logits and maps: the one thing a :class:`Localizer` asks of a model, whatever runs it."""

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from colocam.models import LocalizerNet, foreground

Floats = npt.NDArray[np.float32]


class Network(Protocol):
    """Frames (B, S, S, 3), uint8 RGB → class logits (B, K) and foreground probabilities (B, h, w)."""

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats]:
        """Logits before the softmax; maps in 0–1, h × w being the model's own."""
        ...


class TorchNetwork:
    """The network as it was trained, on a device."""

    def __init__(self, net: LocalizerNet, device: torch.device) -> None:
        self.device = device
        self.net = net.to(device).eval()

    @torch.inference_mode()
    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats]:
        """See :class:`Network`."""
        logits, map_logits = self.net(torch.from_numpy(pictures).permute(0, 3, 1, 2).to(self.device))
        return logits.float().cpu().numpy(), foreground(map_logits).cpu().numpy()

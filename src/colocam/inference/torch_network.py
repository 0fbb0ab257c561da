"""A run folder's network, run by PyTorch."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from colocam.card import Card
from colocam.inference.network import Floats
from colocam.models import LocalizerNet, foreground
from colocam.models.store import load_model
from colocam.run import choose_device


class TorchNetwork:
    """The network as it was trained, on a device."""

    def __init__(self, net: LocalizerNet, device: torch.device) -> None:
        self.device = device
        self.net = net.to(device).eval()

    @torch.inference_mode()
    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats]:
        """See :class:`colocam.inference.network.Network`."""
        logits, map_logits = self.net(torch.from_numpy(pictures).permute(0, 3, 1, 2).to(self.device))
        return logits.float().cpu().numpy(), foreground(map_logits).cpu().numpy()


def open_torch(folder: Path, device: str | None = None) -> tuple[TorchNetwork, Card]:
    """Open the model of a run folder; without a device, on the GPU if there is one."""
    model = load_model(folder)
    return TorchNetwork(model.net, choose_device(device)), model.card

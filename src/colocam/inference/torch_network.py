"""A run folder's network, run by PyTorch as fast as the device allows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.card import Card
from colocam.errors import first_line
from colocam.inference.fold import fold_batch_norms
from colocam.inference.network import Floats
from colocam.models import LocalizerNet, foreground
from colocam.models.store import load_model

BATCH = {"cpu": 16, "cuda": 64}
"""Frames at once that suit a device."""
COMPILE_AFTER = 30_000
"""Frames after which a GPU's network is compiled: that takes as long as so many frames do without it."""


class TorchNetwork:
    """The trained network on a device: batch norms folded, channels last; on a GPU in bfloat16, compiled if it pays.

    A GPU sees batches of one size: smaller ones are filled up with what was there before.

    Attributes:
        device: where it runs.
        batch: frames at once that suit it.
    """

    def __init__(self, net: LocalizerNet, device: torch.device, *, size: int) -> None:
        self.device = device
        self.batch = BATCH[device.type]
        self.net = fold_batch_norms(net.cpu(), torch.zeros(1, 3, size, size, dtype=torch.uint8)).to(device)
        self._run: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]] = self._eager
        self._tried_to_compile = False
        self._frames = 0
        self._staging = torch.empty(0)
        if device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # batches have one shape

    @torch.no_grad()
    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Floats, Floats, Floats]:
        """See :class:`colocam.inference.network.Network`."""
        logits, maps, peaks = self.download(len(pictures), *self.infer(self.upload(pictures)))
        self._frames += len(pictures)
        if self._frames >= COMPILE_AFTER and self.device.type == "cuda" and not self._tried_to_compile:
            self.compile()
        return logits, maps, peaks

    def upload(self, pictures: npt.NDArray[np.uint8]) -> Tensor:
        """(B, S, S, 3) in host memory → (B', 3, S, S) on the device, B' ≥ B there, uint8, channels last."""
        if self.device.type != "cuda":
            return torch.from_numpy(pictures).permute(0, 3, 1, 2)
        if self._staging.shape[1:] != pictures.shape[1:] or len(self._staging) < len(pictures):
            self._staging = torch.zeros(pictures.shape, dtype=torch.uint8, pin_memory=True)
        self._staging[: len(pictures)].copy_(torch.from_numpy(pictures))
        return self._staging.to(self.device, non_blocking=True).permute(0, 3, 1, 2)

    @torch.no_grad()
    def infer(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Frames (B, 3, S, S) → class logits (B, K), foreground (B, h, w), peaks (B, K) on the device, float32."""
        return self._run(frames)

    def download(self, count: int, *parts: Tensor) -> tuple[Floats, ...]:
        """The first ``count`` of each part in host memory."""
        if self.device.type != "cuda":
            return tuple(part[:count].numpy() for part in parts)
        # Without blocking they go to pinned memory, at the full speed of the bus; then one wait for all.
        host = [part[:count].to("cpu", non_blocking=True) for part in parts]
        torch.cuda.current_stream(self.device).synchronize()
        return tuple(part.numpy() for part in host)

    def compile(self) -> None:
        """Fuse what the eager network does in many kernels; where that cannot be done, it stays eager."""
        self._tried_to_compile = True
        compiled = torch.compile(self._eager, dynamic=False)

        def run(frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            try:
                return compiled(frames)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                from colocam.progress import say  # noqa: PLC0415 - seldom needed

                say(f"the network stays as it is, compiling it failed: {first_line(error)}")
                self._run = self._eager
                return self._eager(frames)

        self._run = run

    def _eager(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            seen = self.net(frames)
        return seen.class_logits.float(), foreground(seen.map_logits), seen.peaks.float()


def open_torch(folder: Path, device: str | None = None) -> tuple[TorchNetwork, Card]:
    """Open the model of a run folder; without a device, on the GPU if there is one."""
    from colocam.run import choose_device  # noqa: PLC0415 - a run's videos need FFmpeg, its network does not

    model = load_model(folder)
    return TorchNetwork(model.net, choose_device(device), size=model.card.size), model.card

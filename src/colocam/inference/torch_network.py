"""The network of a run folder, run by PyTorch."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import cache
from importlib.util import find_spec
from math import lcm
from pathlib import Path
from threading import Barrier, Thread, get_ident

import numpy as np
import torch
from torch import Tensor, nn

from colocam.boxes.quantize import to_8bit
from colocam.config.card import Card
from colocam.errors import ColocamError, first_line
from colocam.inference.network import (
    SIDE_BY_SIDE,
    Ids,
    NetworkOutput,
    PostProcessing,
    completed,
    joined,
    postprocess_tensors,
)
from colocam.models import LocalizerNet, foreground
from colocam.models.folding import add_relu_, fold_batch_norms, fold_two_maps, fuse_relus
from colocam.models.localizer_net import expanded
from colocam.models.model_file import load_model
from colocam.models.resnet import ResNet
from colocam.types import Float32Array, Levels
from colocam.utils.cuda_graphs import Recorded
from colocam.utils.device import choose_device
from colocam.utils.progress import long_work
from colocam.utils.tensors import mark_end

PIXELS = {"cpu": 32 * 224**2, "cuda": 128 * 224**2}
"""Most pixels of all frames in one pass, which limits its memory."""
PIXELS_OF_A_CORE = 448**2
"""Most pixels per core in one pass on a CPU. More is no faster, and a video's last pass costs as much as a full one:
without this limit, a single picture of 448² took four times as long on two cores."""
ROWS = {"cpu": 32, "cuda": 64}
"""Most frames in one pass. On a CPU, 16 take up to 9 % longer per frame than 32, 8 take 17 % longer. On an H200, 128
are 4 % faster than 64, but round differently in some rows, so videos could not share a pass."""

CROPS = 16
"""Crops per pass when the classes of masks are read."""
LEAST_SIDE = 32
"""Side of a frame that a ResNet reduces to one cell."""

Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def rows_of(device: torch.device, size: int) -> int:
    """How many frames per pass suit a device; fewer if they are large."""
    pixels = PIXELS[device.type]
    if device.type == "cpu":
        pixels = min(pixels, PIXELS_OF_A_CORE * torch.get_num_threads())
    return max(1, min(ROWS[device.type], pixels // size**2))


class TorchNetwork:
    """The trained network on a device: batch norms folded, channels last, one foreground map instead of two logits.

    On a GPU the weights are bfloat16, a pass is a CUDA graph, and maps are 8-bit levels, a quarter of the bytes. cuDNN
    chooses kernels by its rules, not by timing them, and nothing is compiled during a video: both would make rounding
    differ from run to run. The recorded pass reads and writes fixed buffers, so on a GPU the first thread that uses the
    network owns it, and any other is refused.

    Attributes:
        device: where it runs.
        rows: frames of one pass that suit the device.
        on_gpu: whether that is a GPU.
    """

    def __init__(self, net: LocalizerNet, device: torch.device, *, size: int) -> None:
        """``net`` is folded in place, so give a copy if others need it; ``size`` is S, the side of its frames."""
        self.device = device
        self.rows = rows_of(device, size)
        # The passes that find what to fold run where the weights are: on the CPU, while a GPU's libraries start.
        side = _side_for_folding(net, size)
        blank = torch.zeros(1, 3, side, side, dtype=torch.uint8, device=net.classifier.head.weight.device)
        self.net = fold_batch_norms(net, blank)
        fold_two_maps(self.net)
        if device.type == "cuda":
            fuse_relus(self.net, blank)
            _hold_in_bfloat16(self.net)
        self.net.to(device)
        self.on_gpu = device.type == "cuda"
        self._running: deque[torch.cuda.Event] = deque(maxlen=8)  # the end of each pass
        self._recorded: dict[int, Recorded] = {}  # by the number of rows: a live source has passes of one frame
        self._owner: int | None = None

    def submit(self, images: Sequence[Levels], ids: Ids, /) -> "Future[NetworkOutput]":
        """Start a pass, see :class:`colocam.inference.network.Network`; on a GPU without waiting for earlier ones."""
        if self.on_gpu:
            with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
                return completed(self._replay(images, torch.from_numpy(ids)))
        frames = torch.from_numpy(joined(images, len(ids))).permute(0, 3, 1, 2)
        if len(ids) == 1:  # a live frame on a CPU: all threads compute it
            return completed(self._compute(frames, torch.from_numpy(ids)))
        return long_work(_side_by_side().submit(self._compute, frames, torch.from_numpy(ids)))

    @torch.no_grad()
    def _compute(self, frames: Tensor, ids: Tensor) -> NetworkOutput:
        logits, maps, peaks, activations, ids = self.eager(frames, ids)
        return NetworkOutput(logits, maps, peaks, activations, frames, ids)

    @torch.no_grad()
    def _replay(self, images: Sequence[Levels], ids: Tensor) -> NetworkOutput:
        """Maps are 8-bit levels."""
        self._claim()
        rows = len(ids)
        # Pinned memory of a finished pass is reused, not allocated again.
        pinned = self.device.type == "cuda"
        host = torch.empty((rows, *images[0].shape[1:]), dtype=torch.uint8, pin_memory=pinned)
        filled = sum(map(len, images))
        np.concatenate(images, out=host.numpy()[:filled])
        host[filled:] = 0
        host_ids = torch.empty(ids.shape, dtype=ids.dtype, pin_memory=pinned).copy_(ids)
        there = (part.to(self.device, non_blocking=True) for part in (host, host_ids))
        tensors = dict(zip(("frames", "ids"), there, strict=True))
        tensors["frames"] = tensors["frames"].permute(0, 3, 1, 2)
        if rows not in self._recorded:
            self._recorded[rows] = Recorded(lambda seen: self.eager(seen["frames"], seen["ids"]), rows, self.device)
        # The next pass, maybe of another video, overwrites the recorded outputs; a window may need them longer.
        logits, maps, peaks, activations, ids = (part.clone() for part in self._recorded[rows](tensors))
        self._running.append(mark_end(self.device))
        return NetworkOutput(logits, maps, peaks, activations, tensors["frames"], ids)

    def _claim(self) -> None:
        """Make the first thread that uses a GPU's network its owner, and refuse any other."""
        if not self.on_gpu:
            return
        self._owner = self._owner or get_ident()
        if self._owner != get_ident():
            raise RuntimeError("another thread owns this network: submit passes through colocam.inference.passes")

    def settle(self) -> None:
        """Wait until at most one pass is under way on a GPU; a CPU's pass ends when its future does."""
        while len(self._running) > 1:
            self._running.popleft().synchronize()

    @property
    def crop_rows(self) -> int:
        """Crops of one pass of :meth:`classify`; 0 where the model has no head for crops."""
        return 0 if self.net.crop_head is None else CROPS

    @torch.no_grad()
    def classify(self, images: Levels, boxes: Float32Array, /) -> Float32Array:
        """Logits (B, K) of what boxes (B, 4), with corners in 0–1, show in images (B, S, S, 3), one box in each."""
        assert self.net.crop_head is not None
        self._claim()
        frames, there = (torch.from_numpy(part).to(self.device) for part in (images, boxes))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            features = self.net.crop_features(frames.permute(0, 3, 1, 2), expanded(there))
            logits: Tensor = self.net.crop_head(features)
        return logits.float().cpu().numpy()

    def eager(self, frames: Tensor, ids: Tensor) -> Outputs:
        """Logits, maps, peaks, activations and a copy of the ids, for frames (B, 3, S, S) on the device."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            seen = self.net(frames)
        maps = foreground(seen.map_logits)
        if self.device.type == "cuda":
            maps = to_8bit(maps)
        return seen.class_logits.float(), maps, seen.peaks.float(), seen.activations.float(), ids.clone()


def _side_for_folding(net: LocalizerNet, size: int) -> int:
    """Side of a frame that passes every layer: as small as possible where the network is known to take any size."""
    if not isinstance(net.classifier.encoder.network, ResNet):
        return size
    return min(size, lcm(net.map_size or LEAST_SIDE, net.classifier.size or LEAST_SIDE))


def _hold_in_bfloat16(net: nn.Module) -> None:
    """Hold the weights in bfloat16, which autocast would cast them to in every pass."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.to(torch.bfloat16)


@cache
def _side_by_side() -> ThreadPoolExecutor:
    """Threads that compute one pass each, shared by all networks; each has its share of torch's own threads."""
    threads = torch.get_num_threads()
    workers = min(SIDE_BY_SIDE, threads)
    ready = Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # a thread's first call resets its number of threads, so it comes first
        torch.set_num_threads(-(-threads // workers))
        ready.wait()

    pool = ThreadPoolExecutor(workers, "network", begin)
    for _ in range(workers):
        pool.submit(int)
    ready.wait()
    torch.set_num_threads(threads)  # new threads begin with the number that was set last, in whichever thread
    return pool


@torch.no_grad()
def _wake(device: torch.device) -> None:
    """While the model is read, load what the first GPU pass needs of cuDNN and Triton; it takes a second."""
    with suppress(Exception):  # the first real pass will say what is wrong with the GPU
        images = torch.zeros(8, 64, 56, 56, dtype=torch.bfloat16, device=device).to(memory_format=torch.channels_last)
        for side in (1, 3):
            weights = torch.zeros(64, 64, side, side, dtype=torch.bfloat16, device=device)
            torch.conv2d(images, weights.to(memory_format=torch.channels_last), padding=side // 2)
        if find_spec("triton") is not None:
            add_relu_(images, torch.zeros(64, dtype=torch.bfloat16, device=device), None)


@torch.no_grad()
def _rehearse(device: torch.device, card: Card) -> None:
    """Load the kernels of the post-processing, while those of the network are loaded."""
    side = card.map_size or card.size
    with suppress(Exception):
        numbers = torch.zeros(1, len(card.tags), device=device)
        output = NetworkOutput(
            logits=numbers,
            maps=torch.zeros(1, side, side, dtype=torch.uint8, device=device),
            peaks=numbers,
            activations=torch.zeros(1, len(card.tags), 14, 14, device=device),
            frames=torch.zeros(1, 3, card.size, card.size, dtype=torch.uint8, device=device),
            ids=torch.zeros(1, 2, dtype=torch.int64, device=device),
        )
        colors = None if card.color_mean == "off" else np.zeros(1, np.int64)
        postprocess_tensors([output], PostProcessing(colors, np.zeros(1, np.int64) if card.focus else None))()


def open_torch(folder: Path, device: str | None = None) -> tuple[TorchNetwork, Card]:
    """Open the model of a run folder; without ``device`` on the GPU, if there is one."""
    chosen = choose_device(device)
    if chosen.type == "cuda":
        Thread(target=_wake, args=[chosen], name="wake", daemon=True).start()
    model = load_model(folder)
    if chosen.type == "cuda":
        Thread(target=_rehearse, args=[chosen, model.card], name="rehearse", daemon=True).start()
    try:
        return TorchNetwork(model.net, chosen, size=model.card.size), model.card
    except (RuntimeError, ValueError, AssertionError, ArithmeticError) as error:
        side = model.card.size
        raise ColocamError(f"{folder}: the network cannot take frames of {side}×{side}: {first_line(error)}") from error

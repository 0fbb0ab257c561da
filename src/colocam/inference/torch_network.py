"""A run folder's network, run by PyTorch as fast as the device allows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Barrier

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from colocam.boxes.quantize import to_8bit
from colocam.config.card import Card
from colocam.errors import first_line
from colocam.inference.fold import fold_batch_norms, fold_two_maps
from colocam.inference.network import AS_THEY_ARE, Answers, Finish
from colocam.maps.focus import classes_of, of_classes
from colocam.maps.postprocess import finish
from colocam.models import LocalizerNet
from colocam.models.model_file import load_model
from colocam.utils.cuda_graphs import RecordedPass

BATCH = {"cpu": 32, "cuda": 128}
"""Frames at once that suit a device."""
COMPILE_AFTER = 30_000
"""Frames after which a GPU's network is compiled: that takes as long as so many frames do without it."""
SIDE_BY_SIDE = 2
"""Batches that a CPU works on at the same time, each with its share of the threads: threads that work on one batch wait
for each other after every layer."""

Parts = tuple[Tensor, Tensor, Tensor, Tensor]


class TorchNetwork:
    """The trained network on a device: batch norms folded, channels last, one map for two.

    On a GPU its weights are bfloat16, a pass is a CUDA graph, compiled if it pays, and maps come as 8-bit levels, a
    quarter of the bytes. A GPU sees batches of one size: smaller ones are filled up with whatever is there.

    Attributes:
        device: where it runs.
        batch: frames at once that suit it.
    """

    def __init__(self, net: LocalizerNet, device: torch.device, *, size: int) -> None:
        """``net`` stays as it is, and where it is; ``size`` is the S of its frames."""
        self.device = device
        self.batch = BATCH[device.type]
        home = next(net.parameters()).device
        self.net = fold_batch_norms(net, torch.zeros(1, 3, size, size, dtype=torch.uint8, device=home))
        fold_two_maps(self.net)
        self.net.to(device)
        self._run: Callable[[Tensor], Parts] = self.eager
        self._tried_to_compile = False
        self._frames = 0
        if device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # batches have one shape
            _hold_in_bfloat16(self.net)
            self._records = True
            self._recorded: RecordedPass | None = None

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> Answers:
        """See :class:`colocam.inference.network.Network`."""
        return self.begin(pictures)()

    def begin(self, pictures: npt.NDArray[np.uint8], how: Finish = AS_THEY_ARE) -> Callable[[], Answers]:
        """Start with a batch; what is returned waits for its answers. Others may be under way.

        See :func:`colocam.inference.network.begin`.
        """
        if self.device.type == "cuda":
            return self._begin_on_gpu(pictures, how)
        frames = self.upload(pictures)

        def work() -> Answers:
            return _arrays(_finished(frames, self.infer(frames), how))

        if len(pictures) == 1:  # somebody waits for this frame: all threads work on it
            answers = work()
            return lambda: answers
        return _side_by_side().submit(work).result

    def upload(self, pictures: npt.NDArray[np.uint8]) -> Tensor:
        """(B, S, S, 3) in host memory → (B', 3, S, S) on the device, B' ≥ B there, uint8, channels last."""
        if self.device.type != "cuda":
            return torch.from_numpy(pictures).permute(0, 3, 1, 2)
        rows = max(len(pictures), 0 if self._recorded is None else len(self._recorded.input))
        # Pinned memory of a batch that is done is given out again, not allocated.
        staged = torch.empty((rows, *pictures.shape[1:]), dtype=torch.uint8, pin_memory=True)
        staged[: len(pictures)].copy_(torch.from_numpy(pictures))
        return staged.to(self.device, non_blocking=True).permute(0, 3, 1, 2)

    @torch.no_grad()
    def infer(self, frames: Tensor) -> Parts:
        """Frames (B, 3, S, S) → class logits (B, K), foreground (B, h, w), peaks (B, K), LayerCAMs (B, K, h', w').

        They stay on the device, in float32, save the foreground, which on a GPU is in 8-bit levels.
        """
        if self.device.type != "cuda":
            return self._run(frames)
        if self._records and (self._recorded is None or self._recorded.input.shape != frames.shape):
            self._record(frames)
        if self._recorded is None:
            return self._run(frames)
        logits, levels, peaks, activations = self._recorded.replay(frames)
        return logits, levels, peaks, activations

    def download(self, parts: tuple[Tensor, ...], count: int) -> Callable[[], Answers]:
        """Start copying the first ``count`` of each part from a GPU; what is returned waits for the copies."""
        host = tuple(torch.empty(part[:count].shape, dtype=part.dtype, pin_memory=True) for part in parts)
        for here, there in zip(host, parts, strict=True):
            here.copy_(there[:count], non_blocking=True)
        copied = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        copied.record(torch.cuda.current_stream(self.device))

        def wait() -> Answers:
            copied.synchronize()
            return _arrays(host)

        return wait

    def compile(self) -> None:
        """Fuse what the eager network does in many kernels; where that cannot be done, it stays eager."""
        self._tried_to_compile = True
        self._recorded = None
        compiled = torch.compile(self.eager, dynamic=False)

        def run(frames: Tensor) -> Parts:
            try:
                return compiled(frames)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                _say(f"the network stays as it is, compiling it failed: {first_line(error)}")
                self._run = self.eager
                return self.eager(frames)

        self._run = run

    def eager(self, frames: Tensor) -> Parts:
        """See :meth:`infer`; here pictures and maps are side by side on the device."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            seen = self.net(frames)
        maps = torch.sigmoid(seen.map_logits[:, 0].float())
        if self.device.type == "cuda":
            maps = to_8bit(maps)
        return seen.class_logits.float(), maps, seen.peaks.float(), seen.activations.float()

    def _record(self, frames: Tensor) -> None:
        """Make a CUDA graph for batches of this shape; a network that cannot be recorded is launched as it is."""
        self._recorded = None  # the next needs its memory
        try:
            self._recorded = RecordedPass(self._run, frames)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._records = False
            _say(f"the network is launched layer by layer, recording it failed: {first_line(error)}")

    def _begin_on_gpu(self, pictures: npt.NDArray[np.uint8], how: Finish) -> Callable[[], Answers]:
        if self._frames >= COMPILE_AFTER and not self._tried_to_compile:
            self.compile()
        self._frames += len(pictures)
        frames = self.upload(pictures)
        return self.download(_finished(frames[: len(pictures)], self.infer(frames), how), len(pictures))


def _arrays(parts: tuple[Tensor, ...]) -> Answers:
    logits, maps, peaks = (part.numpy() for part in parts)
    return logits, maps, peaks


@torch.no_grad()
def _finished(frames: Tensor, parts: Parts, how: Finish) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, maps and peaks of the frames; maps completed and focused as asked, in 8 bits where they were."""
    logits, maps, peaks, activations = (part[: len(frames)] for part in parts)
    if how.colors is None and how.shots is None:
        return logits, maps, peaks
    # On the host: their number is read off them, for which a device would have to be waited for.
    colors = None if how.colors is None else torch.from_numpy(how.colors)
    own = None
    if how.shots is not None:
        shots = torch.from_numpy(how.shots).to(maps.device, non_blocking=True)
        own = of_classes(activations, classes_of(logits, shots, how.tag))
    levels = maps.dtype == torch.uint8
    drawn = finish(frames, maps.float() / 255 if levels else maps, colors, own)
    return logits, to_8bit(drawn) if levels else drawn, peaks


def _say(line: str) -> None:
    from colocam.utils.progress import say  # noqa: PLC0415 - seldom needed

    say(line)


def _hold_in_bfloat16(net: nn.Module) -> None:
    """Weights that autocast would cast at every pass."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.to(torch.bfloat16)


@cache
def _side_by_side() -> ThreadPoolExecutor:
    """Threads that work on a batch each, for all networks; torch's own threads are shared out among them."""
    threads = torch.get_num_threads()
    workers = min(SIDE_BY_SIDE, threads)
    ready = Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # a thread that has never asked would take the number of all over its own later
        torch.set_num_threads(-(-threads // workers))
        ready.wait()

    pool = ThreadPoolExecutor(workers, "network", begin)
    for _ in range(workers):
        pool.submit(int)
    ready.wait()
    torch.set_num_threads(threads)  # what a thread sets for itself is also what new threads begin with
    return pool


def open_torch(folder: Path, device: str | None = None) -> tuple[TorchNetwork, Card]:
    """Open the model of a run folder; without a device, on the GPU if there is one."""
    from colocam.run import choose_device  # noqa: PLC0415 - a run's videos need FFmpeg, its network does not

    model = load_model(folder)
    return TorchNetwork(model.net, choose_device(device), size=model.card.size), model.card

"""Train in several processes that ``torchrun`` started: common decisions, work that one does alone, sums, batch norms.

With one process, every function here returns at once what it was given. Files must be on a disk that all processes see.

Tests: tests/training/test_processes.py.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from timm.layers.norm_act import convert_sync_batchnorm
from torch import Tensor, nn

from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, first_line
from colocam.utils.device import place
from colocam.utils.progress import muted

ANSWER = timedelta(seconds=50)
"""Processes that do not answer within a step for this long are lost. One that was killed is noticed at once."""
ALONE = timedelta(days=7)
"""Longest time that the others wait while the first process works alone."""
DONE, STOPPED, FAILED = range(3)

T = TypeVar("T")


_group: dist.ProcessGroup | None = None
"""All processes of this training; None where there is one."""


def world() -> int:
    """Number of processes that train together."""
    return 1 if _group is None else _group.size()


def rank() -> int:
    """Index of this process among them."""
    return 0 if _group is None else _group.rank()


@contextmanager
def joined(device: str | None) -> Iterator[str | None]:
    """Train together with the other processes within this block.

    Args:
        device: ``cpu``, ``cuda`` or None for the GPU, if there is one.

    Yields:
        The device of this process: with several processes and GPUs, each has one of its own.
    """
    global _group  # noqa: PLW0603 - a process is in one training
    here = place()
    if here.world == 1:
        yield device
        return
    process_device = _own_device(device, here.local)
    with muted() if here.rank else nullcontext():
        try:
            if not dist.is_initialized():
                dist.init_process_group("gloo", timeout=ALONE)
            _group = _new_group(process_device)
        except (RuntimeError, ValueError) as error:
            raise ColocamError(
                f"the processes cannot connect: start them with torchrun ({first_line(error)})"
            ) from error
        try:
            yield process_device
        except BaseException:
            if (
                process_device != "cpu"
            ):  # NCCL may wait for a process that is gone; the end of this one frees everything
                _group = None
            raise
        finally:
            if _group is not None:
                dist.destroy_process_group(_group)
                _group = None


def _new_group(device: str) -> dist.ProcessGroup:
    group = dist.new_group(backend="gloo" if device == "cpu" else "cpu:gloo,cuda:nccl", timeout=ANSWER)
    assert isinstance(group, dist.ProcessGroup)
    return group


def _own_device(device: str | None, local: int) -> str:
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cpu":
        return name
    if name != "cuda":
        raise ArgumentError("device", f"must be cpu or cuda when several processes train, got {name}")
    if local >= torch.cuda.device_count():
        raise ColocamError(
            f"process {local} of this machine has no GPU: torch finds {torch.cuda.device_count()}: "
            "start torchrun with a smaller --nproc-per-node"
        )
    torch.cuda.set_device(local)
    return f"cuda:{local}"


@contextmanager
def _explained() -> Iterator[None]:
    """Turn an error of the connection into one that says what to do."""
    try:
        yield
    except RuntimeError as error:
        raise ColocamError(
            "another process of this training ended or does not answer: see its message; "
            "run the same command again to continue from the last checkpoint"
        ) from error


def reduce_(tensor: Tensor, how: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> Tensor:
    """Replace ``tensor`` by its sum (or other reduction) over all processes, in place; without a gradient."""
    if _group is not None:
        with _explained():
            dist.all_reduce(tensor, how, _group)
    return tensor


def any_of(*flags: bool) -> list[bool]:
    """For each flag, whether it is set in any process. All processes must call this together."""
    return [bool(flag) for flag in reduce_(torch.tensor(flags, dtype=torch.uint8), dist.ReduceOp.MAX).tolist()]


def require_same(what: str, value: object) -> None:
    """Raise an error in all processes if ``value`` is not the same in all of them."""
    if _group is None:
        return
    values: list[object] = [None] * world()
    with _explained():
        dist.all_gather_object(values, value, _group)
    if any(other != values[0] for other in values):
        raise ColocamError(
            f"the processes of this training do not see the same {what}: "
            "run the same command everywhere, with folders on a shared disk"
        )


def alone(work: Callable[[], object]) -> None:
    """Run ``work``, which must not communicate, in the first process; the others wait until it ends, however long."""
    if _group is None:
        work()
    elif rank():
        with _explained():
            dist.broadcast(ended := torch.zeros(1, dtype=torch.uint8), 0)
        if ended == STOPPED:
            raise InterruptedRunError("stopped")
        if ended == FAILED:
            raise ColocamError("the first process of this training failed: see its message")
    else:
        end = FAILED
        try:
            work()
            end = DONE
        except (InterruptedRunError, KeyboardInterrupt):
            end = STOPPED
            raise
        finally:
            with _explained():
                dist.broadcast(torch.tensor([end], dtype=torch.uint8), 0)


def first(work: Callable[[], T]) -> T:
    """Run ``work`` in the first process, then in the others, which find its files and only read them."""
    results: list[T] = []
    alone(lambda: results.append(work()))
    return results[0] if results else work()


def shares(counts: Sequence[Callable[[], Tensor]]) -> Sequence[Tensor | float]:
    """n_k / Σ n_k of each count n, a scalar on the training device: the part that this process has in a mean over n.

    A loss that is a mean over n values is, in one of several processes, the mean over its own n_k values. Its part of
    the loss is n_k / Σ n_k times that. Gradients of the parts are added, not averaged.
    """
    if world() == 1:
        return [1.0] * len(counts)
    counts_here = torch.stack([count().double() for count in counts])
    return (counts_here / reduce_(counts_here.clone()).clamp(min=1)).float().unbind()


def sum_scalars(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each scalar, summed over all processes."""
    return dict(zip(parts, reduce_(torch.stack(list(parts.values()))).unbind(), strict=True))


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its sum over all processes."""
    if world() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = reduce_(torch.cat([gradient.flatten() for gradient in gradients]))
    parts = torch.split(flat, [gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


class _AllSum(torch.autograd.Function):
    """The sum over all processes, differentiable: the gradients of all processes flow into each of its terms."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:  # noqa: ANN401, ARG004 - torch's signature
        return reduce_(tensor.clone())

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Tensor:  # noqa: ANN401, ARG004
        return reduce_(outer.clone())


def synchronize_batch_norms(net: nn.Module) -> None:
    """Make all batch norms within ``net``, in training mode, use the mean and variance over all processes.

    Their weights and the names of these stay; ``net`` itself is not a batch norm.
    """
    if world() == 1:
        return
    if next(net.parameters()).is_cuda:
        # that of timm: torch's would drop the activations of timm's batch norms
        convert_sync_batchnorm(net, _group)  # type: ignore[no-untyped-call]
        return
    for module in list(net.modules()):
        for name, child in module.named_children():
            if isinstance(child, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)):
                module.add_module(name, CpuBatchNorm(child))


class CpuBatchNorm(nn.Module):
    """A batch norm over the frames of all processes on CPUs, where ``nn.SyncBatchNorm`` does not run.

    Args:
        norm: gives its weights, its statistics, and what follows it in timm's networks: a dropout and an activation.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, norm: nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d) -> None:
        super().__init__()
        self.weight = norm.weight
        self.bias = norm.bias
        self.momentum = norm.momentum or 0.0
        self.eps = norm.eps
        for name, buffer in norm.named_buffers(recurse=False):
            self.register_buffer(name, buffer)
        for name, child in norm.named_children():
            self.add_module(name, child)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, …) → (B, C, …); B may differ between processes."""
        if self.training:
            shape, others = [1, -1, *[1] * (x.dim() - 2)], [0, *range(2, x.dim())]
            count = reduce_(x.new_tensor(x.numel() / x.shape[1]))
            mean: Tensor = _AllSum.apply(x.sum(others)) / count
            centered = x - mean.view(shape)
            variance: Tensor = _AllSum.apply(centered.square().sum(others)) / count
            with torch.no_grad():
                self.num_batches_tracked.add_(1)
                self.running_mean.lerp_(mean, self.momentum)
                self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)
            y = centered * torch.rsqrt(variance + self.eps).view(shape)
            y = y * self.weight.view(shape) + self.bias.view(shape)
        else:
            y = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        followed: Tensor = nn.Sequential(*self.children())(y)
        return followed

"""Train in several processes that ``torchrun`` started: common decisions, work that one does alone, sums, batch norms.

With one process, every function here returns at once what it was given. Files must be on a disk that all processes see.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import TorchFunctionMode

from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, first_line
from colocam.utils.interrupt import request_stop, stop_requested
from colocam.utils.progress import muted
from colocam.utils.torchrun import place

JOINING = timedelta(minutes=10)
"""Longest time from the start of the first process to that of the last."""
ANSWER = timedelta(seconds=50)
"""Processes that do not answer for this long are lost. One that was killed is noticed at once."""
SECONDS_BETWEEN_SIGNS = 2.0
"""A process that works alone tells the others this often that it still does."""
WORKING, DONE, STOPPED, FAILED = range(4)

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
    own = _own_device(device, here.local)
    with muted() if here.rank else nullcontext():
        try:
            if not dist.is_initialized():
                dist.init_process_group("gloo", timeout=JOINING)
            _group = _new_group(own)
        except (RuntimeError, ValueError) as error:
            raise ColocamError(
                f"the processes cannot connect: start them with torchrun ({first_line(error)})"
            ) from error
        try:
            yield own
        except BaseException:
            if own != "cpu":  # NCCL may wait for a process that is gone; the end of this one frees everything
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
        raise ArgumentError("device", f"must be cpu or cuda where several processes train, got {name}")
    if local >= torch.cuda.device_count():
        raise ColocamError(
            f"process {local} of this machine has no GPU, torch finds {torch.cuda.device_count()}: "
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
    if _group is None:
        return list(flags)
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
            "give all of them the same command, and folders on a disk that all of them see"
        )


def alone(work: Callable[[], object]) -> None:
    """Run ``work`` in the first process; the others wait until it ends, however long that takes.

    Ctrl-C in any process stops the work as it does in the first. ``work`` must not communicate.
    """
    if _group is None:
        work()
    elif rank():
        while not (end := _sign(WORKING)):
            pass
        if end == STOPPED:
            raise InterruptedRunError("stopped")
        if end == FAILED:
            raise ColocamError("the first process of this training failed: see its message")
    else:
        with _signs() as signs:
            work()
            signs.end = DONE


def first(work: Callable[[], T]) -> T:
    """Run ``work`` in the first process, then in the others, which find its files and only read them."""
    results: list[T] = []
    alone(lambda: results.append(work()))
    return results[0] if results else work()


def _sign(state: int) -> int:
    """Tell the others the state of the work, and learn it; a wish to stop goes both ways."""
    state, stop = reduce_(torch.tensor([state, stop_requested()]), dist.ReduceOp.MAX).tolist()
    if stop:
        request_stop()
    return int(state)


class _Signs:
    end = FAILED
    error: Exception | None = None


@contextmanager
def _signs() -> Iterator[_Signs]:
    """Give signs in a thread while the first process works; the last one says how the work ended."""
    signs, ended = _Signs(), threading.Event()

    def give() -> None:
        try:
            while not ended.wait(SECONDS_BETWEEN_SIGNS):
                _sign(WORKING)
            _sign(signs.end)
        except ColocamError as error:
            signs.error = error
            request_stop()

    thread = threading.Thread(target=give, name="signs", daemon=True)
    thread.start()
    try:
        yield signs
    except (InterruptedRunError, KeyboardInterrupt):
        signs.end = STOPPED
        raise
    finally:
        ended.set()
        thread.join()
        if signs.error is not None:
            raise signs.error


Count = Callable[[], Tensor]


def shares(counts: Sequence[Count]) -> Sequence[Tensor | float]:
    """n_k / Σ n_k of each count n; the counts are scalars on the training device."""
    if world() == 1:
        return [1.0] * len(counts)
    own = torch.stack([count().double() for count in counts])
    return (own / reduce_(own.clone()).clamp(min=1)).float().unbind()


def sum_scalars(parts: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each scalar, summed over all processes."""
    if world() == 1:
        return parts
    return dict(zip(parts, reduce_(torch.stack(list(parts.values()))).unbind(), strict=True))


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its sum over all processes."""
    if world() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = reduce_(torch.cat([gradient.flatten() for gradient in gradients]))
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()


def all_sum(tensor: Tensor) -> Tensor:
    """The sum over all processes, differentiable: the gradients of all processes flow into each of its terms."""
    summed: Tensor = _AllSum.apply(tensor)
    return summed


class _AllSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:  # noqa: ANN401, ARG004 - torch's signature
        return reduce_(tensor.clone())

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> Tensor:  # noqa: ANN401, ARG004
        return reduce_(outer.clone())


def synchronise_batch_norms(net: nn.Module) -> None:
    """Make all batch norms of ``net``, in training mode, use the mean and variance over all processes."""
    if world() == 1:
        return
    for module in net.modules():
        if isinstance(module, _BatchNorm):
            module.forward = _synchronised(module.forward)  # type: ignore[assignment, method-assign]


def _synchronised(forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def synchronised(x: Tensor) -> Tensor:
        with _Replaced():
            return forward(x)

    return synchronised


class _Replaced(TorchFunctionMode):
    """Replaces ``F.batch_norm``, which also timm's batch norms with an activation call."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        call: Callable[..., object] = batch_norm if func is F.batch_norm else func
        return call(*args, **(kwargs or {}))


def batch_norm(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,  # noqa: FBT001, FBT002 - the signature of F.batch_norm
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """``F.batch_norm`` over the values of all processes; x (B, C, …), of which B may differ between processes."""
    if not training:
        return F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    if x.is_cuda:
        y: Tensor = _CudaBatchNorm.apply(x, weight, bias, running_mean, running_var, momentum, eps)
        return y
    shape, others = [1, -1, *[1] * (x.dim() - 2)], [0, *range(2, x.dim())]
    count = reduce_(x.new_tensor(x.numel() / x.shape[1]))
    mean = all_sum(x.sum(others)) / count
    centred = x - mean.view(shape)
    variance = all_sum(centred.square().sum(others)) / count
    if running_mean is not None and running_var is not None:
        with torch.no_grad():
            running_mean.lerp_(mean, momentum)
            running_var.lerp_(variance * (count / (count - 1)), momentum)
    y = centred * torch.rsqrt(variance + eps).view(shape)
    if weight is not None:
        y = y * weight.view(shape)
    return y if bias is None else y + bias.view(shape)


class _CudaBatchNorm(torch.autograd.Function):
    """As :func:`batch_norm`, from the kernels of ``SyncBatchNorm``."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        momentum: float,
        eps: float,
    ) -> Tensor:
        x = _dense(x)
        channels = x.shape[1]
        own = torch.cat([*torch.batch_norm_stats(x, eps), x.new_full((1,), x.numel() // channels, dtype=torch.float32)])
        every = torch.zeros(world(), len(own), device=x.device)
        every[rank()] = own
        reduce_(every)
        parts = every[:, :channels], every[:, channels:-1], every[:, -1]
        means, deviations, counts = (part.contiguous() for part in parts)
        mean, deviation = torch.batch_norm_gather_stats_with_counts(
            x, means, deviations, running_mean, running_var, momentum, eps, counts
        )
        ctx.save_for_backward(x, weight, mean, deviation, counts.to(torch.int32))
        y: Tensor = torch.batch_norm_elemt(x, weight, bias, mean, deviation, eps)
        return y

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        x, weight, mean, deviation, counts = ctx.saved_tensors
        outer = _dense(outer)
        of_all = (True, weight is not None, weight is not None)
        sums, products, of_weight, of_bias = torch.batch_norm_backward_reduce(
            outer, x, mean, deviation, weight, *of_all
        )
        sums, products = reduce_(torch.stack([sums, products])).unbind()
        of_x = torch.batch_norm_backward_elemt(outer, x, mean, deviation, weight, sums, products, counts)
        return of_x, of_weight, of_bias, None, None, None, None


def _dense(x: Tensor) -> Tensor:
    return x if x.is_contiguous(memory_format=torch.channels_last) else x.contiguous()

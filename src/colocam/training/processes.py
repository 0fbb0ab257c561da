"""Train in several processes that ``torchrun`` started: who they are, common decisions, and work that one does alone.

With one process, every function here returns at once what it was given. Files must be on a disk that all processes see.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, first_line
from colocam.utils.device import place
from colocam.utils.progress import muted, request_stop, stop_requested

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

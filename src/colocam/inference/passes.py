"""Passes of a network: the one place that calls it, fills passes with frames of several videos, and hands out rows.

Tests: tests/inference/test_torch_network.py, tests/inference/test_engine.py, tests/gpu/test_gpu.py.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from colocam.inference.network import (
    CropNetwork,
    HostOutput,
    Ids,
    Network,
    NetworkOutput,
    OutputShape,
    PostProcessing,
    checked,
    postprocess_arrays,
    postprocess_tensors,
    rows_of,
)
from colocam.types import ColorMean, Float32Array, Levels
from colocam.utils.device import cores
from colocam.utils.progress import long_work, wait_for

GROUP = 8
"""Rows of a GPU pass that belong to one video. A video's last pass leaves at most ``GROUP`` − 1 rows empty."""
BOX_THREADS = min(8, cores())
"""The compiled functions that find boxes need no more threads, and the other stages need cores too."""
Waited = Callable[[], HostOutput]
T = TypeVar("T")


class PassRows:
    """Consecutive rows of a pass that was submitted; ``handle`` is what computes or keeps them."""

    def __init__(self, handle: Any, start: int, stop: int) -> None:  # noqa: ANN401 - of one kind of network
        self.handle, self.start, self.stop = handle, start, stop

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, rows: slice) -> "PassRows":
        start, stop, _ = rows.indices(len(self))
        return PassRows(self.handle, self.start + start, self.start + stop)


@runtime_checkable
class AnyNetwork(Protocol):
    """A network in this process (:class:`Passes`), or in another (:class:`colocam.inference.remote.RemoteNetwork`)."""

    rows: int
    shape: OutputShape

    def submit(
        self,
        images: Levels,
        ids: Ids,
        new: slice,
        passed: Callable[[int], object] = int,
        *,
        whole: bool = False,
        counted: bool = True,
    ) -> PassRows:
        """Start a pass; see :meth:`Passes.submit`."""
        ...

    def postprocess(self, parts: Sequence[PassRows], how: PostProcessing, *stopping: threading.Event) -> Waited:
        """Start to post-process maps; see :meth:`Passes.postprocess`."""
        ...


class MapSettings(NamedTuple):
    """How maps are post-processed.

    Attributes:
        color_mean: which frames complete each other's maps by color; ``clip`` means a window.
        focus: power of the focus on a class; 0: none.
        tag: index of that class; None: the class that the classifier finds in the window.
        network: has the outputs of the passes.
        stopping: once one of them is set, waiting for a pass ends.
    """

    color_mean: ColorMean
    focus: float
    tag: int | None
    network: AnyNetwork
    stopping: tuple[threading.Event, ...]

    def start(self, parts: list[PassRows], windows: npt.NDArray[np.int64]) -> Callable[[], HostOutput]:
        """Start to post-process B frames, of which ``windows`` (B,) are the window ids."""
        colors = {"off": None, "frame": np.arange(len(windows)), "clip": windows}[self.color_mean]
        how = PostProcessing(colors, windows if self.focus else None, self.tag, self.focus)
        return self.network.postprocess(parts, how, *self.stopping)


class _Groups(NamedTuple):
    """The groups of a pass by their first row, each of ``size`` rows."""

    size: int
    futures: "dict[int, Future[NetworkOutput]]"


class _Waiting(NamedTuple):
    """A group that waits for a pass of ``rows`` rows."""

    rows: int
    images: Levels
    ids: Ids
    future: "Future[NetworkOutput]"
    taken: Callable[[], object]


class Passes:
    """Runs the passes of one network for any number of threads.

    On a GPU, one thread owns the network and its recorded buffers; nothing else can reach them. A pass there consists
    of groups of :data:`GROUP` rows, and each group may belong to another video. The network computes each row on its
    own, so other videos could change only the rounding, and only if a kernel worked differently on other rows. This is
    tested once with random frames; a network that fails the test gets passes of one video only. On a CPU, a pass
    belongs to one video.

    Args:
        network: from now on, nothing else may run it.
        shape: of its outputs.

    Attributes:
        rows: frames of a pass.
        on_gpu: whether passes run on a GPU, which leaves the cores free.
    """

    def __init__(self, network: Network, shape: OutputShape) -> None:
        self._network = network
        self.shape = shape
        self.rows = network.rows
        self.on_gpu = network.on_gpu
        self._groups: dict[int, int] = {}
        self._testing = threading.Lock()
        self._owner = _Owner(network) if self.on_gpu else None

    def submit(
        self,
        images: Levels,
        ids: Ids,
        new: slice,
        passed: Callable[[int], object] = int,
        taken: Callable[[], object] | None = None,
        *,
        whole: bool = False,
        counted: bool = True,
    ) -> PassRows:
        """Start a pass over images (B, S, S, 3), RGB, of the frames ``ids`` (B, 2).

        Args:
            images: must not change any more, unless ``taken`` is given.
            ids: of the same rows.
            new: rows of new frames.
            passed: called in another thread with the number of new frames that were computed.
            taken: called once the images are no longer read.
            whole: whether the outputs of all rows are used, not only those of the new ones.
            counted: whether ``passed`` is called.
        """
        rows = len(images)
        size = self._group(rows)
        futures: dict[int, Future[NetworkOutput]] = {}
        used = slice(0, rows) if whole else new
        begins = range(used.start // size * size, used.stop, size)
        left = len(begins)

        def one_taken() -> None:
            nonlocal left
            left -= 1
            if not left and taken is not None:
                taken()

        for begin in begins:
            group = slice(begin, begin + size)
            if self.on_gpu:
                futures[begin] = self._wait_in_line(
                    _Waiting(rows, images[group], ids[group], long_work(Future()), one_taken)
                )
            else:
                futures[begin] = self._network.submit([images[group] if taken is None else images[group].copy()], ids)
                one_taken()
            count = max(0, min(begin + size, new.stop) - max(begin, new.start))
            if counted:
                futures[begin].add_done_callback(partial(_count, passed, count))
        return PassRows(_Groups(size, futures), used.start, used.stop)

    def postprocess(self, parts: Sequence[PassRows], how: PostProcessing, *stopping: threading.Event) -> Waited:
        """Start to post-process the maps of B frames whose rows come in ``parts``, on the device where they are.

        Returns:
            A function that waits for the result.

        Raises:
            InterruptedRunError: one of ``stopping`` was set first.
        """
        outputs = [
            rows_of(
                checked(wait_for(part.handle.futures[begin], *stopping), part.handle.size, self.shape),
                slice(max(part.start - begin, 0), part.stop - begin),
            )
            for part in parts
            for begin in range(part.start // part.handle.size * part.handle.size, part.stop, part.handle.size)
        ]
        if isinstance(outputs[0].maps, np.ndarray):
            result = postprocess_arrays(outputs, how)
            return lambda: result
        return postprocess_tensors(outputs, how)

    @property
    def reads_crops(self) -> bool:
        """Whether the model can read the class of a crop."""
        return bool(getattr(self._network, "crop_rows", 0))

    def classify_crops(self, images: Levels, boxes: Float32Array) -> Float32Array:
        """Logits (n, K) of what n boxes (n, 4), with corners in 0–1, show in as many images (n, S, S, 3); n ≥ 1.

        Only if :attr:`reads_crops`. Every pass has the same number of rows, so rounding does not depend on n.
        """
        network = cast("CropNetwork", self._network)
        rows = network.crop_rows
        parts = []
        for start in range(0, len(images), rows):
            filled = np.zeros((rows, *images.shape[1:]), np.uint8)
            corners = np.tile(np.array([0, 0, 1, 1], np.float32), (rows, 1))
            count = len(images[start : start + rows])
            filled[:count], corners[:count] = images[start : start + rows], boxes[start : start + rows]
            classify = partial(network.classify, filled, corners)
            parts.append((classify() if self._owner is None else self._owner.call(classify).result())[:count])
        return np.concatenate(parts)

    def _group(self, rows: int) -> int:
        if not self.on_gpu or rows <= GROUP or rows % GROUP:
            return rows
        with self._testing:
            if rows not in self._groups:
                self._groups[rows] = GROUP if self._rows_are_alike(rows) else rows
            return self._groups[rows]

    def _rows_are_alike(self, rows: int) -> bool:
        side = self.shape.size
        group = np.random.default_rng(0).integers(0, 256, (GROUP, side, side, 3), np.uint8)
        images = np.tile(group, (rows // GROUP, 1, 1, 1))
        ids = np.zeros((rows, 2), np.int64)
        output = self._wait_in_line(_Waiting(rows, images, ids, long_work(Future()), int)).result()
        first, *others = (rows_of(output, slice(at, at + GROUP)) for at in range(0, rows, GROUP))
        pairs = (pair for other in others for pair in zip(first, other, strict=True))
        return all(bool(cast("Any", a == b).all()) for a, b in pairs)

    def _wait_in_line(self, group: _Waiting) -> "Future[NetworkOutput]":
        assert self._owner is not None
        self._owner.add(group)
        return group.future

    def __del__(self) -> None:
        if self._owner is not None:
            self._owner.close()


class _Owner:
    """The thread that owns the network of a GPU, and the groups that wait for it."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._waiting: deque[_Waiting] = deque()
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        threading.Thread(target=self._work, name="passes", daemon=True).start()

    def add(self, group: _Waiting) -> None:
        with self._changed:
            self._waiting.append(group)
            self._changed.notify()

    def call(self, work: Callable[[], T]) -> "Future[T]":
        """Do other work with the network, ahead of the groups that wait."""
        future: Future[T] = long_work(Future())
        with self._changed:
            self._calls.append((work, future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """End the thread when nothing waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._calls or self._closed)
                if self._calls:
                    called = self._calls.popleft()
                elif self._waiting:
                    called = None
                else:
                    return
            if called is not None:
                _do(*called)
                continue
            # While an earlier pass runs, more groups may come: a pass costs as much when it is not full.
            self._network.settle()
            if groups := self._next():
                self._run(groups)

    def _next(self) -> list[_Waiting]:
        """The groups of the next pass: the first that waits, and others for passes of as many rows."""
        with self._changed:
            rows = left = self._waiting[0].rows
            chosen: list[_Waiting] = []
            others: deque[_Waiting] = deque()
            for group in self._waiting:
                if group.rows == rows and len(group.images) <= left:
                    chosen.append(group)
                    left -= len(group.images)
                else:
                    others.append(group)
            self._waiting = others
        for group in chosen:
            if not group.future.set_running_or_notify_cancel():
                group.taken()
        return [group for group in chosen if not group.future.cancelled()]

    def _run(self, groups: list[_Waiting]) -> None:
        ids = np.full((groups[0].rows, 2), -1, np.int64)
        np.concatenate([group.ids for group in groups], out=ids[: sum(len(group.ids) for group in groups)])
        try:
            output = self._network.submit([group.images for group in groups], ids).result()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is used
            for group in groups:
                group.taken()
                group.future.set_exception(error)
            return
        begin = 0
        for group in groups:
            group.taken()
            group.future.set_result(rows_of(output, slice(begin, begin + len(group.images))))
            begin += len(group.images)


def _do(work: Callable[[], T], future: "Future[T]") -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is used
        future.set_exception(error)


def _count(passed: Callable[[int], object], frames: int, future: "Future[NetworkOutput]") -> None:
    if not future.cancelled():
        passed(frames)

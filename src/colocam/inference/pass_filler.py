"""Fill the passes of a network with frames of several films, so that short films leave no rows empty."""

import threading
from collections import deque
from concurrent.futures import Future
from typing import Any, cast

import numpy as np

from colocam.inference.network import Network, NetworkOutput, OutputShape
from colocam.temporal.cuts import WINDOW
from colocam.types import Levels

GROUP = WINDOW
"""Rows of a pass that belong to one film."""


def rows_of(output: NetworkOutput, rows: slice) -> NetworkOutput:
    """Some rows of an output."""
    return NetworkOutput(*(part[rows] for part in output))


class PassFiller:
    """Passes of so many rows, in groups; each group may be of another film.

    A film's result must not depend on the other films of a pass. A network computes each row by itself, so all that
    could differ is rounding, if a kernel worked differently on other rows. This is tested once with random frames; a
    network that fails the test gets passes of one film only.

    Args:
        network: what runs the passes.
        rows: frames of a pass; results may depend on it, by rounding, so that it is always that of the film.
        shape: of the network's outputs.

    Attributes:
        group: rows of a group.
    """

    def __init__(self, network: Network, rows: int, shape: OutputShape) -> None:
        self.network, self.rows, self.shape = network, rows, shape
        self.group = rows
        if rows > GROUP and rows % GROUP == 0 and self._rows_are_alike():
            self.group = GROUP
        self._waiting: deque[tuple[Levels, Future[NetworkOutput]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="passes", daemon=True)
        if self.group < rows:
            self._thread.start()

    def submit(self, images: Levels) -> "Future[NetworkOutput]":
        """Compute a group of images (group, S, S, 3), which are copied."""
        if self.group == self.rows:
            return self.network.submit(images.copy())
        future: Future[NetworkOutput] = Future()
        with self._changed:
            self._waiting.append((images.copy(), future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """End the thread, when all that was submitted is computed."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _rows_are_alike(self) -> bool:
        side = self.shape.size
        group = np.random.default_rng(0).integers(0, 256, (GROUP, side, side, 3), np.uint8)
        output = self.network.submit(np.tile(group, (self.rows // GROUP, 1, 1, 1))).result()
        first, *others = (rows_of(output, slice(at, at + GROUP)) for at in range(0, self.rows, GROUP))
        pairs = (pair for other in others for pair in zip(first, other, strict=True))
        return all(bool(cast("Any", a == b).all()) for a, b in pairs)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
            # While an earlier pass runs, more groups may come: a pass that is not full costs as much as one that is.
            if (settle := getattr(self.network, "settle", None)) is not None:
                settle()
            with self._changed:
                some = [self._waiting.popleft() for _ in range(min(len(self._waiting), self.rows // self.group))]
            self._run(some)

    def _run(self, some: "list[tuple[Levels, Future[NetworkOutput]]]") -> None:
        images = np.zeros((self.rows, *some[0][0].shape[1:]), np.uint8)
        for index, (group, _) in enumerate(some):
            images[index * self.group : (index + 1) * self.group] = group
        try:
            output = self.network.submit(images).result()
        except Exception as error:  # noqa: BLE001 - it is raised where the result is used
            for _, future in some:
                future.set_exception(error)
            return
        for index, (_, future) in enumerate(some):
            future.set_result(rows_of(output, slice(index * self.group, (index + 1) * self.group)))

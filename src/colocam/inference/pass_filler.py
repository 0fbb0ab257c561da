"""Fill the passes of a network with frames of several films, so that short films leave no rows empty."""

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from colocam.inference.network import Network, NetworkOutput, OutputShape, rows_of
from colocam.temporal.cuts import WINDOW
from colocam.types import Levels

GROUP = WINDOW
"""Rows of a pass that belong to one film."""


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
        self._passes: deque[_Filling] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="passes", daemon=True)
        if self.group < rows:
            self._thread.start()

    def submit(self, images: Levels) -> "Future[NetworkOutput]":
        """Compute a group of images (group, S, S, 3), which are copied."""
        if self.group == self.rows:
            return self.network.submit(images.copy())
        with self._changed:
            if not self._passes or len(self._passes[-1].futures) == self.rows // self.group:
                self._passes.append(_Filling(np.empty((self.rows, *images.shape[1:]), np.uint8)))
            filling = self._passes[-1]
            begin = len(filling.futures) * self.group
            filling.futures.append(future := Future[NetworkOutput]())
        filling.images[begin : begin + self.group] = images  # several threads copy at the same time
        with self._changed:
            filling.copied += 1
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
                self._changed.wait_for(lambda: self._passes or self._closed)
                if not self._passes:
                    return
            # While an earlier pass runs, more groups may come: a pass that is not full costs as much as one that is.
            self.network.settle()
            with self._changed:
                self._changed.wait_for(lambda: self._passes[0].copied == len(self._passes[0].futures))
                filling = self._passes.popleft()
            self._run(filling)

    def _run(self, filling: "_Filling") -> None:
        try:
            output = self.network.submit(filling.images).result()
        except Exception as error:  # noqa: BLE001 - it is raised where the result is used
            for future in filling.futures:
                future.set_exception(error)
            return
        for index, future in enumerate(filling.futures):
            future.set_result(rows_of(output, slice(index * self.group, (index + 1) * self.group)))


@dataclass
class _Filling:
    """A pass that is being filled; ``copied`` of its groups are in ``images``."""

    images: Levels
    futures: "list[Future[NetworkOutput]]" = field(default_factory=list)
    copied: int = 0

"""Give items to workers; replace workers that die or make no progress; try their items again, then set them aside.

The coordinator knows nothing of processes, films and models: a pool runs the workers, and two functions are told of
each film that is done or set aside.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from colocam.corpus.items import Died, Done, Failed, Item, Known, Message, Progress, Ready, Split, Stop
from colocam.errors import ColocamError

BETWEEN_LOOKS = 1.0
"""Seconds between two looks at the clock."""
MOST_STARTS = 20
"""Workers that may die one after the other before one of them is ready."""
START_LIMIT = 600.0
"""Seconds that a worker may take to load the model."""


class Pool(Protocol):
    """Workers, each with an index: processes of this machine, or actors of a cluster."""

    def start(self, worker: int) -> None:
        """Start a worker; it reports when it is ready."""
        ...

    def submit(self, worker: int, item: Item) -> None:
        """Give an item to a worker that is ready."""
        ...

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Messages of the workers, as soon as there are some; a worker is gone after :class:`Died`."""
        ...

    def end(self, worker: int) -> None:
        """Kill a worker."""
        ...


@dataclass(slots=True)
class _Worker:
    """State of a worker.

    Attributes:
        since: when it last made progress.
        ready: whether it has loaded the model.
        item: what it works on.
        key: of that item, if it is known.
    """

    since: float
    ready: bool = False
    item: Item | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an item may cost.

    Attributes:
        seconds: without progress.
        retries: further attempts after the first.
    """

    seconds: float = 300.0
    retries: int = 3


class Coordinator:
    """Runs the items of one command.

    Args:
        pool: the workers.
        workers: how many.
        limits: of an item.
        on_frames: called with the number of frames that were done since the last call.
        on_done: called with each film whose part is in storage.
        on_failed: called with each film that is set aside: item, key, reason, attempts.
        clock: seconds.
    """

    def __init__(
        self,
        pool: Pool,
        workers: int,
        limits: Limits,
        *,
        on_frames: Callable[[int], None],
        on_done: Callable[[Item, Done], None],
        on_failed: Callable[[Item, str, str, int], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool, self._count, self._limits, self._clock = pool, workers, limits, clock
        self._on_frames, self._on_done, self._on_failed = on_frames, on_done, on_failed
        self._queue: deque[Item] = deque()
        self._attempts: Counter[Item] = Counter()
        self._open_ranges: Counter[str] = Counter()  # by film
        self._set_aside: set[str] = set()
        self._workers: dict[int, _Worker] = {}
        self._starts = 0

    def run(self, items: Iterable[Item]) -> None:
        """Do all items.

        Raises:
            ColocamError: no item can be done, e.g. because the disk is full.
        """
        self._queue.extend(items)
        for index in range(min(self._count, len(self._queue))):
            self._start(index)
        while self._queue or any(worker.item for worker in self._workers.values()):
            for index, worker in self._workers.items():
                if worker.ready and worker.item is None and self._queue:
                    worker.item, worker.key, worker.since = self._queue.popleft(), "", self._clock()
                    self._pool.submit(index, worker.item)
            for index, message in self._pool.wait(BETWEEN_LOOKS):
                self._hear(index, message)
            self._end_stuck()

    def _start(self, index: int) -> None:
        self._workers[index] = _Worker(self._clock())
        self._pool.start(index)

    def _hear(self, index: int, message: Message) -> None:
        worker = self._workers[index]
        worker.since = self._clock()
        item = worker.item
        if isinstance(message, Stop):
            raise ColocamError(message.reason)
        if isinstance(message, Died):
            self._replace(index, message.reason)
        elif isinstance(message, Ready):
            worker.ready, self._starts = True, 0
        elif isinstance(message, Progress):
            self._on_frames(message.frames)
        elif item is None:
            return  # what a worker said before it was replaced
        elif isinstance(message, Known):
            worker.key = message.key
        else:
            worker.item = None
            self._finish(item, worker.key, message)

    def _finish(self, item: Item, key: str, result: Done | Split | Failed) -> None:
        name = item.film.name
        if isinstance(result, Failed):
            self._try_again(item, key, result.reason, again=result.again)
        elif name in self._set_aside:
            return
        elif isinstance(result, Split):
            self._open_ranges[name] = len(result.ranges)
            self._queue.extendleft(Item(item.film, one) for one in reversed(result.ranges))
        elif item.range is None:
            self._on_done(item, result)
        else:
            self._open_ranges[name] -= 1
            if not self._open_ranges[name]:
                self._queue.appendleft(Item(item.film))

    def _try_again(self, item: Item, key: str, reason: str, *, again: bool) -> None:
        self._attempts[item] += 1
        if again and self._attempts[item] <= self._limits.retries:
            self._queue.append(item)
        elif item.film.name not in self._set_aside:
            self._set_aside.add(item.film.name)
            self._queue = deque(one for one in self._queue if one.film.name != item.film.name)
            self._on_failed(item, key, reason, self._attempts[item])

    def _replace(self, index: int, reason: str) -> None:
        """Start another worker in place of one that is gone."""
        worker = self._workers[index]
        if not worker.ready:
            self._starts += 1
            if self._starts >= MOST_STARTS:
                raise ColocamError(f"{MOST_STARTS} workers ended before they had loaded the model: {reason}")
        if worker.item is not None:
            self._try_again(worker.item, worker.key, reason, again=True)
        self._start(index)

    def _end_stuck(self) -> None:
        """Replace workers that made no progress for too long."""
        now = self._clock()
        for index, worker in list(self._workers.items()):
            limit = self._limits.seconds if worker.item else START_LIMIT
            if (worker.item or not worker.ready) and now - worker.since > limit:
                self._pool.end(index)
                self._replace(index, f"no progress for {limit:g} s")

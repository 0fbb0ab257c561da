"""Workers as actors of a Ray cluster (extra ``ray``).

Items and messages pass through Ray, films and frames do not: each node reads the films and writes the parts in a folder
that all nodes see under the same path.
"""

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any

from colocam.corpus.items import Died, Item, Known, Labeller, MakeLabeller, Message, Progress, Ready, Result, Stop
from colocam.corpus.worker import attempt, load
from colocam.errors import ColocamError, first_line
from colocam.utils.extras import not_installed

BETWEEN_QUESTIONS = 1.0
"""Seconds between two questions for the progress of an actor."""
CPUS = 1
WORKERS_OF_A_GPU = 4


class Actor:
    """One worker; Ray calls :meth:`told` in another thread while :meth:`label` works."""

    def __init__(self, make: MakeLabeller, index: int) -> None:
        self._make, self._index = make, index
        self._labeller: Labeller | None = None
        self._told: list[Known | Progress] = []
        self._lock = Lock()

    def load(self) -> Ready | Stop:
        """Load the model."""
        labeller = load(self._make, self._index)
        if isinstance(labeller, Stop):
            return labeller
        self._labeller = labeller
        return Ready()

    def label(self, item: Item) -> Result:
        """Label an item."""
        assert self._labeller is not None
        return attempt(self._labeller, item, self._report)

    def told(self) -> list[Known | Progress]:
        """What was reported since the last call."""
        with self._lock:
            told, self._told = self._told, []
        return told

    def _report(self, message: Known | Progress) -> None:
        with self._lock:
            self._told.append(message)


@dataclass(slots=True)
class _Worker:
    actor: Any
    answer: Any
    """Reference of the call of ``load`` or ``label`` in progress; None for an idle worker."""
    question: Any = None
    """Reference of the call of ``told`` in progress."""
    asked: float = 0.0


class RayPool:
    """Actors on the nodes of a cluster; see :class:`colocam.corpus.coordinator.Pool`.

    Args:
        make: makes the labeller of each worker.
        address: of the cluster, ``auto`` for the one that this node belongs to, ``local`` for a new one on this node.

    Attributes:
        places: number of workers that the cluster has room for.
    """

    def __init__(self, make: MakeLabeller, address: str) -> None:
        try:
            import ray  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise not_installed(error, "--ray") from error
        self._ray: Any = ray
        try:
            ray.init(address=address, log_to_driver=False, ignore_reinit_error=True)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
            raise ColocamError(f"cannot connect to the Ray cluster {address}: {first_line(error)}") from error
        self._make = make
        resources = ray.cluster_resources()
        gpus = resources.get("GPU", 0.0)
        self.places = max(1, int(gpus * WORKERS_OF_A_GPU if gpus else resources.get("CPU", 1.0) // CPUS))
        self._options = {"num_cpus": CPUS, "num_gpus": 1 / WORKERS_OF_A_GPU if gpus else 0}
        self._workers: dict[int, _Worker] = {}

    def start(self, worker: int) -> None:
        """Start an actor where there is room; it reports when it is ready."""
        actor = self._ray.remote(Actor).options(max_concurrency=2, **self._options).remote(self._make, worker)
        self._workers[worker] = _Worker(actor, actor.load.remote())

    def submit(self, worker: int, item: Item) -> None:
        """Give an item to an actor that is ready."""
        one = self._workers[worker]
        one.answer = one.actor.label.remote(item)

    def wait(self, seconds: float) -> list[tuple[int, Message]]:
        """Messages of the actors, as soon as there are some."""
        now = time.monotonic()
        for one in self._workers.values():
            if one.answer is not None and one.question is None and now - one.asked > BETWEEN_QUESTIONS:
                one.question, one.asked = one.actor.told.remote(), now
        references = [ref for one in self._workers.values() for ref in (one.answer, one.question) if ref is not None]
        if not references:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(references, num_returns=1, timeout=seconds)
        if ready:  # all others that are ready, too
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        told: list[tuple[int, Message]] = []
        for index, one in list(self._workers.items()):
            told += [(index, message) for message in self._messages(index, one, ready)]
        return told

    def end(self, worker: int) -> None:
        """Kill an actor."""
        self._ray.kill(self._workers.pop(worker).actor)

    def close(self) -> None:
        """Kill all actors and leave the cluster."""
        for worker in list(self._workers):
            self.end(worker)
        self._ray.shutdown()

    def _messages(self, index: int, one: _Worker, ready: list[Any]) -> list[Message]:
        told: list[Message] = []
        try:
            if one.question in ready:
                told += self._ray.get(one.question)
                one.question = None
            if one.answer in ready:
                answer = self._ray.get(one.answer)
                told += [*self._ray.get(one.actor.told.remote()), answer]
                one.answer = None
        except self._ray.exceptions.RayError as error:
            del self._workers[index]
            told.append(Died(f"its actor or its node is gone: {_reason(error)}"))
        return told


def _reason(error: Exception) -> str:
    """Ray states first what it was doing, and last what an actor raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if "creation task" in lines[0] else lines[0]

"""Workers on the machines of a Ray cluster (extra ``ray``): an actor per GPU, or per machine, with the engine in it.

Tasks and results pass through Ray, videos and frames do not: each machine reads the videos and writes the parts in a
folder that all of them see under the same path.

Tests: tests/inference/test_ray_workers.py.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from colocam.errors import ColocamError, first_line
from colocam.inference.engine import Model, open_pool
from colocam.inference.task import LostError, Result, Task, attempt, result_of
from colocam.utils.child_processes import Message
from colocam.utils.extras import not_installed

BETWEEN_QUESTIONS = 1.0
"""Seconds between two questions for the progress of the actors."""


class Actor:
    """The engine of one machine; Ray calls its methods in several threads."""

    def __init__(self, model: Model, workers: int, digests: Path, limit: float) -> None:
        self._frames = 0
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._problem = ""
        try:
            self._pool = self._stack.enter_context(
                open_pool(model, workers, workers, apart=True, digests=digests, passed=self._count, limit=limit)
            )
        except ColocamError as error:  # it ends the command; an actor that failed would only be started again
            self._problem = str(error)

    def do(self, task: Task) -> Message:
        """Do a task; see :func:`colocam.inference.task.result_of`."""
        if self._problem:
            return {"do": "failed", "error": "ColocamError", "text": self._problem}
        return {**attempt(self._pool.submit(task).result), "passed": self.frames()}

    def close(self) -> None:
        """End the workers."""
        self._stack.close()

    def frames(self) -> int:
        """Frames that passed the network since the last call."""
        with self._lock:
            frames, self._frames = self._frames, 0
        return frames

    def _count(self, frames: int) -> None:
        with self._lock:
            self._frames += frames


class RayWorkers:
    """Actors on the machines of a cluster; see :class:`colocam.inference.task.Pool`.

    Args:
        model: that each actor loads.
        address: of the cluster, ``auto`` for the one that this machine belongs to, ``local`` for a new one here.
        workers: processes of an actor; None: one per core that it has.
        digests: file that remembers digests of videos.
        passed: called with the number of frames that passed the networks.
        limit: seconds without progress after which a worker is replaced.

    Attributes:
        places: tasks that are done at the same time.
    """

    def __init__(
        self,
        model: Model,
        address: str,
        workers: int | None,
        digests: Path,
        passed: Callable[[int], object],
        limit: float,
    ) -> None:
        try:
            import ray  # noqa: PLC0415 - an extra
        except ModuleNotFoundError as error:
            raise not_installed(error, "--ray") from error
        self._ray: Any = ray
        try:
            ray.init(address=address, log_to_driver=False, ignore_reinit_error=True)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
            raise ColocamError(f"cannot connect to the Ray cluster {address}: {first_line(error)}") from error
        self._make = (model, digests, limit)
        self._passed = passed
        self._rooms = _rooms(ray.nodes(), workers)
        if not self._rooms:
            raise ColocamError(f"no machine of the Ray cluster {address} has a free core: add one")
        self.places = sum(count for count, _ in self._rooms)
        self._actors = [self._start(room) for room in range(len(self._rooms))]
        self._running = [0] * len(self._rooms)
        self._lock, self._closing = threading.Lock(), threading.Event()
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def submit(self, task: Task) -> "Future[Result]":
        """Let the actor that has most room do a task."""
        with self._lock:
            room = min(range(len(self._rooms)), key=lambda one: self._running[one] / self._rooms[one][0])
            self._running[room] += 1
            actor = self._actors[room]
        future: Future[Result] = Future()

        def done(answer: "Future[Message]") -> None:
            with self._lock:
                self._running[room] -= 1
            try:
                self._passed(answer.result().get("passed", 0))
                future.set_result(result_of(answer.result()))
            except ColocamError as error:
                future.set_exception(error)
            except BaseException as error:  # noqa: BLE001 - Ray's errors, which name what became of the actor
                self._replace(room, actor)
                future.set_exception(LostError(f"its actor or its machine is gone: {_reason(error)}"))

        actor.do.remote(task).future().add_done_callback(done)
        return future

    def close(self) -> None:
        """End all actors and leave the cluster."""
        self._closing.set()
        for actor in self._actors:
            self._ray.kill(actor)
        self._ray.shutdown()

    def _start(self, room: int) -> Any:  # noqa: ANN401 - an actor
        count, resources = self._rooms[room]
        model, digests, limit = self._make
        options = {"max_concurrency": count + 2, **resources}
        return self._ray.remote(Actor).options(**options).remote(model, count, digests, limit)

    def _replace(self, room: int, gone: Any) -> None:  # noqa: ANN401 - an actor
        """Start another actor, where there is room, in place of one that is gone."""
        with self._lock:
            if self._actors[room] is gone and not self._closing.is_set():
                self._actors[room] = self._start(room)

    def _watch(self) -> None:
        while not self._closing.wait(BETWEEN_QUESTIONS):
            for actor in list(self._actors):
                actor.frames.remote().future().add_done_callback(self._told)

    def _told(self, answer: "Future[int]") -> None:
        if answer.exception() is None:
            self._passed(answer.result())


def _rooms(nodes: list[dict[str, Any]], workers: int | None) -> list[tuple[int, dict[str, int]]]:
    """An actor for each GPU, or for each machine without: number of its workers, and what it takes of the machine."""
    rooms = []
    for node in nodes:
        cores, gpus = (int(node["Resources"].get(name, 0)) for name in ("CPU", "GPU"))
        if node["Alive"] and cores:
            own = max(1, cores // max(1, gpus))
            rooms += [(workers or own, {"num_cpus": own, "num_gpus": min(gpus, 1)})] * min(max(1, gpus), cores)
    return rooms


def _reason(error: BaseException) -> str:
    """Ray states first what it was doing, and last what an actor raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if "creation task" in lines[0] else lines[0]

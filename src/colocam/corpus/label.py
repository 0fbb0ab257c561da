"""Label the films of a catalogue: find what is to do, let workers do it, and list the results."""

import random
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from colocam.corpus.coordinator import Coordinator, Limits
from colocam.corpus.film_keys import film_key, quick_digest
from colocam.corpus.film_list import Labelled, write_film_list
from colocam.corpus.films import Film, Shard, of_shard, read_films
from colocam.corpus.items import Done, Item
from colocam.corpus.labelling import LabelSettings
from colocam.corpus.local_pool import LocalPool
from colocam.corpus.part_files import is_whole, part_name
from colocam.corpus.ray_pool import RayPool
from colocam.corpus.set_aside import Failures
from colocam.errors import ArgumentError, ColocamError
from colocam.utils.device import cores
from colocam.utils.digests import FileDigests
from colocam.utils.files import explain_os_errors, stored, utf8
from colocam.utils.progress import progress, say
from colocam.video.frame_choice import ALL, FrameChoice

CORES_OF_A_GPU_WORKER = 3
"""Cores that decode, resize and find boxes for one worker with a GPU; several workers keep one GPU busy."""
LOOKS = 8
"""Threads that look for parts: a network file system answers many questions at once."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How a command is executed; none of it changes results.

    Attributes:
        shard: which films.
        workers: number of worker processes; None: as many as suit the machine.
        ray: address of a Ray cluster whose actors do the work; None: processes of this machine.
        limits: what a film may cost.
        retry_failed: whether to try films again that an earlier command set aside.
    """

    shard: Shard = field(default_factory=Shard)
    workers: int | None = None
    ray: str | None = None
    limits: Limits = field(default_factory=Limits)
    retry_failed: bool = False

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ArgumentError("workers", f"must be 1 or more, got {self.workers}")
        if not self.limits.seconds > 0:
            raise ArgumentError("limit", f"must be more than 0 seconds, got {self.limits.seconds:g}")
        if self.limits.retries < 0:
            raise ArgumentError("retries", f"must be 0 or more, got {self.limits.retries}")


def label_films(
    run: str | Path,
    catalogue: str | Path,
    out: str | Path,
    execution: Execution | None = None,
    *,
    choice: FrameChoice = ALL,
    device: str | None = None,
    refine: str | None = None,
    tag: str | None = None,
    prepare: Callable[[], None] | None = None,
    **options: Any,  # noqa: ANN401 - the fields of Options
) -> None:
    """Write ``OUT/parts/ab/<key>.parquet``, a localisation table, for each film of a catalogue.

    ``OUT/films.parquet`` lists the parts by film, ``OUT/failures.parquet`` the films that could not be labelled. What
    is there already is not done again, so that the same command, on this or another machine, continues.

    Args:
        run: run folder of a trained model, or an ONNX file made from it.
        catalogue: see :func:`colocam.corpus.films.read_films`.
        out: folder of the labels; several commands may use it at the same time.
        execution: how to do it.
        choice: which frames of each film.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
        refine: a promptable segmenter, see :func:`colocam.segment.load_segmenter`.
        tag: class that all films show; None: that of the catalogue, or the one that the classifier finds.
        prepare: called first in each worker, e.g. to load extensions; it can be pickled.
        options: fields of :class:`colocam.inference.options.Options`.

    Raises:
        ColocamError: at the end, if films were set aside; at once, if no film can be labelled.
    """
    execution, run, labels = execution or Execution(), Path(run).absolute(), Path(out).absolute()
    if not stored(run).exists():
        raise ColocamError(f"no model at {run}: give a run folder of 'colocam train', or an ONNX file made from it")
    memory = labels / "digests" / f"{re.sub(r'[^A-Za-z0-9-]', '-', socket.gethostname())}-{execution.shard}.jsonl"
    settings = LabelSettings(run, labels, memory, device, refine, choice, options, prepare)
    films = of_shard(_tagged(read_films(Path(catalogue).absolute(), labels), tag), execution.shard)
    _prepare(labels)
    corpus = _Corpus(settings, films, execution)
    try:
        if corpus.waiting:
            corpus.label()
    finally:
        corpus.write_lists()
    if corpus.set_aside:
        raise ColocamError(
            f"{len(corpus.set_aside)} of {len(films)} films could not be labelled, see {labels / 'failures.parquet'}; "
            "the others are done (--retry-failed tries them again)"
        )


class _Corpus:
    """The films of one command: those that are labelled, those that are set aside, and those that wait."""

    def __init__(self, settings: LabelSettings, films: Sequence[Film], execution: Execution) -> None:
        self._settings, self._execution, self._films = settings, execution, films
        self._failures = Failures(settings.labels)
        self.done: dict[str, Labelled] = {}
        self.set_aside: set[str] = set()
        self.waiting: list[Film] = []
        for film, (key, content, whole) in zip(films, _look_at(settings, films), strict=True):
            failure = self._failures.by_film.get(utf8(film.name)) if self._failures.by_film else None
            if whole and key:
                self.done[film.name] = Labelled(key, content=content)
                self._failures.remove(film.name)
            elif failure is not None and failure.key == key and not execution.retry_failed:
                self.set_aside.add(film.name)
            else:
                self.waiting.append(film)
        say(
            f"{len(films)} films: {len(self.done)} are labelled, {len(self.set_aside)} were set aside, "
            f"{len(self.waiting)} to label"
        )

    def label(self) -> None:
        """Label the films that wait."""
        # Commands that label the same films at the same time begin at different ones.
        first = random.SystemRandom().randrange(len(self.waiting))
        items = [Item(film) for film in (*self.waiting[first:], *self.waiting[:first])]
        with (
            progress("labelling", 0, unit="frames") as advance,
            _open_pool(self._settings, self._execution) as (pool, workers),
        ):

            def note() -> str:
                return f"{len(self.done)} of {len(self._films)} films"

            def done(item: Item, result: Done) -> None:
                self.done[item.film.name] = Labelled(result.key, result.frames, result.rows, result.content)
                self._failures.remove(item.film.name)
                advance(0, note())

            def failed(item: Item, key: str, reason: str, attempts: int) -> None:
                say(f"warning: {item.name}: {reason} ({attempts} attempts)")
                self.set_aside.add(item.film.name)
                self._failures.add(item.film.name, key, reason, attempts)

            Coordinator(
                pool,
                workers,
                self._execution.limits,
                on_frames=lambda frames: advance(frames, note()),
                on_done=done,
                on_failed=failed,
            ).run(items)

    def write_lists(self) -> None:
        """Write ``films.parquet`` and ``failures.parquet``."""
        labels = self._settings.labels
        copies = write_film_list(labels, self.done, self.set_aside)
        if copies:
            copy, name = next(iter(copies.items()))
            others = f", and {len(copies) - 1} more are copies" if len(copies) > 1 else ""
            say(f"{copy} has the same content as {name}: it is listed once{others}")
        self._failures.write_table()


def _tagged(films: list[Film], tag: str | None) -> list[Film]:
    if tag is None:
        return films
    if own := next((film for film in films if film.tag is not None), None):
        raise ArgumentError("tag", f"cannot be used: the catalogue gives {own.name} the tag {own.tag}")
    return [film._replace(tag=tag) for film in films]


def _prepare(labels: Path) -> None:
    with explain_os_errors(labels):
        if labels.is_dir() and not (labels / "parts").is_dir() and any(labels.iterdir()):
            raise ColocamError(f"{labels} is not empty and holds no labels: choose another folder")
        for name in ("parts", "digests", "failures"):
            (labels / name).mkdir(parents=True, exist_ok=True)


def _look_at(settings: LabelSettings, films: Sequence[Film]) -> Iterator[tuple[str | None, str, bool]]:
    """The key of each film, the digest of its content, and whether its part is there.

    The key is None where the film must be read first, and empty where it cannot be read.
    """
    model, labels = settings.key(), str(settings.labels)
    digests = FileDigests(settings.memory, settings.memory.parent.glob("*.jsonl"))

    def look(film: Film) -> tuple[str | None, str, bool]:
        try:
            digest = quick_digest(film, digests)
        except OSError:
            return "", "", False
        if digest is None:
            return None, "", False
        key = film_key(model, film, digest)
        return key, digest, is_whole(f"{labels}/{part_name(key)}")

    with ThreadPoolExecutor(LOOKS, "looks") as pool:
        batches = (films[at : at + 256] for at in range(0, len(films), 256))
        for looked in pool.map(lambda some: [look(film) for film in some], batches):
            yield from looked


@contextmanager
def _open_pool(settings: LabelSettings, execution: Execution) -> "Iterator[tuple[LocalPool | RayPool, int]]":
    """The pool of a command, and the number of its workers."""
    if execution.ray is not None:
        with closing(RayPool(settings, execution.ray)) as actors:
            yield actors, execution.workers or actors.places
        return
    workers = execution.workers or _suitable_workers(settings)
    with closing(LocalPool(settings)) as processes:
        yield processes, workers


def _suitable_workers(settings: LabelSettings) -> int:
    if settings.run.suffix.lower() == ".onnx" or settings.device == "cpu":
        return cores()
    import torch  # noqa: PLC0415 - an ONNX file needs no torch

    gpus = torch.cuda.device_count()
    return max(gpus, cores() // CORES_OF_A_GPU_WORKER) if gpus else cores()

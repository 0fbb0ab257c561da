"""Benchmark of ``colocam localize`` on a folder of films: from files to tables and annotated videos."""

import shutil
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.inference.film import Command, Writing
from colocam.inference.film_pool import localize_films, most_workers, start_workers
from colocam.inference.jobs import find_jobs
from colocam.inference.localizer import Localizer
from colocam.utils.device import cores
from colocam.video.fence import FencedReader
from colocam.video.frame_ring import FrameLayout
from colocam.video.reader import VideoReader
from colocam.video.writer import VideoWriter
from lab.measuring import median_seconds, tell

Row = dict[str, Any]
Scenes = list[npt.NDArray[np.uint8]]

LONG, SHORT = 300, 32
"""Frames of a film."""
TURNS = 5
DRAWN = 2
"""Films for each worker that are also drawn on and encoded, which takes longest."""


def measure_films(localizer: Localizer, scenes: Scenes, films: int, network_per_s: float, boxes_ms: float) -> Row:
    """Measure and print frames per second of ``films`` films, by as many workers as suit the machine.

    The limit of a part is the rate that it would reach alone: the network on its device, and decoding, or finding
    boxes, on all cores. Starting the workers is not measured: in the command it happens while the model is loaded.

    Args:
        localizer: the model.
        scenes: frames of a film, repeated to its length.
        films: number of films.
        network_per_s: frames per second of the network alone.
        boxes_ms: milliseconds of one core for the boxes of a frame.
    """
    row: Row = {"films": films, "workers": _workers(localizer, films)}
    with TemporaryDirectory() as folder:
        long, short, drawn = Path(folder) / "long", Path(folder) / "short", Path(folder) / "drawn"
        _write_films(long, scenes, LONG, films)
        _write_films(short, scenes, SHORT, films)
        drawn.mkdir()
        for path in islice(long.iterdir(), DRAWN * row["workers"]):
            shutil.copyfile(path, drawn / path.name)
        film, layout = next(long.iterdir()), FrameLayout(localizer.card.size, images=False)
        fenced = partial(FencedReader, layout=layout)
        decoder, thread = partial(fenced, film, threads=1), partial(VideoReader, film, threads=1)
        tell(row, "decoder_per_s", "one decoder process", LONG / median_seconds(lambda: _exhaust(decoder), TURNS))
        tell(row, "thread_per_s", "the same in a thread", LONG / median_seconds(lambda: _exhaust(thread), TURNS))
        tell(row, "fence_cost", "boxes by decoder / by thread", _fence_cost(localizer, film, fenced), "times the time")
        tell(row, "tables_per_s", "films to tables", _rate(localizer, long, films * LONG, annotate=False))
        short_per_s = _rate(localizer, short, films * SHORT, annotate=False)
        tell(row, "short_tables_per_s", f"films of {SHORT} frames to tables", short_per_s)
        tell(row, "short_cost", "short / long films", row["tables_per_s"] / short_per_s, "times the time a frame")
        videos_per_s = _rate(localizer, drawn, len(list(drawn.iterdir())) * LONG, annotate=True)
        tell(row, "videos_per_s", "films to tables and mp4", videos_per_s)
    decoders, boxes = cores() * row["decoder_per_s"], cores() * 1e3 / boxes_ms
    limits = {"network": network_per_s, "decoders": decoders, "boxes": boxes}
    row["limits_per_s"] = limits
    tell(row, "share_of_limit", "films to tables / slowest part", row["tables_per_s"] / min(limits.values()), "")
    return row


def _write_films(folder: Path, scenes: Scenes, frames: int, films: int) -> None:
    folder.mkdir()
    height, width = scenes[0].shape[:2]
    with VideoWriter(folder / "0.mp4", width, height) as video:
        for index in range(frames):
            video.write(scenes[index % len(scenes)])
    for number in range(1, films):
        shutil.copyfile(folder / "0.mp4", folder / f"{number}.mp4")


def _exhaust(reader: Callable[[], VideoReader]) -> None:
    with reader() as video:
        for _ in video.frames():
            pass


def _fence_cost(localizer: Localizer, film: Path, fenced: Callable[[Path], VideoReader]) -> float:
    """Median time from file to boxes with a decoder process over that with a thread, measured turn by turn."""

    def once(reader: Callable[[Path], VideoReader]) -> float:
        start = time.perf_counter()
        with reader(film) as video, closing(localizer.stream(video.frames())) as stream:
            for _ in stream:
                pass
        return time.perf_counter() - start

    once(fenced)
    once(VideoReader)
    return statistics.median(once(fenced) / once(VideoReader) for _ in range(TURNS))


def _workers(localizer: Localizer, films: int) -> int:
    return min(most_workers(localizer), films)


def _rate(localizer: Localizer, folder: Path, frames: int, *, annotate: bool) -> float:
    """Frames per second of all films of a folder."""
    with TemporaryDirectory() as out:
        jobs = find_jobs([folder], Path(out))
        command = Command(Path(__file__), Writing(annotate=annotate))  # any file stands for the model's
        workers = start_workers(_workers(localizer, len(jobs)))
        for worker in workers:
            worker.channel.ready(None)
        start = time.perf_counter()
        with closing(localize_films(localizer, jobs, command, workers)) as outcomes:
            assert all(outcome is True for _, outcome in outcomes)
        return frames / (time.perf_counter() - start)

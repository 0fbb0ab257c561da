"""Benchmark of the commands ``localize`` and ``label`` with the presets as they are shipped, from files.

Each command runs in a process of its own, as a user starts it. ``steady`` is the rate between a quarter and three
quarters of the videos; the rate with start counts from the command to its end. The limit of a stage is the rate that
it would reach by itself: the network and the post-processing on their device, all others on all cores.
"""

import os
import pty
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import torch

from colocam.config import load_config
from colocam.config.options import Options
from colocam.inference.localizer import Localizer
from colocam.inference.network import PostProcessing
from colocam.labels.table import LocalizationTable
from colocam.temporal.cuts import WINDOW
from colocam.types import Image, VideoFrame
from colocam.utils.device import cores
from colocam.video.frame_ring import resize_into
from colocam.video.reader import VideoInfo, VideoReader
from colocam.video.writer import AnnotatedVideo
from lab.bench.shipped import HEIGHT, WIDTH, scenes, write_run, write_segmenter, write_videos
from lab.measuring import conditions, headline, keep, median_ms, tell

PRESETS = {"cuda": ("resnet50", "paper"), "cpu": ("lite0", "demo")}
VIDEOS = {"cuda": 200, "cpu": 4}
LONG, SHORT = 300, 32
"""Frames of a video."""
REFINED = {"cuda": LONG, "cpu": 4}
"""Frames that are refined: a segmenter takes seconds for one on a CPU."""
FEWEST = 4
"""Videos with a steady rate."""
REPEATS = {"cuda": 30, "cpu": 3}
Row = dict[str, Any]


def run(
    device: str = "cpu",
    json_path: Path | None = None,
    presets: Sequence[str] = (),
    models: Sequence[Path] = (),
    videos: int | None = None,
    segmenter: Path | None = None,
) -> Row:
    """Measure, print, and write to ``json_path`` after each model.

    Args:
        device: ``cpu`` or ``cuda``.
        json_path: file of the result.
        presets: whose networks are measured, with weights of :mod:`lab.bench.shipped`; by default those for the device.
        models: run folders of trained models to measure instead.
        videos: videos of 300 frames, and half the number of those of 32; by default 200 on a GPU and 4 on a CPU.
        segmenter: for ``--refine``; by default MobileSAM with random weights.
    """
    where = torch.device(device)
    count = videos or VIDEOS[where.type]
    result: Row = {**conditions(f"videos of {WIDTH}×{HEIGHT} to tables", where), "cores": cores(), "cases": []}
    print(headline(result))
    with TemporaryDirectory() as folder:
        base, images = Path(folder), scenes()
        write_videos(base / "long", images, LONG, count)
        write_videos(base / "short", images, SHORT, 2 * count)
        refine = segmenter or write_segmenter(base / "mobile_sam.safetensors")
        for name in models or presets or PRESETS[where.type]:
            if models:
                model, title = Path(name), f"trained model {name}"
            else:
                model = write_run(base / str(name), load_config(str(name)), where)
                title = f"preset {name}, random encoder, decoder fitted to these videos"
            row: Row = {"name": title}
            result["cases"].append(row)
            _measure(row, model, base, images, where, refine, count)
            keep(result, json_path)
    return result


def _measure(
    row: Row, model: Path, base: Path, images: list[Image], device: torch.device, refine: Path, count: int
) -> None:
    """Fill a row, and print each number as soon as it is measured."""
    localizer = Localizer.load(model, str(device))
    print(f"{row['name']}; {localizer.card.size}², {localizer.network.rows} frames at once", flush=True)
    row |= {"size": localizer.card.size, "rows": localizer.network.rows, "limits_per_s": {}}
    long, short, drawn = base / "long", base / "short", max(1, count // 4)
    for stage, rate in _limits(localizer, device, long / "0000.mp4", images, base):
        tell(row["limits_per_s"], stage, f"limit: {stage}", rate)
    tell(row, "latency_ms", "one live frame, decoded, to its box", _latency(localizer, images, device), "ms")
    del localizer

    first, refined = long / "0000.mp4", REFINED[device.type]
    again = _refined_again(Localizer.load(model, str(device), refine=refine), images, refined)
    tell(row, "refined_per_s", "--refine, second video of a process", again)
    one = ["localize", model, first, "--frames", "0:1", "--no-video", "--device", device.type, "-o", base / "first"]
    timed = time_process([sys.executable, "-m", "colocam", *map(str, one)])
    tell(row, "first_row_s", "first row of a command", timed.total, "s")
    row["commands"] = {}
    refining: list[object] = ["--no-video", "--refine", refine, "--frames", f"0:{refined}"]
    cases: list[tuple[int, int, str, list[object]]] = [
        (count, LONG, "", ["localize", model, long, "--no-video"]),
        (count, LONG, ", one look", ["localize", model, long, "--no-video", "--looks", "1"]),
        (2 * count, SHORT, "", ["localize", model, short, "--no-video"]),
        (drawn, LONG, ", mp4", ["localize", model, *sorted(long.iterdir())[:drawn]]),
        (1, LONG, "", ["localize", model, first, "--no-video"]),
        (1, refined, ", --refine", ["localize", model, first, *refining]),
        (count, LONG, ", label", ["label", model, long]),
    ]
    for videos, frames, how, words in cases:
        name = f"{videos} × {frames} frames{how}"
        row["commands"][name] = _time_command(name, [*words, "--device", device.type], videos, frames)
    stages = [rate for stage, rate in row["limits_per_s"].items() if stage != "mp4"]
    steady = row["commands"][f"{count} × {LONG} frames, one look"]["steady_per_s"]
    if steady is not None:
        tell(row, "share_of_limit", "steady tables / slowest stage", steady / min(stages), "")


class Timed(NamedTuple):
    """When a process began, and seconds from there to its first line on a terminal and to its end."""

    began: float
    first_line: float
    total: float


def time_process(words: Sequence[str]) -> Timed:
    """Run a process with a terminal as its stderr; an exit code other than 0 is an error."""
    master, terminal = pty.openpty()
    began, first_line, said = time.time(), float("nan"), b""
    with Popen(words, stderr=terminal, stdout=DEVNULL) as process:  # noqa: S603 - our own command
        os.close(terminal)
        with suppress(OSError):  # how a terminal ends
            while part := os.read(master, 1 << 16):
                first_line = first_line if said else time.time() - began
                said = (said + part)[-2000:]
    total = time.time() - began
    os.close(master)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {said.decode(errors='replace')}")
    return Timed(began, first_line, total)


def _time_command(name: str, words: Sequence[object], videos: int, frames: int) -> Row:
    """Rates of a command over ``videos`` videos of ``frames`` frames; few videos have no steady rate."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        timed = time_process([sys.executable, "-m", "colocam", *map(str, words), "-o", str(out)])
        tables = [path for ending in ("csv", "parquet") for path in out.rglob(f"*.{ending}")]
        ends = sorted(path.stat().st_mtime - timed.began for path in tables)[:videos]  # lists of videos come last
    first, last = videos // 4, 3 * videos // 4
    row: Row = {
        "with_start_per_s": videos * frames / timed.total,
        "steady_per_s": (last - first) * frames / (ends[last] - ends[first]) if videos >= FEWEST else None,
        "first_line_s": timed.first_line,
        "first_table_s": ends[0],
        "total_s": timed.total,
    }
    rate = f"{row['steady_per_s']:8.1f} steady," if row["steady_per_s"] else 16 * " "
    print(
        f"  {name:34} {rate} {row['with_start_per_s']:8.1f} frames/s with start; "
        f"first line {timed.first_line:.1f} s, first table {ends[0]:.1f} s, end {timed.total:.1f} s",
        flush=True,
    )
    return row


def _limits(
    localizer: Localizer, device: torch.device, video: Path, images: list[Image], base: Path
) -> Iterator[tuple[str, float]]:
    """Frames per second of each stage by itself."""
    network, card, cpu, repeats = localizer.network, localizer.card, torch.device("cpu"), REPEATS[device.type]
    rows = np.empty((network.rows, card.size, card.size, 3), np.uint8)
    for at, row in enumerate(rows):
        resize_into(images[at % len(images)], row)

    def on_cores(frames: int, work: Callable[[int], object]) -> float:
        return cores() * 1e3 * frames / median_ms(work, cpu, 3)

    def decode(_: int) -> None:
        with VideoReader(video, threads=1) as reader:
            deque(reader.frames(), maxlen=0)

    yield "decode", on_cores(LONG, decode)
    yield "resize", on_cores(1, lambda at: resize_into(images[at % len(images)], rows[at % len(rows)]))
    passes, ids, all_rows = 4, np.zeros((len(rows), 2), np.int64), slice(0, len(rows))

    def infer(_: int) -> None:
        for one in [network.submit(rows, ids, all_rows) for _ in range(passes)]:
            network.postprocess([one], PostProcessing())

    yield "network", passes * 1e3 * len(rows) / median_ms(infer, device, repeats)
    window = [network.submit(rows, ids, all_rows) for _ in range(-(-WINDOW // len(rows)))]
    window[-1] = window[-1][: WINDOW - sum(map(len, window[:-1]))]
    same = np.zeros(WINDOW, np.int64)
    settings = localizer.settings
    how = PostProcessing(None if settings.color_mean == "off" else same, same if settings.focus else None)

    def finish(_: int) -> None:
        network.postprocess(window, how)()

    yield "post-processing", 1e3 * WINDOW / median_ms(finish, device, repeats)
    with closing(localizer.stream(VideoFrame(at, at / 25, image) for at, image in enumerate(images))) as stream:
        found = list(stream)
    levels = np.stack([one.raw_map for _, one in found])
    if levels.dtype != np.uint8:
        levels = (255 * levels).astype(np.uint8)
    choose = settings.chooser.candidates
    yield "boxes", on_cores(1, lambda at: choose(levels[at % len(levels)][None], settings.threshold))

    def table(_number: int) -> None:
        with LocalizationTable(base / "limit.csv", localizer.columns) as written:
            for _, one in found:
                written.write(one)

    def mp4(_number: int) -> None:
        with AnnotatedVideo(base / "limit.mp4", VideoInfo(WIDTH, HEIGHT, None, None)) as written:
            for frame, one in found:
                written.write(frame.image, one)

    yield "tables", on_cores(len(found), table)
    yield "mp4", on_cores(len(found), mp4)


def _refined_again(localizer: Localizer, images: list[Image], count: int) -> float:
    """Frames per second of ``--refine`` in a process that has refined before."""
    frames = [VideoFrame(at, at / 25, images[at % len(images)]) for at in range(count)]
    for _ in range(2):
        began = time.perf_counter()
        deque(localizer.stream(frames), maxlen=0)
    return count / (time.perf_counter() - began)


def _latency(localizer: Localizer, images: list[Image], device: torch.device) -> float:
    """Milliseconds from one decoded frame of a live source to its box."""
    live = Localizer(localizer.network, localizer.card, options=Options(smooth="online"))

    def one(at: int) -> None:
        for _ in live.stream([VideoFrame(0, 0.0, images[at % len(images)])], live=True):
            pass

    return median_ms(one, device, REPEATS[device.type])

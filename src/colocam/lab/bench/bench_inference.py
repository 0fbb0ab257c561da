"""Benchmark of inference, from decoded frames to boxes: the network, all stages, a plain loop, and each part."""

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import candidate_boxes, largest_boxes, to_8bit
from colocam.config import Config, load_config
from colocam.inference.localizer import Localizer
from colocam.inference.network import NetworkOutput, OutputShape, PostProcessing, completed
from colocam.inference.pass_filler import PassFiller
from colocam.inference.stages import BOX_THREADS, MappedFrames, find_candidates, postprocess, read_passes
from colocam.inference.torch_network import TorchNetwork
from colocam.lab.measuring import timing
from colocam.lab.measuring.record import conditions, headline, keep
from colocam.lab.measuring.synthetic_frames import make_frames
from colocam.models import LocalizerNet, foreground, make_classifier
from colocam.models.model_file import Card
from colocam.types import VideoFrame

TAGS = tuple(f"class {number}" for number in range(10))
WIDTH, HEIGHT = 640, 360
"""Size of the decoded frames."""
SCENES = 64
"""Number of different frames; longer videos repeat them."""
THRESHOLD = 0.3
TURNS = 3
"""Measurements of a stream of frames."""
PUBLISHED = {"frames_per_s": 464.0, "latency_ms": 10.1}
"""The paper's numbers, on an A100 at 224²."""

Row = dict[str, Any]


def run(
    device: str = "cpu",
    json_path: Path | None = None,
    configs: dict[str, Config] | None = None,
    frames: int = 0,
    films: int | None = None,
) -> Row:
    """Measure, print, and write to ``json_path``.

    On a GPU the paper's network (ResNet50, 28×28 features) and the one of stride 32, in bfloat16; on a CPU the network
    of the preset ``cpu``. Weights are random, so maps of one moving blob replace the network's: the time of the boxes
    depends on the maps. Then ``films`` films are processed from their files (:mod:`colocam.lab.bench.bench_films`), by
    default 200 on a GPU and 8 on a CPU.
    """
    where = torch.device(device)
    films = (200 if where.type == "cuda" else 8) if films is None else films
    frames = frames or (4096 if where.type == "cuda" else 512)
    result: Row = {
        **conditions(f"frames of {WIDTH}×{HEIGHT} to boxes", where),
        "threads": torch.get_num_threads(),
        "published": PUBLISHED,
        "cases": [],
    }
    print(headline(result))
    for name, config in (configs or _configs(where)).items():
        row: Row = {}
        result["cases"].append(row)
        _case(row, name, config, where, frames, films)
    return keep(result, json_path)


def _configs(device: torch.device) -> dict[str, Config]:
    if device.type != "cuda":
        return {"preset cpu": load_config("cpu")}
    untrained = "backbone.pretrained=false"
    return {
        "ResNet50, stride 8 (the paper's)": load_config("paper", overrides=[untrained]),
        "ResNet50, stride 32": load_config("paper", overrides=[untrained, "backbone.output_stride=32"]),
    }


def _case(row: Row, name: str, config: Config, device: torch.device, frames: int, films: int) -> None:
    """Fill a row and print each number as soon as it is measured."""
    torch.manual_seed(0)
    decoder = config.stage2("colocam").decoder
    net = LocalizerNet(make_classifier(config, config.backbone, len(TAGS)), decoder).eval()
    card = Card(
        method="colocam",
        tags=TAGS,
        size=config.frames.crop,
        threshold=THRESHOLD,
        threshold_from="tags-only",
        backbone=config.backbone,
        decoder=decoder,
    )
    scenes = _scenes()
    # Measured first: the threads of the stages would slow the plain loop down.
    plain = _plain_rate(net.to(device), device, card.size, scenes, frames)
    network = TorchNetwork(copy.deepcopy(net), device, size=card.size)
    row |= {"name": name, "size": card.size, "batch": network.rows}
    print(f"{name}, {card.size}², {network.rows} frames at once", flush=True)
    _tell(row, "network_per_s", _network_alone(network, card.size))
    stand_in = _Blobs(network, card.size)
    row["group"] = stand_in.group
    print(f"  {'rows of a pass for one film':32} {stand_in.group:7}", flush=True)
    for key, smooth in (("boxes_per_s", "none"), ("steady_boxes_per_s", "offline")):
        _tell(row, key, _rate(Localizer(stand_in, card, smooth=smooth), scenes, frames))
    by_color = Localizer(stand_in, card, smooth="offline", color_mean="clip")
    _tell(row, "color_mean_boxes_per_s", _rate(by_color, scenes, frames))
    _tell(row, "plain_loop_per_s", plain)
    _tell(row, "ratio", row["boxes_per_s"] / row["plain_loop_per_s"])
    repeats = 30 if device.type == "cuda" else 3
    _tell(row, "latency_ms", _latency(net, device, card, scenes, repeats))
    row["parts_ms"] = {}
    for part, ms in _parts(network, stand_in, card, scenes, repeats):
        row["parts_ms"][part] = ms
        print(f"  {part:32} {ms:9.3f} ms per frame", flush=True)
    if films and _has_ffmpeg():
        from colocam.lab.bench.bench_films import measure_films  # noqa: PLC0415 - needs FFmpeg

        row["films"] = measure_films(
            Localizer(stand_in, card), scenes, films, row["network_per_s"], BOX_THREADS * row["parts_ms"]["boxes"]
        )


LINES = {
    "network_per_s": ("network alone", "frames/s"),
    "boxes_per_s": ("decoded frames to boxes", "frames/s"),
    "steady_boxes_per_s": ("decoded frames to steady boxes", "frames/s"),
    "color_mean_boxes_per_s": ("the same with the colour mean", "frames/s"),
    "plain_loop_per_s": ("plain loop over single frames", "frames/s"),
    "ratio": ("times the plain loop", ""),
    "latency_ms": ("latency of one frame", "ms"),
}


def _tell(row: Row, key: str, value: float) -> None:
    row[key] = value
    text, unit = LINES[key]
    print(f"  {text:32} {value:9.{1 if unit == 'frames/s' else 2}f} {unit}".rstrip(), flush=True)


def _network_alone(network: TorchNetwork, size: int) -> float:
    """Frames per second of the network; on a GPU without copies."""
    images = _images(size, network.rows)
    if network.device.type == "cuda":
        on_device = network.upload(images)
        return 1e3 * network.rows / timing.median_ms(lambda _: network.infer(on_device), network.device, 30)

    def some(_: int) -> None:
        for future in [network.submit(images) for _ in range(4)]:
            future.result()

    return 4e3 * network.rows / timing.median_ms(some, network.device, 3)


def _median_ms(work: Callable[[], object]) -> float:
    """Median milliseconds of ``TURNS`` calls after one warm-up call."""
    times = []
    for _ in range(1 + TURNS):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[1:])


class _Blobs:
    """The network, with maps as of a trained one instead of its own."""

    def __init__(self, network: TorchNetwork, size: int) -> None:
        self.network = network
        self.rows = network.rows
        self.on_gpu = network.on_gpu
        # Maps repeat where the network's outputs do, so that films share passes here if they do in the command.
        filler = PassFiller(network, network.rows, OutputShape(len(TAGS), size, size))
        filler.close()
        self.group = filler.group
        maps = make_frames(self.group, size, "noise")[1][torch.arange(network.rows) % self.group]
        self.maps = (to_8bit(maps) if network.device.type == "cuda" else maps).to(network.device)

    def submit(self, images: npt.NDArray[np.uint8], /) -> "Future[NetworkOutput]":
        own = self.network.submit(images)
        maps = self.maps[: len(images)]
        if own.done():
            return completed(own.result()._replace(maps=maps))
        answer: Future[NetworkOutput] = Future()
        own.add_done_callback(lambda done: answer.set_result(done.result()._replace(maps=maps)))
        return answer

    def settle(self) -> None:
        """As the network's own."""
        self.network.settle()


def _images(size: int, count: int) -> npt.NDArray[np.uint8]:
    """Images (count, size, size, 3), the input of the network."""
    scenes = make_frames(SCENES, size, "scene")[0].permute(0, 2, 3, 1).numpy()
    return np.ascontiguousarray(scenes[np.arange(count) % SCENES])


def _scenes() -> list[npt.NDArray[np.uint8]]:
    scenes = make_frames(SCENES, HEIGHT, "scene")[0].permute(0, 2, 3, 1).numpy()
    return [cv2.resize(scene, (WIDTH, HEIGHT)).astype(np.uint8, copy=False) for scene in scenes]


def _video(scenes: list[npt.NDArray[np.uint8]], count: int) -> Iterator[VideoFrame]:
    for index, image in enumerate(islice(cycle(scenes), count)):
        yield VideoFrame(index, index / 25, image)


def _plain_loop(
    net: LocalizerNet, device: torch.device, size: int, scenes: list[npt.NDArray[np.uint8]], count: int
) -> None:
    """The simplest program: eager, float32, frame by frame, the box by the published rule."""
    with torch.inference_mode():
        for frame in _video(scenes, count):
            image = cv2.resize(frame.image, (size, size), interpolation=cv2.INTER_AREA)
            seen = net(torch.from_numpy(image).permute(2, 0, 1)[None].to(device))
            seen.class_logits.softmax(1).cpu()
            largest_boxes(foreground(seen.map_logits).cpu(), THRESHOLD)


def _plain_rate(
    net: LocalizerNet, device: torch.device, size: int, scenes: list[npt.NDArray[np.uint8]], frames: int
) -> float:
    """Frames per second of the plain loop, measured on a few frames."""
    few = max(1, min(frames // 4, SCENES))
    return 1e3 * few / _median_ms(lambda: _plain_loop(net, device, size, scenes, few))


def _rate(localizer: Localizer, scenes: list[npt.NDArray[np.uint8]], frames: int) -> float:
    """Frames per second from decoded frames in host memory to boxes."""

    def stages() -> None:
        for _ in localizer.stream(_video(scenes, frames)):
            pass

    return 1e3 * frames / _median_ms(stages)


def _latency(
    net: LocalizerNet, device: torch.device, card: Card, scenes: list[npt.NDArray[np.uint8]], repeats: int
) -> float:
    """Milliseconds from a single decoded frame to its box."""
    network = TorchNetwork(copy.deepcopy(net), device, size=card.size)
    localizer = Localizer(_Blobs(network, card.size), card, smooth="online")

    def one(number: int) -> None:
        for _ in localizer.stream(_video(scenes[number % SCENES :], 1), live=True):
            pass

    return timing.median_ms(one, device, repeats)


def _parts(
    network: TorchNetwork, stand_in: _Blobs, card: Card, scenes: list[npt.NDArray[np.uint8]], repeats: int
) -> Iterator[tuple[str, float]]:
    """Milliseconds per frame of each stage by itself; the stages overlap, so the slowest limits the rate."""
    device, rows, size = network.device, network.rows, card.size
    localizer = Localizer(stand_in, card)
    (resized,) = read_passes(_video(scenes, rows), size, rows, None, histograms=True)
    on_device = network.upload(resized.images)
    output = network.infer(on_device)
    host = postprocess([stand_in.submit(resized.images).result()], PostProcessing())()
    mapped = MappedFrames(resized.frames, np.zeros(rows, bool), lambda: host)
    stages: dict[str, Callable[[int], object]] = {
        "resize": lambda _: list(read_passes(_video(scenes, rows), size, rows, None, histograms=True)),
        "copy": lambda _: (network.upload(resized.images), postprocess([output], PostProcessing())()),
        "network": lambda _: network.infer(on_device),
        "boxes": lambda _: list(
            find_candidates((one for one in [mapped]), lambda logits: [card.threshold] * len(logits), candidate_boxes)
        ),
    }
    for name, stage in stages.items():
        yield name, timing.median_ms(stage, device, repeats) / rows
    if _has_ffmpeg():
        yield from _files(localizer, scenes)


def _has_ffmpeg() -> bool:
    """Whether a video can be written; a module named av may be incomplete."""
    try:
        from colocam.video.writer import VideoWriter  # noqa: PLC0415 - what computes on frames in memory does without

        with TemporaryDirectory() as folder:
            film = Path(folder) / "film.mp4"
            with VideoWriter(film, 16, 16) as video:
                video.write(np.zeros((16, 16, 3), np.uint8))
            return film.stat().st_size > 0
    except Exception:  # noqa: BLE001 - a stand-in may fail in any way
        return False


def _files(localizer: Localizer, scenes: list[npt.NDArray[np.uint8]]) -> Iterator[tuple[str, float]]:
    """Decoding H.264, and writing the annotated video and the table."""
    from colocam.inference.sinks import AnnotatedVideo  # noqa: PLC0415
    from colocam.labels.table import LocalizationTable  # noqa: PLC0415
    from colocam.video.reader import VideoInfo, decode  # noqa: PLC0415
    from colocam.video.writer import VideoWriter  # noqa: PLC0415

    told = list(localizer.stream(_video(scenes, SCENES)))
    with TemporaryDirectory() as folder:
        film = Path(folder) / "film.mp4"
        with VideoWriter(film, WIDTH, HEIGHT) as video:
            for scene in scenes:
                video.write(scene)

        def write() -> None:
            with (
                AnnotatedVideo(Path(folder) / "out.mp4", VideoInfo(WIDTH, HEIGHT, None, None)) as drawn,
                LocalizationTable(Path(folder) / "out.csv") as listed,
            ):
                for frame, found in told:
                    drawn.write(frame.image, found)
                    listed.write(found)

        cpu = torch.device("cpu")
        yield "decode", timing.median_ms(lambda _: list(decode(film)), cpu, 3) / len(scenes)
        yield "write", timing.median_ms(lambda _: write(), cpu, 3) / len(told)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    run(arguments.device, arguments.json)

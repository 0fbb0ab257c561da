"""Benchmark of inference, from decoded frames to boxes: the network, all stages, a plain loop, and each part."""

import copy
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
from colocam.models import LocalizerNet, foreground, make_classifier
from colocam.models.model_file import Card
from colocam.types import VideoFrame
from lab import measuring as timing
from lab.measuring import conditions, headline, keep, make_frames, median_seconds, tell

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
Scenes = list[npt.NDArray[np.uint8]]


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
    depends on the maps. Then ``films`` films are processed from their files (:mod:`lab.bench.films`), by
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
    scenes = [cv2.resize(one, (WIDTH, HEIGHT)).astype(np.uint8, copy=False) for one in _squares(HEIGHT)]
    # Measured first: the threads of the stages would slow the plain loop down.
    few, net = max(1, min(frames // 4, SCENES)), net.to(device)
    plain = few / median_seconds(lambda: _plain_loop(net, device, card.size, scenes, few), TURNS)
    network = TorchNetwork(copy.deepcopy(net), device, size=card.size)
    row |= {"name": name, "size": card.size, "batch": network.rows}
    print(f"{name}, {card.size}², {network.rows} frames at once", flush=True)
    tell(row, "network_per_s", "network alone", _network_alone(network, card.size))
    stand_in = _Blobs(network, card.size)
    row["group"] = stand_in.group
    print(f"  {'rows of a pass for one film':34} {stand_in.group:7}", flush=True)
    localizer, steady = Localizer(stand_in, card, smooth="none"), Localizer(stand_in, card, smooth="offline")
    by_color = Localizer(stand_in, card, smooth="offline", color_mean="clip")
    tell(row, "boxes_per_s", "decoded frames to boxes", _rate(localizer, scenes, frames))
    tell(row, "steady_boxes_per_s", "decoded frames to steady boxes", _rate(steady, scenes, frames))
    tell(row, "color_mean_boxes_per_s", "the same with the colour mean", _rate(by_color, scenes, frames))
    tell(row, "plain_loop_per_s", "plain loop over single frames", plain)
    tell(row, "ratio", "times the plain loop", row["boxes_per_s"] / plain, "")
    repeats = 30 if device.type == "cuda" else 3
    tell(row, "latency_ms", "latency of one frame", _latency(net, device, card, scenes, repeats), "ms")
    row["parts_ms"] = {}
    for part, ms in _parts(network, stand_in, card, scenes, repeats):
        row["parts_ms"][part] = ms
        print(f"  {part:34} {ms:9.3f} ms per frame", flush=True)
    if films and _has_ffmpeg():
        from lab.bench.films import measure_films  # noqa: PLC0415 - needs FFmpeg

        row["films"] = measure_films(
            Localizer(stand_in, card), scenes, films, row["network_per_s"], BOX_THREADS * row["parts_ms"]["boxes"]
        )


def _network_alone(network: TorchNetwork, size: int) -> float:
    """Frames per second of the network; on a GPU without copies."""
    images = np.ascontiguousarray(_squares(size)[np.arange(network.rows) % SCENES])
    if network.device.type == "cuda":
        on_device = network.upload(images)
        return 1e3 * network.rows / timing.median_ms(lambda _: network.infer(on_device), network.device, 30)

    def some(_: int) -> None:
        for future in [network.submit(images) for _ in range(4)]:
            future.result()

    return 4e3 * network.rows / timing.median_ms(some, network.device, 3)


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


def _squares(size: int) -> npt.NDArray[np.uint8]:
    """Frames (SCENES, size, size, 3)."""
    return make_frames(SCENES, size, "scene")[0].permute(0, 2, 3, 1).numpy()


def _video(scenes: Scenes, count: int) -> Iterator[VideoFrame]:
    for index, image in enumerate(islice(cycle(scenes), count)):
        yield VideoFrame(index, index / 25, image)


def _plain_loop(net: LocalizerNet, device: torch.device, size: int, scenes: Scenes, count: int) -> None:
    """The simplest program: eager, float32, frame by frame, the box by the published rule."""
    with torch.inference_mode():
        for frame in _video(scenes, count):
            image = cv2.resize(frame.image, (size, size), interpolation=cv2.INTER_AREA)
            seen = net(torch.from_numpy(image).permute(2, 0, 1)[None].to(device))
            seen.class_logits.softmax(1).cpu()
            largest_boxes(foreground(seen.map_logits).cpu(), THRESHOLD)


def _rate(localizer: Localizer, scenes: Scenes, frames: int) -> float:
    """Frames per second from decoded frames in host memory to boxes."""

    def stages() -> None:
        for _ in localizer.stream(_video(scenes, frames)):
            pass

    return frames / median_seconds(stages, TURNS)


def _latency(net: LocalizerNet, device: torch.device, card: Card, scenes: Scenes, repeats: int) -> float:
    """Milliseconds from a single decoded frame to its box."""
    network = TorchNetwork(copy.deepcopy(net), device, size=card.size)
    localizer = Localizer(_Blobs(network, card.size), card, smooth="online")

    def one(number: int) -> None:
        for _ in localizer.stream(_video(scenes[number % SCENES :], 1), live=True):
            pass

    return timing.median_ms(one, device, repeats)


def _parts(
    network: TorchNetwork, stand_in: _Blobs, card: Card, scenes: Scenes, repeats: int
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


def _files(localizer: Localizer, scenes: Scenes) -> Iterator[tuple[str, float]]:
    """Decoding H.264, and writing the annotated video and the table."""
    from colocam.inference.sinks import AnnotatedVideo  # noqa: PLC0415
    from colocam.labels.table import LocalizationTable  # noqa: PLC0415
    from colocam.video.fence import decode  # noqa: PLC0415
    from colocam.video.reader import VideoInfo  # noqa: PLC0415
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

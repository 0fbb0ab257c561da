"""Benchmark of the ways to the connected regions of a map, from frames to boxes.

| use                    | ways                                                                                       |
|------------------------|--------------------------------------------------------------------------------------------|
| ``localize``           | contours by ``OpenCV``                                                                     |
| ``evaluate``           | one component ``tree`` per map in C, contours by ``OpenCV`` for each of the 256 levels     |

``end_to_end_ms`` is the time of a frame with the network: on a CPU, where both use the same cores, the sum; on a GPU,
where the stages overlap, the larger of the two, with the boxes spread over threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import boxes_at_levels, candidate_boxes
from colocam.boxes.extract import sweep_by_opencv
from colocam.config import Config, load_config
from colocam.lab.measuring import timing
from colocam.lab.measuring.record import conditions, headline, keep
from colocam.lab.measuring.synthetic_frames import make_frames
from colocam.models import LocalizerNet, make_classifier
from colocam.types import Levels

BATCH, THREADS, THRESHOLD, CLASSES = 32, 8, 0.3, 10
ROUGH = 14
"""Cells per side of the noise on rough maps."""

Row = dict[str, Any]


def run(device: str = "cpu", json_path: Path | None = None, config: Config | None = None, repeats: int = 9) -> Row:
    """Measure, print, and write to ``json_path``: the preset ``paper`` on a GPU, ``cpu`` on a CPU, random weights."""
    where = torch.device(device)
    config = config or load_config("paper" if where.type == "cuda" else "cpu", None, ["backbone.pretrained=false"])
    size = config.frames.map_side
    result: Row = {**conditions(f"frames of {size}² to boxes, {BATCH} at once", where), "cases": []}
    print(headline(result))
    network = _network_ms(config, where, repeats)
    result["network_ms"] = network
    print(f"  network {network:.3f} ms per frame")
    for kind, maps in {"smooth": smooth_maps(size), "rough": rough_maps(size)}.items():
        for use, ways in USES.items():
            row = _case(use, ways, maps, where, network, repeats)
            result["cases"].append({"use": use, "maps": kind, **row})
            print(f"  {use}, {kind} maps: " + "; ".join(f"{w} {_line(row, w)}" for w in ways), flush=True)
    return keep(result, json_path)


def _line(row: Row, way: str) -> str:
    return f"{row['boxes_ms'][way]:.3f} ms, with the network {row['end_to_end_ms'][way]:.3f} ms"


def _case(
    use: str,
    ways: dict[str, Callable[[Levels], object]],
    maps: Levels,
    where: torch.device,
    network: float,
    repeats: int,
) -> Row:
    cpu = torch.device("cpu")
    with ThreadPoolExecutor(THREADS) as pool:

        def spread(way: Callable[[Levels], object], _: int) -> None:
            list(pool.map(way, np.array_split(maps, THREADS)))

        threaded = where.type == "cuda" and use == "localize"
        calls = [partial(spread, way) if threaded else partial(_alone, way, maps) for way in ways.values()]
        times = [ms / len(maps) for ms in timing.in_turn_ms(calls, cpu, repeats)]
    both = [max(network, ms) if threaded else network + ms for ms in times]
    return {"boxes_ms": dict(zip(ways, times, strict=True)), "end_to_end_ms": dict(zip(ways, both, strict=True))}


def _alone(way: Callable[[Levels], object], maps: Levels, _: int) -> None:
    way(maps)


def _network_ms(config: Config, where: torch.device, repeats: int) -> float:
    """Milliseconds per frame of the network alone."""
    classifier = make_classifier(config, config.backbone, CLASSES)
    net = LocalizerNet(classifier, config.localizer.decoder, map_size=config.frames.map_size).to(where).eval()
    frames = make_frames(BATCH, config.frames.crop, "scene")[0].to(where)

    def infer(_: int) -> None:
        with torch.inference_mode(), torch.autocast(where.type, torch.bfloat16, enabled=where.type == "cuda"):
            net(frames)

    return timing.median_ms(infer, where, repeats) / BATCH


def smooth_maps(size: int) -> Levels:
    """(BATCH, size, size) of one moving blob."""
    return (255 * make_frames(BATCH, size, "noise")[1].numpy()).astype(np.uint8)


def rough_maps(size: int) -> Levels:
    """The same with coarse noise, so that each threshold has many contours."""
    noise = np.random.default_rng(0).random((BATCH, ROUGH, ROUGH), np.float32)
    coarse = np.stack([cv2.resize(one, (size, size), interpolation=cv2.INTER_CUBIC) for one in noise])
    mixed = np.clip(0.6 * smooth_maps(size) / 255 + 0.5 * coarse, 0, None)
    return np.asarray(255 * mixed / mixed.max((1, 2), keepdims=True), np.uint8)


def levels_by_opencv(levels: Levels) -> npt.NDArray[np.int16]:
    """``boxes_at_levels`` with a contour search for each level."""
    boxes = np.zeros((len(levels), 256, 4), np.int16)
    sweep_by_opencv(levels, boxes)
    return boxes


USES: dict[str, dict[str, Callable[[Levels], object]]] = {
    "localize": {"OpenCV": lambda maps: candidate_boxes(maps, THRESHOLD)},
    "evaluate": {"tree": boxes_at_levels, "OpenCV": levels_by_opencv},
}
"""Use → way → function of maps (B, H, W)."""

"""Benchmark of finding boxes: ``localize`` finds the candidates of each map, ``evaluate`` the boxes at all 256 levels.

The latter is timed in our way and with a call of OpenCV for each level.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import torch

from colocam.boxes import boxes_at_levels, candidate_boxes
from colocam.boxes.extract import contour_box
from colocam.types import Levels
from lab import measuring as timing
from lab.measuring import conditions, headline, keep, make_frames

BATCH, THRESHOLD = 32, 0.3
ROUGH = 14
"""Cells per side of the noise on rough maps."""


def run(device: str = "cpu", json_path: Path | None = None, size: int = 224, repeats: int = 9) -> dict[str, Any]:
    """Measure on one core, print, and write to ``json_path``; maps are ``size`` × ``size``."""
    cases: list[dict[str, Any]] = []
    result = {**conditions(f"maps of {size}² to boxes, {BATCH} at once", torch.device(device)), "cases": cases}
    print(headline(result))
    for kind, maps in {"smooth": smooth_maps(size), "rough": rough_maps(size)}.items():
        calls = [lambda _, way=way, maps=maps: way(maps) for way in WAYS.values()]
        times = [ms / len(maps) for ms in timing.in_turn_ms(calls, torch.device("cpu"), repeats)]
        cases.append({"maps": kind, "ms": dict(zip(WAYS, times, strict=True))})
        print(f"  {kind} maps: " + "; ".join(f"{way} {ms:.3f} ms" for way, ms in cases[-1]["ms"].items()), flush=True)
    return keep(result, json_path)


def smooth_maps(size: int) -> Levels:
    """(BATCH, size, size) of one moving blob."""
    return (255 * make_frames(BATCH, size, "noise")[1].numpy()).astype(np.uint8)


def rough_maps(size: int) -> Levels:
    """The same with coarse noise, so that each threshold has many contours."""
    noise = np.random.default_rng(0).random((BATCH, ROUGH, ROUGH), np.float32)
    coarse = np.stack([cv2.resize(one, (size, size), interpolation=cv2.INTER_CUBIC) for one in noise])
    mixed = np.clip(0.6 * smooth_maps(size) / 255 + 0.5 * coarse, 0, None)
    return np.asarray(255 * mixed / mixed.max((1, 2), keepdims=True), np.uint8)


def levels_by_opencv(levels: Levels) -> npt.NDArray[np.int64]:
    """``boxes_at_levels`` with a call of OpenCV for each level."""
    boxes = np.zeros((len(levels), 256, 4), np.int64)
    for i, level in enumerate(levels):
        for cut in range(int(level.max())):
            mask = (level > cut).view(np.uint8)
            contours = cv2.findContours(mask, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)[0]
            boxes[i, cut] = contour_box(max(contours, key=cv2.contourArea), level.shape)
    return boxes


WAYS: dict[str, Callable[[Levels], object]] = {
    "localize": lambda maps: candidate_boxes(maps, THRESHOLD),
    "evaluate": boxes_at_levels,
    "evaluate with OpenCV": levels_by_opencv,
}
"""Way → function of maps (B, H, W)."""

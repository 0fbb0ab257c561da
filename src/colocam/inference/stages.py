"""Batches on their way through the stages: frames, pictures, maps."""

from typing import NamedTuple

import cv2
import numpy as np

from colocam.temporal.cuts import Histograms
from colocam.types import Float32Array, Levels, VideoFrame

HEAT: Float32Array = np.minimum((np.arange(256) + 0.5) / 255, 1).astype(np.float32)
"""(256,) foreground probability of an 8-bit level: the middle of what is rounded down to it."""


class Pictures(NamedTuple):
    """A batch: its frames, (B, S, S, 3) what the network sees of them, and (B, D) their colours where someone asked."""

    frames: list[VideoFrame]
    pictures: Levels
    histograms: Histograms | None = None


class Maps(NamedTuple):
    """A batch with the network's answers, see :class:`Network`."""

    batch: Pictures
    logits: Float32Array
    maps: Float32Array | Levels
    peaks: Float32Array


def heat_of(maps: Float32Array | Levels) -> Float32Array:
    """Foreground probabilities (B, h, w) of maps that may be 8-bit levels."""
    heat: Float32Array = cv2.LUT(maps, HEAT) if maps.dtype == np.uint8 else maps  # type: ignore[assignment]
    return heat


def resize(jobs: list[tuple[VideoFrame, Levels]]) -> list[Levels]:
    """Resize each frame into the picture (S, S, 3) beside it."""
    for frame, out in jobs:
        cv2.resize(frame.image, out.shape[1::-1], dst=out, interpolation=cv2.INTER_AREA)
    return [out for _, out in jobs]


def softmax(logits: Float32Array) -> Float32Array:
    """Probabilities (B, K) of logits (B, K)."""
    odds = np.exp(logits - logits.max(1, keepdims=True))
    probabilities: Float32Array = odds / odds.sum(1, keepdims=True)
    return probabilities

"""Types that are shared by several packages.

Tests: tests/inference/test_localizer.py.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint8]
"""(H, W, 3) RGB."""
Levels = npt.NDArray[np.uint8]
"""(…, H, W) maps in 8 bits: 255 · map, truncated, as the published protocol reads them."""
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
HEAT: Float32Array = np.minimum((np.arange(256) + 0.5) / 255, 1).astype(np.float32)
"""(256,) foreground probability of an 8-bit level: the middle of the values that are rounded down to it."""

MOST_LOOKS = 3
"""At a frame."""
Split = Literal["train", "val", "test"]
Overlay = Literal["box", "contour", "heat"]
"""What an annotated video shows beside the boxes: nothing, a line around the heat, or the heat map."""
SPLITS: tuple[Split, ...] = get_args(Split)

ReadInMap = bool | Literal["large"]
"""Whether the class is read from features weighted by the map; ``large``: the more, the larger the object."""
ColorMean = Literal["off", "frame", "clip"]
"""Which pixels the color mean averages over (docs/method/color-mean.md): off: no color mean, as published; frame:
those of the same frame; clip: those of the frames of the same shot."""

COLOR_MEANS: tuple[ColorMean, ...] = get_args(ColorMean)


class Box(NamedTuple):
    """Axis-aligned box in pixels, x to the right and y down; (x1, y1) is the upper left corner."""

    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class VideoFrame:
    """One decoded frame.

    Attributes:
        index: index of the frame in its file, from 0.
        pts: presentation time in seconds, as the file states it (it need not start at 0).
        image: (H, W, 3) uint8 RGB, as displayed; all black, and without memory, where it was not asked for.
        resized: (S, S, 3), what a network reads, where the decoder made it.
    """

    index: int
    pts: float
    image: Image
    resized: Image | None = None


@dataclass(frozen=True, slots=True)
class Clip:
    """Consecutive frames of one video under one tag (a whole video, or one shot of it).

    Attributes:
        name: unique and stable in its catalogue, e.g. ``cat/video-03``.
        tag: the class that the whole video carries.
        split: train, val or test; clips of one video never fall into different splits.
        path: a video file, or a folder of images.
        video: the video this clip was cut from (equal to ``name`` for a whole video).
        start: first second of the clip in its file.
        end: second where the clip ends (exclusive), None for the end of the file.
        frames: the image files in order where the clip is a folder of images, empty for a video file.
        digest: of the content of its files, see :mod:`colocam.data.frame_cache`; empty where they cannot be read, None
            where it is not known.
    """

    name: str
    tag: str
    split: Split
    path: Path
    video: str
    start: float = 0.0
    end: float | None = None
    frames: tuple[Path, ...] = ()
    digest: str | None = None


class ObjectMask(NamedTuple):
    """An object of a frame.

    Attributes:
        box: (4,) extent of the mask in pixels of the frame, whole numbers.
        pixels: (h, w) the mask inside its box.
        score: 0–1.
    """

    box: Float64Array
    pixels: npt.NDArray[np.bool_]
    score: float

    def in_frame(self, height: int, width: int) -> npt.NDArray[np.bool_]:
        """The mask (height, width) of the whole frame."""
        x1, y1, x2, y2 = self.box.astype(int).tolist()
        mask = np.zeros((height, width), bool)
        mask[y1:y2, x1:x2] = self.pixels
        return mask


@dataclass(frozen=True, slots=True)
class Localization:
    """The result for one frame, or for one object in it.

    Attributes:
        frame: index of the frame in its video, from 0.
        pts: presentation time in seconds.
        tag: class of the shot; without smoothing, the most probable class of the frame.
        probability: probability of ``tag`` in this frame, 0–1.
        box: box of the object in pixels of the original video; None without an object.
        score: mean foreground probability inside the box, 0–1; of one of several objects, how much it stands out
            (:func:`colocam.boxes.candidates.contrasts`); 0 without a box.
        raw_map: (h, w) the heat map as the network gave it: foreground probability in float32, or 8-bit levels.
        track: index of the object within its video; None without tracking.
        presence: probability that the tagged object is in this frame, 0–1; None if the model has no calibration.
        margin: score of the box minus the best score of a box elsewhere, −1–1; None without a box or for one of several
            objects.
        mask: (H, W) bool in pixels of the original video, the object's outline; None if not asked for or without a box.
        refined: name of the segmenter that gave mask and box; None where they come from the heat map.
        shot_probability: share of ``tag`` in the votes of the shot that decided it, 0–1; None without smoothing.
    """

    frame: int
    pts: float
    tag: str
    probability: float
    box: Box | None
    score: float
    raw_map: Float32Array | Levels = field(repr=False)
    track: int | None = None
    presence: float | None = None
    margin: float | None = None
    mask: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    refined: str | None = None
    shot_probability: float | None = None

    @property
    def heatmap(self) -> Float32Array:
        """(h, w) float32, foreground probability at the model's resolution; computed when it is read."""
        return heat_of(self.raw_map)


def heat_of(maps: Float32Array | Levels) -> Float32Array:
    """Foreground probabilities (…, h, w) of maps that may be 8-bit levels."""
    return HEAT[maps] if maps.dtype == np.uint8 else np.asarray(maps, np.float32)

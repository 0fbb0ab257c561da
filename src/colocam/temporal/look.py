"""Where a second look goes: a square of a frame's map, and what was found in it (docs/method/second-look.md).

Tests: tests/inference/test_second_look.py.
"""

import math
from typing import NamedTuple, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.extract import mask_of_box
from colocam.types import Float32Array, Float64Array, Levels

Map = TypeVar("Map", Levels, Float32Array, Float32Array | Levels)

MARGIN = 1.15
"""Side of the square in map pixels, relative to the longer side of the box in map pixels."""
LEAST = 0.2
"""Least side of the square, relative to the frame: a box may cover only a part of the object."""
ENOUGH = 224
"""Largest square, in pixels of the network's input: a larger object gains nothing, and loses its surroundings."""
ENOUGH_WITH_PRIOR = 112
"""The same where a prior weighs the maps: they already end where the object ends."""
PART = 0.6
"""Side of a part of the frame that is searched for several objects, relative to the frame's: parts overlap."""
OVERLAP = 0.1
"""If the box of a look overlaps the first box by less than this IoU, the look found something else."""


class Square(NamedTuple):
    """A square of a map (M, M), in whole pixels of it; in the frame it has the frame's aspect ratio.

    Attributes:
        x: left edge.
        y: upper edge.
        side: at most M.
    """

    x: int
    y: int
    side: int

    def in_frame(self, size: tuple[int, ...], map_side: int) -> tuple[slice, slice]:
        """Its rows and columns in a frame of (height, width), at least one of each."""
        height, width = size
        return _part(self.y, self.side, height, map_side), _part(self.x, self.side, width, map_side)

    def pixels(self, size: tuple[int, ...], map_side: int) -> int:
        """Its longer side in a frame of (height, width)."""
        rows, columns = self.in_frame(size[:2], map_side)
        return int(max(rows.stop - rows.start, columns.stop - columns.start))

    def from_inside(self, boxes: Float64Array, map_side: int) -> Float64Array:
        """Boxes (n, 4) of a map (M, M) of this square alone, in pixels of the whole map."""
        mapped: Float64Array = boxes * (self.side / map_side) + np.array([self.x, self.y] * 2)
        return mapped

    def pasted(self, inside: Map, whole: Map) -> Map:
        """A map (M, M) of this square alone, shrunk into a copy of the map of the frame."""
        joined = whole.copy()
        small = cv2.resize(inside, (self.side, self.side), interpolation=cv2.INTER_AREA)
        joined[self.y : self.y + self.side, self.x : self.x + self.side] = small
        return joined

    def shown_in_box(self, inside: Map, whole: Map, box: Float64Array) -> Map:
        """A copy of the map of the frame that has, inside a box (4,), at least the heat of the map of this square."""
        x1, y1, x2, y2 = (round(at) for at in box.tolist())
        within = (slice(y1, y2 + 1), slice(x1, x2 + 1))
        warmer = whole.copy()
        warmer[within] = np.maximum(whole[within], self.pasted(inside, whole)[within])
        return warmer


class Look(NamedTuple):
    """What a second look found.

    Attributes:
        square: where it went.
        levels: (M, M) map of the square alone, in 8 bits.
        boxes: (k, 4) candidate boxes in pixels of that map.
        peaks: (K,) maxima of the classes' activation maps in the square.
        foreground: how sure the decoder is of a foreground there, 0–1 (:mod:`colocam.maps.foreground`).
    """

    square: Square
    levels: Levels
    boxes: Float64Array
    peaks: npt.NDArray[np.float32]
    foreground: float

    def mask(self, index: int, threshold: float, size: tuple[int, int]) -> npt.NDArray[np.bool_] | None:
        """Outline (height, width) of a candidate in a frame of ``size`` (height, width), as ``mask_of_box`` finds it.

        Args:
            index: of the candidate.
            threshold: τ at which it was found.
            size: of the frame.
        """
        rows, columns = self.square.in_frame(size, len(self.levels))
        within = (columns.stop - columns.start, rows.stop - rows.start)
        inside = mask_of_box(self.levels, threshold, self.boxes[index].tolist(), within)
        if inside is None:
            return None
        mask = np.zeros(size, bool)
        mask[rows, columns] = inside
        return mask


def square_around(box: Float64Array, side: int, size: int, *, prior: bool = False) -> Square | None:
    """The square to look at for a box (4,) in a map of ``side`` pixels; None if the network sees it well enough.

    It is square in map pixels, so in the frame it has the frame's aspect ratio. It is shifted to lie inside the frame.

    Args:
        box: in pixels of the map.
        side: of the map.
        size: side of the network's input.
        prior: whether one weighs the maps.
    """
    width, height = box[2:] - box[:2]
    length = math.ceil(max(MARGIN * max(width, height), LEAST * side))
    enough = ENOUGH_WITH_PRIOR if prior else ENOUGH
    if length >= side or length * size > enough * side:
        return None
    x, y = (round(min(max(float(middle) - length / 2, 0.0), side - length)) for middle in (box[:2] + box[2:]) / 2)
    return Square(x, y, length)


def four_parts(side: int) -> list[Square]:
    """Parts of a map (side, side) that overlap and together cover it."""
    length = round(PART * side)
    return [Square(x, y, length) for y in (0, side - length) for x in (0, side - length)]


def _part(start: int, length: int, pixels: int, map_side: int) -> slice:
    """The pixels of a frame that a part of its map covers."""
    first = min(round(start * pixels / map_side), pixels - 1)
    return slice(first, max(round((start + length) * pixels / map_side), first + 1))

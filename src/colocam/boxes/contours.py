"""Contours of a thresholded map: areas and extents in the order of OpenCV's ``findContours``, without outlines.

Border following after Suzuki and Abe (1985): a raster scan finds the first pixel of each border, of a component or of a
hole, and follows it, marking its pixels with the index of the border. Pixels with background to the right get a mark of
their own, so that no border is followed twice. The last border met before a new one determines its parent.

Compiled, for whole batches without Python's global lock: ``colocam bench boxes`` compares it with calls of OpenCV.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.utils.jit import compiled

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Int = int | np.integer[Any]

DX = np.array([1, 1, 0, -1, -1, -1, 0, 1], np.int32)
DY = np.array([0, -1, -1, -1, 0, 1, 1, 1], np.int32)
"""Steps to the eight neighbours, counter-clockwise from the right one."""
EMPTY, FRESH, MARKED, MARKED_RIGHT = range(4)
"""States of a pixel: background; foreground not on a border so far; on a border; on a border with background to the
right."""
WORD = 8
"""Pixels compared at once; the map begins after one word and below one row of background."""
ALL_FRESH = np.uint64(0x0101010101010101 * FRESH)
LEFT, TOP, RIGHT, BOTTOM, PARENT, HOLE, CHILD, NEXT = range(8)
"""Columns of the contour table: first column, first row, last column, last row, parent (-1: none), whether it is the
contour of a hole, first child and next sibling (-1: none; the contour found last comes first)."""
COLUMNS = 8


class Scratch(NamedTuple):
    """Buffers for maps of one size.

    Attributes:
        pixels: (H + 2, W padded by a word on either side) state of each pixel.
        numbers: the same shape; index of the border that a marked pixel is on.
        table: (H · W + 1, COLUMNS) a row per contour in the order of discovery.
        areas: (H · W + 1,) twice the polygon area of each contour.
    """

    pixels: Bytes
    numbers: Ints
    table: Ints
    areas: Longs


@compiled
def scratch(height: int, width: int) -> Scratch:
    """Allocate the buffers."""
    shape = (height + 2, (width + 3 * WORD - 1) // WORD * WORD)
    room = height * width + 1
    table, areas = np.empty((room, COLUMNS), np.int32), np.empty(room, np.int64)
    return Scratch(np.zeros(shape, np.uint8), np.empty(shape, np.int32), table, areas)


@compiled
def follow_contours(level: Bytes, cut: Int, space: Scratch) -> tuple[Int, Int]:
    """Fill ``space`` with all contours of the mask ``level > cut``; columns and rows are those of ``space.pixels``.

    Returns:
        index of the contour that OpenCV lists first, -1 without any; number of contours.
    """
    height, width = level.shape
    pixels, numbers, table, areas = space
    words, limit = pixels.view(np.uint64), np.uint8(cut)
    for i in range(height):
        row, out = level[i], pixels[i + 1, WORD : WORD + width]
        for j in range(width):
            out[j] = row[j] > limit
    count, head = np.int64(0), np.int64(-1)
    for y in range(1, height + 1):
        met, before = np.int64(-1), np.uint8(EMPTY)
        x = np.int64(WORD)
        while x <= width + WORD:
            if x % WORD == 0:
                alike = words[y, x // WORD]
                if (alike == 0 and before == EMPTY) or (alike == ALL_FRESH and before == FRESH):
                    x += WORD
                    continue
            here = pixels[y, x]
            outer = before == EMPTY and here == FRESH
            hole = here == EMPTY and EMPTY < before < MARKED_RIGHT
            if outer or hole:
                parent = met
                if met >= 0 and (table[met, HOLE] == 1) != outer:
                    parent = np.int64(table[met, PARENT])
                areas[count] = _follow(pixels, numbers, x - hole, y, hole, count, table[count])
                table[count, PARENT] = parent
                table[count, HOLE] = hole
                table[count, CHILD] = -1
                if parent < 0:
                    table[count, NEXT] = head
                    head = count
                else:
                    table[count, NEXT] = table[parent, CHILD]
                    table[parent, CHILD] = count
                count += 1
                here = pixels[y, x]
            before = here
            if here >= MARKED:
                met = np.int64(numbers[y, x])
            x += 1
    return head, count


@compiled
def box_of_contour(row: Ints, height: Int, width: Int) -> tuple[Int, Int, Int, Int]:
    """Bounding rectangle x, y, x + w, y + h of a row of the table, clipped to the last pixel of the map (H, W)."""
    x1, y1 = row[LEFT] - WORD, row[TOP] - 1
    return x1, y1, min(row[RIGHT] - WORD + 1, width - 1), min(row[BOTTOM], height - 1)


@compiled
def next_contour(table: Ints, at: Int) -> Any:  # noqa: ANN401 - the compiler chooses the kind of integer
    """Index of the contour that OpenCV lists after ``at``: first its children, then its siblings; -1 after the last."""
    if table[at, CHILD] >= 0:
        return table[at, CHILD]
    while at >= 0 and table[at, NEXT] < 0:
        at = table[at, PARENT]
    return table[at, NEXT] if at >= 0 else -1


@compiled
def _follow(
    pixels: Bytes,
    numbers: Ints,
    x: Int,
    y: Int,
    hole: bool | np.bool_,  # noqa: FBT001 - compiled code has no keywords
    number: Int,
    row: Ints,
) -> Int:
    """Mark the border that begins at x, y, write its extent to ``row`` and return twice its polygon area."""
    left = right = at_x = np.int64(x)
    top = bottom = at_y = np.int64(y)
    area, end = np.int64(0), 0 if hole else 4
    side = (end - 1) & 7
    while side != end and pixels[y + DY[side], x + DX[side]] == EMPTY:
        side = (side - 1) & 7
    alone = side == end
    if alone:
        pixels[y, x], numbers[y, x] = MARKED_RIGHT, number
    last_x, last_y = x + DX[side], y + DY[side]
    while not alone:
        end = side
        side += 1
        while pixels[at_y + DY[side & 7], at_x + DX[side & 7]] == EMPTY:
            side += 1
        side &= 7
        if 0 < side <= end:  # the right neighbour was examined and is background
            pixels[at_y, at_x], numbers[at_y, at_x] = MARKED_RIGHT, number
        elif pixels[at_y, at_x] == FRESH:
            pixels[at_y, at_x], numbers[at_y, at_x] = MARKED, number
        dx, dy = DX[side], DY[side]
        area += at_x * dy - at_y * dx
        done = at_x == last_x and at_y == last_y
        at_x, at_y = at_x + dx, at_y + dy
        if done and at_x == x and at_y == y:
            break
        left, right, top, bottom = min(left, at_x), max(right, at_x), min(top, at_y), max(bottom, at_y)
        side = (side + 4) & 7
    row[LEFT], row[TOP], row[RIGHT], row[BOTTOM] = left, top, right, bottom
    return abs(area)

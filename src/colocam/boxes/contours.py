"""All contours of a mask as OpenCV's ``findContours`` has them, compiled: areas and boxes, no outlines.

Border following after Suzuki and Abe (1985): a scan from above follows each border, of a component or of a hole, at its
first pixel and marks it with the border's number; pixels with background to the right are marked apart, so that no
border is followed twice. The border met last before a new one says what it lies in.

For a mask a call of OpenCV is as fast. But a call into OpenCV gives up the interpreter's lock and takes it again, and
many threads that do so for each mask wait for each other; this does whole batches without it.
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
"""Steps to the neighbours, counter-clockwise from the right one."""
EMPTY, FRESH, MARKED, MARKED_RIGHT = range(4)
"""Pixels: background, not on a border so far, on one, on one with background to the right."""
WORD = 8
"""Pixels looked at together; the map begins after a word and below a row of background."""
ALL_FRESH = np.uint64(0x0101010101010101 * FRESH)
LEFT, TOP, RIGHT, BOTTOM, PARENT, HOLE, CHILD, NEXT = range(8)
"""Columns of the table of contours: first and last column and row, the contour around it (-1 for none), whether it is
that of a hole, the first contour within it, and the next one beside it (-1 for none); the last found comes first."""
COLUMNS = 8


class Scratch(NamedTuple):
    """Space to work in, for maps of one size.

    Attributes:
        pixels: (H + 2, width, a word more on either side) what is known of each pixel.
        numbers: the same shape; the border that a marked pixel is on.
        table: (H · W + 1, COLUMNS) a row per contour in the order in which they are met; a mask has fewer.
        areas: (H · W + 1,) twice the area inside each.
    """

    pixels: Bytes
    numbers: Ints
    table: Ints
    areas: Longs


@compiled
def scratch(height: int, width: int) -> Scratch:
    """Space for maps of that size."""
    shape = (height + 2, (width + 3 * WORD - 1) // WORD * WORD)
    room = height * width + 1
    table, areas = np.empty((room, COLUMNS), np.int32), np.empty(room, np.int64)
    return Scratch(np.zeros(shape, np.uint8), np.empty(shape, np.int32), table, areas)


@compiled
def follow_contours(level: Bytes, cut: Int, space: Scratch) -> Int:
    """Find all contours of the mask ``level > cut``, areas and extents, in ``space``.

    Columns and rows are those of ``space.pixels``.

    Returns:
        the contour that OpenCV lists first, -1 without any.
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
    return head


@compiled
def next_contour(table: Ints, at: Int) -> Any:  # noqa: ANN401 - an integer; of which kind, the compiler decides
    """The contour that OpenCV lists after another: those within it, then those beside it; -1 after the last."""
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
    """Mark the border that begins at x, y with its number, note its extent in ``row``; return twice the area inside."""
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
        if 0 < side <= end:  # the right neighbour was looked at, and is background
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

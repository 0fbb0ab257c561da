"""All contours of a mask as OpenCV's ``findContours`` has them, compiled: areas and boxes, no outlines.

Border following after Suzuki and Abe (1985): a scan from above follows each border, of a component or of a hole, at its
first pixel and marks it with the border's number; pixels with background to the right get the number's negative, so
that no border is followed twice. The border met last before a new one says what it lies in.

For a mask a call of OpenCV is as fast. But a call into OpenCV gives up the interpreter's lock and takes it again, and
many threads that do so for each mask wait for each other; this does whole batches without it.
"""

import numpy as np
import numpy.typing as npt

from colocam.compiled import compiled

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

DX = np.array([1, 1, 0, -1, -1, -1, 0, 1], np.int32)
DY = np.array([0, -1, -1, -1, 0, 1, 1, 1], np.int32)
"""Steps to the neighbours, counter-clockwise from the right one."""
LEFT, TOP, RIGHT, BOTTOM, PARENT, HOLE, CHILD, NEXT = range(8)
"""Columns of the table of contours: first and last column and row, the contour around it (-1 for none), whether it is
that of a hole, the first contour within it, and the next one beside it (-1 for none); the last found comes first."""
COLUMNS = 8


@compiled
def follow_contours(level: Bytes, cut: int, marks: Ints, table: Ints, areas: Longs) -> tuple[int, int]:
    """Find all contours of the mask ``level > cut``.

    Args:
        level: (H, W).
        cut: the mask's threshold.
        marks: scratch space (H + 2, W + 2), its outermost pixels 0.
        table: (H · W + 1, COLUMNS), filled here, a row per contour in the order in which they are met.
        areas: (H · W + 1,), filled here: twice the area inside each.

    Returns:
        the number of contours, and the one that OpenCV lists first, -1 without any.
    """
    height, width = level.shape
    count, head = np.int64(0), np.int64(-1)
    for y in range(height):
        for x in range(width):
            marks[y + 1, x + 1] = level[y, x] > cut
    for y in range(1, height + 1):
        met, before = np.int64(-1), np.int32(0)
        for x in range(1, width + 2):
            here = marks[y, x]
            if here == before:
                continue
            outer = before == 0 and here == 1
            hole = here == 0 and before >= 1
            if outer or hole:
                if met < 0:
                    parent = np.int64(-1)
                elif (table[met, HOLE] == 1) == outer:
                    parent = met
                else:
                    parent = np.int64(table[met, PARENT])
                areas[count] = _follow(marks, x - hole, y, hole, count + 2, table[count])
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
                here = marks[y, x]
            before = here
            if abs(here) > 1:
                met = np.int64(abs(here)) - 2
    return count, head


@compiled
def next_contour(table: Ints, at: int) -> int:
    """The contour that OpenCV lists after another: those within it, then those beside it; -1 after the last."""
    if table[at, CHILD] >= 0:
        return table[at, CHILD]
    while at >= 0 and table[at, NEXT] < 0:
        at = table[at, PARENT]
    return table[at, NEXT] if at >= 0 else -1


@compiled
def _follow(marks: Ints, x: int, y: int, hole: bool, number: int, row: Ints) -> int:  # noqa: FBT001 - compiled
    """Mark the border that begins at x, y with ``number``, note its extent in ``row``; return twice the area inside."""
    row[LEFT] = row[RIGHT] = x
    row[TOP] = row[BOTTOM] = y
    end = 0 if hole else 4
    side = (end - 1) & 7
    while side != end and marks[y + DY[side], x + DX[side]] == 0:
        side = (side - 1) & 7
    if side == end:
        marks[y, x] = -number
        return 0
    last_x, last_y = x + DX[side], y + DY[side]
    at_x, at_y, area = np.int64(x), np.int64(y), np.int64(0)
    while True:
        end = side
        side += 1
        while marks[at_y + DY[side & 7], at_x + DX[side & 7]] == 0:
            side += 1
        side &= 7
        if 0 < side <= end:  # the right neighbour was looked at, and is background
            marks[at_y, at_x] = -number
        elif marks[at_y, at_x] == 1:
            marks[at_y, at_x] = number
        dx, dy = DX[side], DY[side]
        area += at_x * dy - at_y * dx
        to_x, to_y = at_x + dx, at_y + dy
        if to_x == x and to_y == y and at_x == last_x and at_y == last_y:
            return abs(area)
        at_x, at_y = to_x, to_y
        row[LEFT] = min(row[LEFT], at_x)
        row[RIGHT] = max(row[RIGHT], at_x)
        row[TOP] = min(row[TOP], at_y)
        row[BOTTOM] = max(row[BOTTOM], at_y)
        side = (side + 4) & 7

"""The published box at every threshold at once, by one flood fill and one component tree per map.

``boxes_at_levels`` gives the box of ``largest_boxes`` for each of the 256 masks ``levels > t``, in time nearly linear
in the number of pixels and independent of the number of thresholds. Two facts make it exact:

1. Contours of holes, and of components inside holes, are never the largest. So holes may be filled for all masks in
   advance: a pixel is outside of every filled component of ``levels > t`` exactly if a 4-connected path of levels
   ≤ t leads from it out of the map. A flood fill from the border finds the lowest such t (``_fill_holes``).
2. In a mask without holes the polygon through the border pixels of an 8-connected component has the area
   #(2×2 squares with 4 pixels set) + ½·#(2×2 squares with 3 set). Each such square lies in one component, so areas
   are only added up while pixels are set from the highest level down and components are joined (``_add_level``).

``colocam bench boxes`` compares it with a contour search for each level.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from colocam.boxes.quantize import Maps, checked_levels
from colocam.utils.device import threads
from colocam.utils.jit import compiled

NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))
"""(dy, dx) clockwise from the upper left; bit i of a neighbourhood stands for the i-th."""
WEST, EAST, BEFORE, AFTER = 0b11000001, 0b00011100, 0b10000111, 0b01111000
"""Neighbours in the column to the left and to the right, and before and after the pixel in raster order."""

LEFT, RIGHT, START, END, AREA2 = range(5)
"""Columns of the components' table: first and last column, first and last pixel in raster order, twice the contour's
area. ``START`` also breaks ties as OpenCV's order of contours does: of equals the one that starts last is listed first.
"""

Int = int | np.int64
Ints = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Boxes = npt.NDArray[np.int16]


def boxes_at_levels(maps: Maps) -> Boxes:
    """Boxes of the largest contour of each mask ``levels > t`` with ``levels = ⌊255·map⌋``, for t = 0 … 255.

    Args:
        maps: (B, H, W), floats in 0–1 or uint8 levels.

    Returns:
        (B, 256, 4) x1, y1, x2, y2 in map pixels as ``largest_boxes`` has them; 0, 0, 0, 0 from the map's maximum on,
        where no pixel is left.
    """
    levels = checked_levels(maps)
    boxes = np.zeros((len(levels), 256, 4), np.int16)
    workers = max(1, min(threads(), len(levels)))
    with ThreadPoolExecutor(workers) as pool:  # compiled code runs without Python's global lock
        jobs = zip(np.array_split(levels, workers), np.array_split(boxes, workers), strict=True)
        for job in [pool.submit(_sweep, *job) for job in jobs]:
            job.result()
    return boxes


def _neighbourhood_tables() -> tuple[Bytes, Bytes]:
    """For each of the 256 neighbourhoods of a pixel that is set now: growth of twice the area, neighbours to join.

    A 2×2 square gains ½ when at least two of its other three pixels are set already. Neighbours that touch each other
    are one component already, so one of them (the lowest bit) is enough to join.
    """
    growth, join = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    for bits in range(256):
        left = [i for i in range(8) if bits >> i & 1]
        growth[bits] = sum(len({i, (i + 1) % 8, (i + 2) % 8} & set(left)) >= 2 for i in (1, 3, 5, 7))
        while left:
            group = [left[0]]
            join[bits] |= 1 << group[0]
            for i in group:
                group += [j for j in left if j not in group and _touch(i, j)]
            left = [j for j in left if j not in group]
    return growth, join


def _touch(i: int, j: int) -> bool:
    return all(abs(a - b) <= 1 for a, b in zip(NEIGHBOURS[i], NEIGHBOURS[j], strict=True))


GROWTH, JOIN = _neighbourhood_tables()
FIRST = np.array([0] + [(bits & -bits).bit_length() - 1 for bits in range(1, 256)])  # index of the lowest bit


@compiled
def _sweep(levels: Bytes, boxes: Boxes) -> None:
    """Fill ``boxes`` (B, 256, 4), zeros before, from ``levels`` (B, H, W)."""
    _, height, width = levels.shape
    stride = width + 2  # a border of one pixel around the map gives every pixel eight neighbours
    size = (height + 2) * stride
    filled, present = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    parent, link = np.empty(size, np.int32), np.empty(size, np.int32)
    order, tied = np.empty(height * width, np.int32), np.empty(height * width, np.int32)
    table = np.empty((size, 5), np.int32)
    steps = np.empty(8, np.int32)
    for i in range(8):
        steps[i] = NEIGHBOURS[i][0] * stride + NEIGHBOURS[i][1]
    for i in range(len(levels)):
        _fill_holes(levels[i], filled, present, link, order)
        present[:] = 0
        _largest_components(filled, order, steps, present, parent, table, tied, boxes[i])


@compiled
def _fill_holes(levels: Bytes, filled: Bytes, waiting: Bytes, link: Ints, order: Ints) -> None:
    """Find the lowest t at which a pixel is connected with the outside through levels ≤ t.

    Args:
        levels: (H, W).
        filled: gets that t, flat, within a border of zeros one pixel wide.
        waiting: zeros; scratch space.
        link: scratch space.
        order: (H·W,) gets the indices of the pixels in ``filled``, from the lowest t to the highest.
    """
    height, width = levels.shape
    stride = width + 2
    first = np.full(256, -1, np.int32)  # one stack of pixels per level, continued in `link`
    for y in range(height):
        for x in range(width):
            pixel = (y + 1) * stride + x + 1
            filled[pixel] = levels[y, x]
            waiting[pixel] = 1
    for y in range(height):
        for x in range(0, width, 1 if y in (0, height - 1) else max(width - 1, 1)):
            pixel = (y + 1) * stride + x + 1
            waiting[pixel] = 0
            link[pixel] = first[levels[y, x]]
            first[levels[y, x]] = pixel
    done = 0
    for level in range(256):
        while first[level] >= 0:
            pixel = first[level]
            first[level] = link[pixel]
            order[done] = pixel
            done += 1
            for other in (pixel - stride, pixel - 1, pixel + 1, pixel + stride):
                if waiting[other]:
                    waiting[other] = 0
                    reached = max(filled[other], level)
                    filled[other] = reached
                    link[other] = first[reached]
                    first[reached] = other


@compiled
def _largest_components(
    filled: Bytes, order: Ints, steps: Ints, present: Bytes, parent: Ints, table: Ints, tied: Ints, boxes: Boxes
) -> None:
    """Write the box of the largest component at each level below the maximum to ``boxes`` (256, 4).

    Args:
        filled: map without holes within a border of zeros, flat.
        order: its pixels from the lowest level to the highest.
        steps: (8,) from a pixel to its neighbours.
        present: zeros; which pixels are set so far.
        parent: scratch space; the forest of components, a root is its own parent.
        table: scratch space; extent and area of each root.
        tied: scratch space; the roots of the largest area.
        boxes: filled here.
    """
    at, stride = len(order) - 1, steps[5]
    # A Python 0 would have another type, for which everything would be compiled a second time.
    ties: Int = np.int64(0)
    largest: Int = np.int64(0)
    right, bottom = stride - 3, len(filled) // stride - 3
    for level in range(int(filled[order[at]]) - 1, -1, -1):
        at, largest, ties = _add_level(level, at, largest, ties, filled, order, steps, present, parent, table, tied)
        best, ties = _first_of_tied(tied, ties, parent, table)
        x1, y1 = table[best, LEFT] - 1, table[best, START] // stride - 1
        x2, y2 = table[best, RIGHT], table[best, END] // stride
        _write(boxes, level, x1, y1, min(x2, right), min(y2, bottom))
        # A component with more than half of the area that touches all edges keeps its box at all lower levels.
        if largest > right * bottom and x1 == 0 and y1 == 0 and x2 > right and y2 > bottom:
            for lower in range(level):
                _write(boxes, lower, x1, y1, right, bottom)
            return


@compiled
def _write(boxes: Boxes, level: int, x1: int, y1: int, x2: int, y2: int) -> None:
    boxes[level, 0] = x1
    boxes[level, 1] = y1
    boxes[level, 2] = x2
    boxes[level, 3] = y2


@compiled
def _add_level(  # noqa: C901, PLR0912 - one loop: calls would be slow at every pixel
    level: int,
    at: int,
    largest: Int,
    ties: Int,
    filled: Bytes,
    order: Ints,
    steps: Ints,
    present: Bytes,
    parent: Ints,
    table: Ints,
    tied: Ints,
) -> tuple[int, Int, Int]:
    """Set the pixels above ``level`` that are still to come, from ``order[at]`` downwards, and join components.

    Returns:
        the next ``at``, twice the largest area, and the number of entries of ``tied``: roots that have or had it.
    """
    stride = steps[5]
    while at >= 0 and filled[order[at]] > level:
        pixel = order[at]
        at -= 1
        above, below = pixel - stride, pixel + stride
        bits = (
            present[above - 1]
            | present[above] << 1
            | present[above + 1] << 2
            | present[pixel + 1] << 3
            | present[below + 1] << 4
            | present[below] << 5
            | present[below - 1] << 6
            | present[pixel - 1] << 7
        )
        present[pixel] = 1
        if bits == 0:
            root = pixel
            table[root, LEFT] = table[root, RIGHT] = pixel % stride
            table[root, START] = table[root, END] = pixel
            table[root, AREA2] = 0
        else:
            root = pixel + steps[FIRST[bits]]
            while parent[root] != root:
                parent[root] = parent[parent[root]]
                root = parent[root]
            table[root, AREA2] += GROWTH[bits]
            if not bits & WEST:
                table[root, LEFT] = min(table[root, LEFT], pixel % stride)
            if not bits & EAST:
                table[root, RIGHT] = max(table[root, RIGHT], pixel % stride)
            if not bits & BEFORE:
                table[root, START] = min(table[root, START], pixel)
            if not bits & AFTER:
                table[root, END] = max(table[root, END], pixel)
        parent[pixel] = root
        rest = JOIN[bits] & ~(1 << FIRST[bits])
        while rest:
            other = pixel + steps[FIRST[rest]]
            rest &= rest - 1
            while parent[other] != other:
                parent[other] = parent[parent[other]]
                other = parent[other]
            if other != root:
                if table[other, AREA2] > table[root, AREA2]:
                    root, other = other, root
                parent[other] = root
                table[root, LEFT] = min(table[root, LEFT], table[other, LEFT])
                table[root, RIGHT] = max(table[root, RIGHT], table[other, RIGHT])
                table[root, START] = min(table[root, START], table[other, START])
                table[root, END] = max(table[root, END], table[other, END])
                table[root, AREA2] += table[other, AREA2]
        if table[root, AREA2] > largest:
            largest = table[root, AREA2]
            ties = 0
        if table[root, AREA2] == largest:
            tied[ties] = root
            ties += 1
    return at, largest, ties


@compiled
def _first_of_tied(tied: Ints, ties: Int, parent: Ints, table: Ints) -> tuple[int, Int]:
    """Drop entries that are no longer roots; return the root that OpenCV lists first and the number of entries."""
    best, kept = -1, 0
    for i in range(ties):
        root = tied[i]
        if parent[root] == root:
            tied[kept] = root
            kept += 1
            if best < 0 or table[root, START] > table[best, START]:
                best = root
    return best, kept

"""Connected components by union-find as Triton kernels: two launches, exact for any shape, without host transfers.

``parent`` has, for every pixel of the batch, the index of a pixel of the same component that is not larger than its
own; a root is its own parent. Two roots are united by an atomic minimum, whose result shows whether another thread
changed the root first.

Tests: tests/boxes/test_blobs.py, tests/gpu/test_gpu.py, tests/test_triton_interpreter.py.
"""

# A kernel is written in Triton's subset of Python, which has no type annotations.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def _root(parent, pixel):
    """Follow the parents of each lane's pixel to the root; an outdated parent is still an ancestor."""
    above = tl.load(parent + pixel)
    while tl.max((above != pixel).to(tl.int32), axis=0) > 0:
        pixel = above
        above = tl.load(parent + pixel)
    return pixel


@triton.jit
def unite(parent, mask, pixels, width, total, block: tl.constexpr):
    """Unite each pixel with the one above it, once for every stretch where two horizontal runs touch.

    On entry the parent of a pixel is the first of its horizontal run.
    """
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    inside = pixel < total
    row_start = pixel % width == 0
    below_another = inside & (pixel % pixels >= width)
    here = tl.load(mask + pixel, inside, 0) != 0
    up = tl.load(mask + pixel - width, below_another, 0) != 0
    left = tl.load(mask + pixel - 1, inside & ~row_start, 0) != 0
    up_left = tl.load(mask + pixel - width - 1, below_another & ~row_start, 0) != 0
    busy = here & up & ~(left & up_left)
    a = tl.where(inside, pixel, 0)
    b = tl.where(busy, pixel - width, a)
    while tl.max(busy.to(tl.int32), axis=0) > 0:
        a = _root(parent, a)
        b = _root(parent, b)
        low, high = tl.minimum(a, b), tl.maximum(a, b)
        busy = busy & (low != high)
        before = tl.atomic_min(parent + high, low, mask=busy)
        busy = busy & (before != high)
        a = low
        b = tl.where(busy, before, low)


@triton.jit
def resolve(parent, roots, total, block: tl.constexpr):
    """Write the root of every pixel."""
    pixel = tl.program_id(0) * block + tl.arange(0, block)
    inside = pixel < total
    tl.store(roots + pixel, _root(parent, tl.where(inside, pixel, 0)), inside)

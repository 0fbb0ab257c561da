"""The last steps of the pairwise losses as Triton kernels: many small operations in one launch each."""

# A kernel is written in Triton's subset of Python, which has no type annotations.
# ruff: noqa: ANN001, ANN201
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["frames", "groups"])
def weigh(
    totals, group, weights, value, frames, groups,
    least: tl.constexpr, divisor: tl.constexpr, block_f: tl.constexpr, block_g: tl.constexpr,
):  # fmt: skip
    """Weight of each group and the weighted sum of energies, as ``pairwise.weigh``. Programs: one.

    With ``least`` 1, every group must have a frame.

    totals (groups, 2) float64, group (frames,) → weights (groups,) and value, float32.
    """
    g = tl.arange(0, block_g)
    mass = tl.load(totals + 2 * g, g < groups, 0.0)
    energy = 0.5 * mass - 2 * tl.load(totals + 2 * g + 1, g < groups, 0.0)
    size = (g < groups).to(tl.int32)
    if least > 1:
        size = tl.zeros((block_g,), tl.int32)
        for start in range(0, frames, block_f):
            f = start + tl.arange(0, block_f)
            size += tl.sum((tl.load(group + f, f < frames, -1)[:, None] == g[None, :]).to(tl.int32), 0)
    counted = tl.where(size >= least, 1.0, 0.0).to(tl.float64)
    weight = counted / tl.maximum(tl.sum(counted), 1.0)
    if divisor == "energy":
        weight /= tl.maximum(tl.maximum(tl.abs(energy), 1e-6 * mass), 1e-300)
    if divisor == "affinity":
        weight /= tl.maximum(tl.maximum(tl.abs(mass - energy), 1e-6 * mass), 1e-300)
    tl.store(weights + g, weight.to(tl.float32), g < groups)
    tl.store(value, tl.sum(weight * energy).to(tl.float32))


@triton.jit
def scale(product, group, weights, pixels, block: tl.constexpr):
    """Multiply product by -4 · weights[group] of each frame. Programs: (pixels / block, frames)."""
    frame = tl.program_id(1)
    p = tl.program_id(0) * block + tl.arange(0, block)
    mask = p < pixels
    at = frame.to(tl.int64) * pixels + p
    weight = -4 * tl.load(weights + tl.load(group + frame))
    tl.store(product + at, weight * tl.load(product + at, mask, 0.0), mask)

"""The product on color cells as Triton kernels.

Moments are (copies, groups, cells, cells, cells, channels, 4) float32, with one or two channels of values: those of
one cell fit into a 32-byte sector of memory, so a pixel reads and writes one sector. ``splat`` can also sum them in
64-bit fixed point: the sum of integers does not depend on the order of atomic additions, which changes from run to run.
In kernels over pixels each thread computes one pixel at a time (block = 32·warps): no data moves between threads.

Tests: tests/gpu/test_gpu.py, tests/test_triton_interpreter.py.
"""

# A kernel is written in Triton's subset of Python, which has no type annotations.
# ruff: noqa: ANN001, ANN201, ANN202, D403, RET505
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def _axis(level, per_level, shift, cells: tl.constexpr):
    """Cell of levels on one axis, which is shifted, and the offset from the cell's center, -½ … ½ cells."""
    position = (level.to(tl.float32) + 0.5) * per_level + shift
    # Clamp to half a cell outside; a comparison keeps NaN, a minimum would not.
    position = tl.where(position > cells + 0.5, cells + 0.5, tl.where(position < -0.5, -0.5, position))
    cell = tl.minimum(tl.maximum(position, 0.0), cells - 0.5).to(tl.int32)
    return cell, position - cell.to(tl.float32) - 0.5


@triton.jit
def _encode(rgb, channel_stride, mask, per_level, shift_g, shift_b, curvature, constant, linear, cells: tl.constexpr):
    """Cell and φ of the pixels whose red levels are at the pointers ``rgb``."""
    r, fr = _axis(tl.load(rgb, mask, 0), per_level, 0.0, cells)
    g, fg = _axis(tl.load(rgb + channel_stride, mask, 0), per_level, shift_g, cells)
    b, fb = _axis(tl.load(rgb + 2 * channel_stride, mask, 0), per_level, shift_b, cells)
    e = (1 - curvature * fr * fr) * (1 - curvature * fg * fg) * (1 - curvature * fb * fb)
    slope = linear * e
    return (r * cells + g) * cells + b, constant * e, slope * fr, slope * fg, slope * fb


@triton.jit
def _pack(a, b, c, d):
    """Four (N,) tensors as (N, 4), a row in one thread: one 16-byte access."""
    return tl.join(tl.join(a, c), tl.join(b, d)).reshape(a.shape[0], 4)


@triton.jit
def _unpack(x):
    """Inverse of ``_pack``."""
    even, odd = tl.split(x.reshape(x.shape[0], 2, 2))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    return a, b, c, d


@triton.jit
def _values(values, channel_stride, second, mask, ones: tl.constexpr):
    """Two channels of values, of which the second may be missing; with ``ones``, 1 and S - ½ of the only channel S."""
    v = tl.load(values, mask, 0.0).to(tl.float32)
    if ones:
        return tl.full(v.shape, 1.0, tl.float32), v - 0.5
    else:
        return v, tl.load(values + channel_stride, mask & second, 0.0).to(tl.float32)


@triton.jit
def _flush(moments, unit, cell, mask, e0, r0, g0, b0, e1, r1, g1, b1, fixed: tl.constexpr):
    """Add moments to the cells of the lanes in ``mask``; with ``fixed`` as integers, multiplied by ``unit``."""
    at = moments + (cell.to(tl.int64) * 8)[:, None] + tl.arange(0, 4)[None, :]
    first, second = _pack(e0, r0, g0, b0), _pack(e1, r1, g1, b1)
    if fixed:
        first, second = (first * unit).to(tl.int64), (second * unit).to(tl.int64)
    tl.atomic_add(at, first, mask[:, None], sem="relaxed")
    tl.atomic_add(at + 4, second, mask[:, None], sem="relaxed")


@triton.jit(do_not_specialize=["first_group", "groups", "second"])
def splat(
    rgb, values, group, moments, units,
    pixels, rgb_frame, rgb_channel, rgb_pixel, values_frame, values_channel, values_pixel, second,
    first_group, groups, per_level, shift_g, shift_b, curvature, constant, linear,
    cells: tl.constexpr, copies: tl.constexpr, ones: tl.constexpr, fixed: tl.constexpr,
    block: tl.constexpr, run: tl.constexpr,
):  # fmt: skip
    """Add φ ⊗ v of every pixel to its cell; with ``fixed`` in units of 1 / units[0]. Programs: (pixels / …, frames).

    A lane takes ``run`` pixels in a row and sums neighbors of one cell before it writes: atomic additions to one
    address are serialized, and uniform regions would otherwise need one for every pixel.
    """
    frame = tl.program_id(1)
    g = tl.load(group + frame) - first_group
    if (g < 0) | (g >= groups):
        return
    copy = tl.program_id(0) % copies
    volume = cells * cells * cells
    moments += (copy * groups + g).to(tl.int64) * (volume * 8)
    rgb += frame.to(tl.int64) * rgb_frame
    values += frame.to(tl.int64) * values_frame
    start = (tl.program_id(0) * block + tl.arange(0, block)) * run
    unit = tl.load(units) if fixed else 1.0

    zero = tl.zeros((block,), tl.float32)
    e0, e1, r0, r1, g0, g1, b0, b1 = zero, zero, zero, zero, zero, zero, zero, zero
    cell = tl.full((block,), -1, tl.int32)
    for i in tl.static_range(run):
        p = start + i
        mask = p < pixels
        new, e, fr, fg, fb = _encode(
            rgb + p * rgb_pixel, rgb_channel, mask, per_level, shift_g, shift_b, curvature, constant, linear, cells
        )
        v0, v1 = _values(values + p * values_pixel, values_channel, second, mask, ones)
        new = tl.where(mask, new, -1)
        same = new == cell
        _flush(moments, unit, cell, (cell >= 0) & (new != cell), e0, r0, g0, b0, e1, r1, g1, b1, fixed)
        e0, e1 = tl.where(same, e0, 0) + e * v0, tl.where(same, e1, 0) + e * v1
        r0, r1 = tl.where(same, r0, 0) + fr * v0, tl.where(same, r1, 0) + fr * v1
        g0, g1 = tl.where(same, g0, 0) + fg * v0, tl.where(same, g1, 0) + fg * v1
        b0, b1 = tl.where(same, b0, 0) + fb * v0, tl.where(same, b1, 0) + fb * v1
        cell = new
    _flush(moments, unit, cell, cell >= 0, e0, r0, g0, b0, e1, r1, g1, b1, fixed)


@triton.jit
def _read(moments, e, fr, fg, fb, mask):
    """Σ_i φ_i u_i of one channel whose moments are at ``moments`` (N, 4)."""
    m, r, g, b = _unpack(tl.load(moments, mask[:, None], 0.0))
    return e * m + fr * r + fg * g + fb * b


@triton.jit(do_not_specialize=["first_group", "groups", "second"])
def slice_(
    rgb, group, moments, out,
    pixels, rgb_frame, rgb_channel, rgb_pixel, out_frame, out_channel, second,
    first_group, groups, per_level, shift_g, shift_b, curvature, constant, linear,
    cells: tl.constexpr, channels: tl.constexpr, block: tl.constexpr, run: tl.constexpr,
):  # fmt: skip
    """Write Σ_i φ_i u_i of one or two channels. Programs: (pixels / (block·run), frames)."""
    frame = tl.program_id(1)
    g = tl.load(group + frame) - first_group
    if (g < 0) | (g >= groups):
        return
    row = 4 * channels
    moments += g.to(tl.int64) * (cells * cells * cells * row)
    rgb += frame.to(tl.int64) * rgb_frame
    out += frame.to(tl.int64) * out_frame
    for i in tl.static_range(run):
        p = (tl.program_id(0) * run + i) * block + tl.arange(0, block)
        mask = p < pixels
        cell, e, fr, fg, fb = _encode(
            rgb + p * rgb_pixel, rgb_channel, mask, per_level, shift_g, shift_b, curvature, constant, linear, cells
        )
        at = moments + (cell.to(tl.int64) * row)[:, None] + tl.arange(0, 4)[None, :]
        tl.store(out + p, _read(at, e, fr, fg, fb, mask), mask)
        if channels == 2:
            tl.store(out + out_channel + p, _read(at + 4, e, fr, fg, fb, mask), mask & second)


@triton.jit
def _tf32(x):
    """Round to the 10 bits that the tensor cores read; they would truncate, and those errors would accumulate."""
    rounded = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return tl.where(x != x, x, rounded)  # noqa: PLR0124 - adding to the bits of a GPU's NaN, 0x7FFFFFFF, would make it -0


@triton.jit
def _split(i, stride, part: tl.constexpr):
    """Offset of element i in runs of ``part`` elements that are ``stride`` apart; one run if part is 0."""
    if part:
        return i // part * stride + i % part
    else:
        return i


@triton.jit(do_not_specialize=["rows"])
def multiply_cells(
    x, matrix, out, rows, copy_stride,
    terms: tl.constexpr, columns: tl.constexpr, inner: tl.constexpr, copies: tl.constexpr, precision: tl.constexpr,
    x_outer: tl.constexpr, x_inner: tl.constexpr, x_stride: tl.constexpr, x_part: tl.constexpr,
    out_outer: tl.constexpr, out_inner: tl.constexpr, out_stride: tl.constexpr, out_part: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    """out = Σ_copies x @ matrixᵀ, between moments and sums over b. Programs: (rows / block_m, columns / block_n).

    x (rows, terms), matrix (columns, terms), out (rows, columns). A row is (r, g) and, of ``inner``, a channel.
    """
    i = tl.program_id(0) * block_m + tl.arange(0, block_m)
    n = tl.program_id(1) * block_n + tl.arange(0, block_n)
    outer = (i // inner).to(tl.int64)
    x += outer[:, None] * x_outer + (i % inner * x_inner)[:, None]
    total = tl.zeros((block_m, block_n), tl.float32)
    for start in range(0, terms, block_k):
        k = start + tl.arange(0, block_k)
        on = (i < rows)[:, None] & (k < terms)[None, :]
        at = x + _split(k, x_stride, x_part)[None, :]
        a = tl.load(at, on, 0.0)
        for copy in tl.static_range(1, copies):
            a += tl.load(at + copy * copy_stride, on, 0.0)
        if precision == "tf32":
            a = _tf32(a)
        b = tl.load(matrix + n[None, :] * terms + k[:, None], (k < terms)[:, None] & (n < columns)[None, :], 0.0)
        total = tl.dot(a, b, total, input_precision=precision)
    at = out + outer[:, None] * out_outer + (i % inner * out_inner)[:, None] + _split(n, out_stride, out_part)[None, :]
    tl.store(at, total, (i < rows)[:, None] & (n < columns)[None, :])


@triton.jit
def multiply(
    matrix, x, out, totals, counts, rows, terms, square,
    columns: tl.constexpr, x_run: tl.constexpr, x_parts: tl.constexpr, energy: tl.constexpr, sparse: tl.constexpr,
    precision: tl.constexpr,
    block_m: tl.constexpr, block_n: tl.constexpr, block_k: tl.constexpr,
):  # fmt: skip
    """out[z] = matrix @ x[z]. Programs: (rows / block_m, columns / block_n, batches).

    matrix (rows, terms), x (batches, terms, columns), out (batches, rows, columns). Where x_parts > 1, x is
    (batches, terms / x_parts, columns / x_run, x_parts, x_run) in memory. With ``energy``, columns are (…, 2, x_run)
    for two channels: adds square · Σ x·out of each to totals[z], and keeps the second alone. Where ``sparse`` is
    "terms" or "rows", three of them belong to one of counts (batches, terms or rows / 3), and where that is 0, are 0
    and not read, or not needed and not written.
    """
    m = tl.program_id(0) * block_m + tl.arange(0, block_m)
    n = tl.program_id(1) * block_n + tl.arange(0, block_n)
    z = tl.program_id(2).to(tl.int64)
    needed = m < rows
    if sparse == "rows":
        needed = tl.load(counts + z * (rows // 3) + m // 3, needed, 0) > 0
    if tl.max(needed.to(tl.int32), 0) == 0:
        return
    x += z * terms * columns
    column = n // x_run * (x_run * x_parts) + n % x_run if x_parts > 1 else n
    total = tl.zeros((block_m, block_n), tl.float32)
    for start in range(0, terms, block_k):
        k = start + tl.arange(0, block_k)
        a = tl.load(matrix + m[:, None] * terms + k[None, :], (m < rows)[:, None] & (k < terms)[None, :], 0.0)
        row = k // x_parts * (x_parts * columns) + k % x_parts * x_run if x_parts > 1 else k * columns
        used = k < terms
        if sparse == "terms":
            used = tl.load(counts + z * (terms // 3) + k // 3, used, 0) > 0
        b = tl.load(x + row[:, None] + column[None, :], used[:, None] & (n < columns)[None, :], 0.0)
        if precision == "tf32":
            b = _tf32(b)
        total = tl.dot(a, b, total, input_precision="tf32x3" if precision == "tf32x3" else "tf32")
    on = needed[:, None] & (n < columns)[None, :]
    if energy:
        both = square * total * tl.load(x + m[:, None] * columns + n[None, :], on, 0.0)
        second = n // x_run % 2 == 1
        each = tl.sum(both, 0)
        tl.atomic_add(totals + 2 * z, tl.sum(tl.where(second, 0.0, each)).to(tl.float64), sem="relaxed")
        tl.atomic_add(totals + 2 * z + 1, tl.sum(tl.where(second, each, 0.0)).to(tl.float64), sem="relaxed")
        kept = n // (2 * x_run) * x_run + n % x_run
        at = out + z * rows * (columns // 2) + m[:, None] * (columns // 2) + kept[None, :]
        tl.store(at, total, on & second[None, :])
    else:
        tl.store(out + z * rows * columns + m[:, None] * columns + n[None, :], total, on)

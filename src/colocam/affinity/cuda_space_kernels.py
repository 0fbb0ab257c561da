"""The product with colour and space on rows of colour cells, as Triton kernels.

Each spatial function needs its own moments, too many to store for every cell. So the pixels of a group are sorted by
their row (r, g), and the pixels of a row are summed over b on the tensor cores: the cells themselves are never stored,
and rows without a pixel take no time. Sums are (groups, cells, cells, 3, rank, R, channels), where 3 is
constant, linear along r, linear along g, as in ``ColorBasis.matrices``.
"""

# A kernel is written in Triton's subset of Python, which has no type annotations.
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: ignore-errors

import triton
import triton.language as tl

from colocam.affinity.cuda_color_kernels import _encode, _tf32, _values


@triton.jit
def _row(rgb, group, frame, p, mask, rgb_frame, rgb_channel, rgb_pixel, cells: tl.constexpr):
    """Row of the pixels p of a frame, among those of all groups."""
    at = rgb + frame.to(tl.int64) * rgb_frame + p * rgb_pixel
    cell, _, _, _, _ = _encode(at, rgb_channel, mask, 0.0, 1.0, 1.0, cells)
    return tl.load(group + frame).to(tl.int32) * (cells * cells) + cell // cells


@triton.jit
def count(
    rgb, group, counts, place, pixels, rgb_frame, rgb_channel, rgb_pixel, cells: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    """Pixels of each row, and each pixel's index in its row, place (F, P). Programs: (pixels / block, frames)."""
    frame = tl.program_id(1)
    p = tl.program_id(0) * block + tl.arange(0, block)
    mask = p < pixels
    row = _row(rgb, group, frame, p, mask, rgb_frame, rgb_channel, rgb_pixel, cells)
    tl.store(place + frame * pixels + p, tl.atomic_add(counts + row, 1, mask, sem="relaxed"), mask)


@triton.jit
def arrange(
    rgb, group, ends, place, order, pixels, rgb_frame, rgb_channel, rgb_pixel, cells: tl.constexpr, block: tl.constexpr
):  # fmt: skip
    """Write the pixels frame·P + p in the order of their rows, which end at ``ends``. Programs as for ``count``."""
    frame = tl.program_id(1)
    p = tl.program_id(0) * block + tl.arange(0, block)
    mask = p < pixels
    row = _row(rgb, group, frame, p, mask, rgb_frame, rgb_channel, rgb_pixel, cells)
    at = frame * pixels + p
    tl.store(order + tl.load(ends + row, mask, 1) - 1 - tl.load(place + at, mask, 0), at, mask)


@triton.jit
def _range(ends, row):
    """Begin and end of a row in the order of pixels."""
    return tl.load(ends + row - 1, row > 0, 0), tl.load(ends + row)


@triton.jit
def _round(x, precision: tl.constexpr):
    return _tf32(x) if precision == "tf32" else x


@triton.jit(do_not_specialize=["first", "second"])
def analyse(
    rgb, values, psi, order, ends, factor, sums,
    first, pixels, rgb_frame, rgb_channel, rgb_pixel, values_frame, values_channel, values_pixel, second,
    curvature, constant, linear,
    cells: tl.constexpr, rank: tl.constexpr, ranks: tl.constexpr, ones: tl.constexpr, precision: tl.constexpr,
    block_p: tl.constexpr, block_j: tl.constexpr, block_i: tl.constexpr,
):  # fmt: skip
    """Sums over b of φ ⊗ (ψ_k · v), two channels. Programs: (rows, rank / block_j).

    factor (2, cells, rank), psi (P, R), sums from row ``first`` on. Rows without a pixel are left as they are.
    """
    begin, end = _range(ends, first + tl.program_id(0))
    if begin == end:
        return
    j = tl.program_id(1) * block_j + tl.arange(0, block_j)
    i = tl.arange(0, block_i)
    sum_e = tl.zeros((block_j, block_i), tl.float32)
    sum_r = tl.zeros((block_j, block_i), tl.float32)
    sum_g = tl.zeros((block_j, block_i), tl.float32)
    for start in range(begin, end, block_p):
        at = start + tl.arange(0, block_p)
        mask = at < end
        at = tl.load(order + at, mask, 0)
        frame, p = (at // pixels).to(tl.int64), at % pixels
        cell, e, fr, fg, fb = _encode(
            rgb + frame * rgb_frame + p * rgb_pixel, rgb_channel, mask, curvature, constant, linear, cells
        )
        v0, v1 = _values(values + frame * values_frame + p * values_pixel, values_channel, second, mask, ones)
        v = tl.where((i % 2 == 0)[None, :], v0[:, None], v1[:, None])
        weight = tl.load(psi + p[:, None] * ranks + (i // 2)[None, :], mask[:, None] & (i < 2 * ranks)[None, :], 0.0)
        v = _round(v * weight, precision)
        along_b = factor + (cell % cells)[None, :] * rank + j[:, None]
        on = (j < rank)[:, None] & mask[None, :]
        flat = tl.load(along_b, on, 0.0)
        slope = tl.load(along_b + cells * rank, on, 0.0)
        sum_e = tl.dot(_round(flat * e[None, :] + slope * fb[None, :], precision), v, sum_e, input_precision=precision)
        sum_r = tl.dot(_round(flat * fr[None, :], precision), v, sum_r, input_precision=precision)
        sum_g = tl.dot(_round(flat * fg[None, :], precision), v, sum_g, input_precision=precision)
    inner: tl.constexpr = 2 * ranks
    on = (j < rank)[:, None] & (i < inner)[None, :]
    sums += tl.program_id(0).to(tl.int64) * (3 * rank * inner) + j[:, None] * inner + i[None, :]
    tl.store(sums, sum_e, on)
    tl.store(sums + rank * inner, sum_r, on)
    tl.store(sums + 2 * rank * inner, sum_g, on)


@triton.jit(do_not_specialize=["first", "second"])
def synthesise(
    rgb, psi, order, ends, factor, sums, out,
    first, pixels, rgb_frame, rgb_channel, rgb_pixel, out_frame, out_channel, second,
    curvature, constant, linear,
    cells: tl.constexpr, rank: tl.constexpr, ranks: tl.constexpr, channels: tl.constexpr, precision: tl.constexpr,
    block_p: tl.constexpr, block_j: tl.constexpr, block_i: tl.constexpr,
):  # fmt: skip
    """Transpose of ``analyse``: write Σ_k ψ_k Σ φ · sums of one or two channels. Programs: (rows,)."""
    begin, end = _range(ends, first + tl.program_id(0))
    if begin == end:
        return
    k = tl.arange(0, block_i)
    inner: tl.constexpr = channels * ranks
    sums += tl.program_id(0).to(tl.int64) * (3 * rank * inner)
    for start in range(begin, end, block_p):
        at = start + tl.arange(0, block_p)
        mask = at < end
        at = tl.load(order + at, mask, 0)
        frame, p = (at // pixels).to(tl.int64), at % pixels
        cell, e, fr, fg, fb = _encode(
            rgb + frame * rgb_frame + p * rgb_pixel, rgb_channel, mask, curvature, constant, linear, cells
        )
        weight = tl.load(psi + p[:, None] * ranks + k[None, :], mask[:, None] & (k < ranks)[None, :], 0.0)
        for channel in tl.static_range(channels):
            total = tl.zeros((block_p, block_i), tl.float32)
            for first_j in range(0, rank, block_j):
                j = first_j + tl.arange(0, block_j)
                along_b = factor + (cell % cells)[:, None] * rank + j[None, :]
                on = mask[:, None] & (j < rank)[None, :]
                flat = tl.load(along_b, on, 0.0)
                slope = tl.load(along_b + cells * rank, on, 0.0)
                u = sums + j[:, None] * inner + k[None, :] * channels + channel
                on = (j < rank)[:, None] & (k < ranks)[None, :]
                u_e = _round(tl.load(u, on, 0.0), precision)
                u_r = _round(tl.load(u + rank * inner, on, 0.0), precision)
                u_g = _round(tl.load(u + 2 * rank * inner, on, 0.0), precision)
                phi = _round(flat * e[:, None] + slope * fb[:, None], precision)
                total = tl.dot(phi, u_e, total, input_precision=precision)
                total = tl.dot(_round(flat * fr[:, None], precision), u_r, total, input_precision=precision)
                total = tl.dot(_round(flat * fg[:, None], precision), u_g, total, input_precision=precision)
            result = tl.sum(total * weight, 1)
            target = out + frame * out_frame + channel * out_channel + p
            tl.store(target, result, mask & (second | (channel == 0)))

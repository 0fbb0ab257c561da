"""The product with color and space on rows of color cells, as Triton kernels.

Each spatial function needs its own moments, too many to store for every cell. So the pixels of a group are sorted by
their row (r, g), and the pixels of a row are summed over b on the tensor cores: the cells themselves are never stored,
and rows without a pixel take no time. Sums are (groups, cells, cells, 3, rank, channels, R), where 3 is
constant, linear along r, linear along g, as in ``ColorBasis.matrices``.

Tests: tests/gpu/test_gpu.py, tests/test_triton_interpreter.py.
"""

# A kernel is written in Triton's subset of Python, which has no type annotations.
# ruff: noqa: ANN001, ANN201, ANN202, RET505
# mypy: ignore-errors

import triton
import triton.language as tl

from colocam.losses.affinity.cuda_color_kernels import _axis, _encode, _pack, _tf32, _unpack, _values


@triton.jit
def _row(
    rgb, group, frame, p, mask, rgb_frame, rgb_channel, rgb_pixel, per_level, shift_g, shift_b, cells: tl.constexpr
):
    """Row of the pixels p of a frame, among those of all groups."""
    at = rgb + frame.to(tl.int64) * rgb_frame + p * rgb_pixel
    cell, _, _, _, _ = _encode(at, rgb_channel, mask, per_level, shift_g, shift_b, 0.0, 1.0, 1.0, cells)
    return tl.load(group + frame).to(tl.int32) * (cells * cells) + cell // cells


@triton.jit
def count(
    rgb, group, counts, place, pixels, rgb_frame, rgb_channel, rgb_pixel, per_level, shift_g, shift_b,
    cells: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Pixels of each row, and each pixel's index in its row, place (F, P). Programs: (pixels / block, frames)."""
    frame = tl.program_id(1)
    p = tl.program_id(0) * block + tl.arange(0, block)
    mask = p < pixels
    row = _row(rgb, group, frame, p, mask, rgb_frame, rgb_channel, rgb_pixel, per_level, shift_g, shift_b, cells)
    tl.store(place + frame * pixels + p, tl.atomic_add(counts + row, 1, mask, sem="relaxed"), mask)


@triton.jit
def arrange(
    rgb, group, values, ends, place, order, records,
    pixels, rgb_frame, rgb_channel, rgb_pixel, per_level, shift_g, shift_b, values_frame, values_pixel,
    cells: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Write pixels in the order of their rows, which end at ``ends``. Programs as for ``count``.

    order: frame·P + p. records (N, 4): position along b in cells, offsets along r and g, the first channel of values.
    Reading them in this order is quicker than gathering them from the frames, which happens more than once.
    """
    frame = tl.program_id(1)
    p = tl.program_id(0) * block + tl.arange(0, block)
    mask = p < pixels
    at = rgb + frame.to(tl.int64) * rgb_frame + p * rgb_pixel
    r, fr = _axis(tl.load(at, mask, 0), per_level, 0.0, cells)
    g, fg = _axis(tl.load(at + rgb_channel, mask, 0), per_level, shift_g, cells)
    b, fb = _axis(tl.load(at + 2 * rgb_channel, mask, 0), per_level, shift_b, cells)
    row = tl.load(group + frame).to(tl.int32) * (cells * cells) + r * cells + g
    target = tl.load(ends + row, mask, 1) - 1 - tl.load(place + frame * pixels + p, mask, 0)
    value = tl.load(values + frame.to(tl.int64) * values_frame + p * values_pixel, mask, 0.0).to(tl.float32)
    tl.store(order + target, frame * pixels + p, mask)
    record = _pack(b.to(tl.float32) + 0.5 + fb, fr, fg, value)
    tl.store(records + target.to(tl.int64)[:, None] * 4 + tl.arange(0, 4)[None, :], record, mask[:, None])


@triton.jit(do_not_specialize=["rows"])
def list_rows(counts, listed, total, rows, least, most, block: tl.constexpr):
    """List the rows with ``least`` … ``most`` pixels in any order; total[0] += their number. Programs: rows / block."""
    row = tl.program_id(0) * block + tl.arange(0, block)
    count = tl.load(counts + row, row < rows, 0)
    used = ((count >= least) & (count <= most)).to(tl.int32)
    begin = tl.atomic_add(total, tl.sum(used), sem="relaxed")
    tl.store(listed + begin + tl.cumsum(used) - 1, row, used > 0)


@triton.jit
def _range(ends, row):
    """Begin and end of a row in the order of pixels."""
    return tl.load(ends + row - 1, row > 0, 0), tl.load(ends + row)


@triton.jit
def _operand(x, precision: tl.constexpr):
    """Round to what the tensor cores multiply."""
    if precision == "half":
        return x.to(tl.float16)
    elif precision == "tf32":
        return _tf32(x)
    else:
        return x


@triton.jit
def _dot(a, b, total, precision: tl.constexpr):
    return tl.dot(a, b, total, input_precision="tf32x3" if precision == "tf32x3" else "tf32")


@triton.jit
def _ahead(records, order, start, end, block_p: tl.constexpr):
    """Records and places of ``block_p`` pixels from ``start`` on: read one block ahead, so that nothing waits."""
    at = start + tl.arange(0, block_p)
    mask = at < end
    record = tl.load(records + at.to(tl.int64)[:, None] * 4 + tl.arange(0, 4)[None, :], mask[:, None], 0.0)
    return record, tl.load(order + at, mask, 0)


@triton.jit
def _decoded(record, curvature, constant, linear, cells: tl.constexpr):
    """Cell along b, φ and the value of pixels with these records."""
    position, fr, fg, value = _unpack(record)
    cell = tl.minimum(tl.maximum(position, 0.0), cells - 0.5).to(tl.int32)
    fb = position - cell.to(tl.float32) - 0.5
    e = (1 - curvature * fr * fr) * (1 - curvature * fg * fg) * (1 - curvature * fb * fb)
    slope = linear * e
    return cell, constant * e, slope * fr, slope * fg, slope * fb, value


@triton.jit(do_not_specialize=["first", "second"])
def analyze(
    records, values, psi, order, ends, listed, total, factor, sums,
    first, pixels, values_frame, values_channel, values_pixel, second, curvature, constant, linear, unit,
    cells: tl.constexpr, rank: tl.constexpr, ranks: tl.constexpr, ones: tl.constexpr, precision: tl.constexpr,
    block_p: tl.constexpr, block_j: tl.constexpr, block_i: tl.constexpr,
):  # fmt: skip
    """Sums over b of φ ⊗ (ψ_k · v), two channels, times ``unit``. Programs: (any number, rank / block_j).

    factor (2, cells, rank), psi (P, R), sums from row ``first`` on. Programs share the ``listed`` rows; others are left
    as they are.
    """
    j = tl.program_id(1) * block_j + tl.arange(0, block_j)
    i = tl.arange(0, block_i)
    inner: tl.constexpr = 2 * ranks
    for item in range(tl.program_id(0), tl.load(total), tl.num_programs(0)):
        row = tl.load(listed + item)
        begin, end = _range(ends, first + row)
        sum_e = tl.zeros((block_j, block_i), tl.float32)
        sum_r = tl.zeros((block_j, block_i), tl.float32)
        sum_g = tl.zeros((block_j, block_i), tl.float32)
        record, here = _ahead(records, order, begin, end, block_p)
        for start in range(begin, end, block_p):
            next_record, next_here = _ahead(records, order, start + block_p, end, block_p)
            mask = start + tl.arange(0, block_p) < end
            cell, e, fr, fg, fb, s = _decoded(record, curvature, constant, linear, cells)
            p = here % pixels
            if ones:
                v0, v1 = tl.where(mask, 1.0, 0.0), tl.where(mask, s - 0.5, 0.0)
            else:
                given = values + (here // pixels).to(tl.int64) * values_frame + p * values_pixel
                v0, v1 = _values(given, values_channel, second, mask, ones)
            weight = tl.load(psi + p[:, None] * ranks + (i % ranks)[None, :], mask[:, None] & (i < inner)[None, :], 0.0)
            v = tl.where((i < ranks)[None, :], v0[:, None], v1[:, None]) * weight.to(tl.float32)
            v = _operand(v, precision)
            along_b = factor + cell[None, :] * rank + j[:, None]
            on = (j < rank)[:, None] & mask[None, :]
            flat = tl.load(along_b, on, 0.0).to(tl.float32)
            slope = tl.load(along_b + cells * rank, on, 0.0).to(tl.float32)
            sum_e = _dot(_operand(flat * e[None, :] + slope * fb[None, :], precision), v, sum_e, precision)
            sum_r = _dot(_operand(flat * fr[None, :], precision), v, sum_r, precision)
            sum_g = _dot(_operand(flat * fg[None, :], precision), v, sum_g, precision)
            record, here = next_record, next_here
        on = (j < rank)[:, None] & (i < inner)[None, :]
        own = sums + row.to(tl.int64) * (3 * rank * inner) + j[:, None] * inner + i[None, :]
        tl.store(own, sum_e * unit, on)
        tl.store(own + rank * inner, sum_r * unit, on)
        tl.store(own + 2 * rank * inner, sum_g * unit, on)


@triton.jit
def _sums(sums, j, k, rank: tl.constexpr, ranks: tl.constexpr, channels: tl.constexpr, channel: tl.constexpr):
    """Sums over b of a row for the eigenvectors j and spatial functions k: constant, linear along r, linear along g."""
    inner: tl.constexpr = channels * ranks
    u = sums + j[:, None] * inner + channel * ranks + k[None, :]
    on = (j < rank)[:, None] & (k < ranks)[None, :]
    return tl.load(u, on, 0.0), tl.load(u + rank * inner, on, 0.0), tl.load(u + 2 * rank * inner, on, 0.0)


@triton.jit(do_not_specialize=["first", "second"])
def synthesize(
    records, psi, order, ends, listed, total, factor, sums, out,
    first, pixels, out_frame, out_channel, second, curvature, constant, linear, unit,
    cells: tl.constexpr, rank: tl.constexpr, ranks: tl.constexpr, channels: tl.constexpr, precision: tl.constexpr,
    block_p: tl.constexpr, block_j: tl.constexpr, block_i: tl.constexpr,
):  # fmt: skip
    """Transpose of ``analyze``: write Σ_k ψ_k Σ φ · sums of one or two channels / ``unit``. Programs: any number."""
    k = tl.arange(0, block_i)
    for item in range(tl.program_id(0), tl.load(total), tl.num_programs(0)):
        row = tl.load(listed + item)
        begin, end = _range(ends, first + row)
        own = sums + row.to(tl.int64) * (3 * rank * channels * ranks)
        for channel in tl.static_range(channels):
            record, here = _ahead(records, order, begin, end, block_p)
            for start in range(begin, end, block_p):
                next_record, next_here = _ahead(records, order, start + block_p, end, block_p)
                mask = start + tl.arange(0, block_p) < end
                cell, e, fr, fg, fb, _ = _decoded(record, curvature, constant, linear, cells)
                frame, p = (here // pixels).to(tl.int64), here % pixels
                weight = tl.load(psi + p[:, None] * ranks + k[None, :], mask[:, None] & (k < ranks)[None, :], 0.0)
                summed = tl.zeros((block_p, block_i), tl.float32)
                for first_j in tl.static_range(0, rank, block_j):
                    j = first_j + tl.arange(0, block_j)
                    u_e, u_r, u_g = _sums(own, j, k, rank, ranks, channels, channel)
                    along_b = factor + cell[:, None] * rank + j[None, :]
                    on = mask[:, None] & (j < rank)[None, :]
                    flat = tl.load(along_b, on, 0.0).to(tl.float32)
                    slope = tl.load(along_b + cells * rank, on, 0.0).to(tl.float32)
                    both = _operand(flat * e[:, None] + slope * fb[:, None], precision)
                    summed = _dot(both, _operand(u_e, precision), summed, precision)
                    summed = _dot(_operand(flat * fr[:, None], precision), _operand(u_r, precision), summed, precision)
                    summed = _dot(_operand(flat * fg[:, None], precision), _operand(u_g, precision), summed, precision)
                result = tl.sum(summed * weight.to(tl.float32), 1) / unit
                target = out + frame * out_frame + channel * out_channel + p
                tl.store(target, result, mask & (second | (channel == 0)))
                record, here = next_record, next_here

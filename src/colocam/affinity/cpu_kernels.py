"""The product on colour cells compiled for the CPU: only cells with a pixel are stored.

Layouts: moments (cells in use, C, 4), spectra (rank_r, rank_g, C, rank_b). Every function releases the GIL and
computes a part of the pixels, or of the planes of cells with one r, so that threads can share the work. ``constants``
are (cells per level, q, scale of e, scale of f·e, 1, ½, cells - 1, shifts of r, g and b) in the type of the values:
with Python's floats the arithmetic would be in float64.
"""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.utils.jit import compiled

Array = npt.NDArray[Any]

# Not "fast": NaN must stay NaN, and must not reach an array index.
_MATH = {"contract", "reassoc", "nsz"}
_jit = partial(compiled, error_model="numpy", fastmath=_MATH)
# Inlined into every caller: otherwise the process that compiles uses another machine code than those that load the
# cache, and the two round differently.
_part = partial(compiled, error_model="numpy", fastmath=_MATH, forceinline=True)


@_part
def _axis(level: float, number: int, constants: Array) -> tuple[float, float]:
    """Cell of a level on the axis of this number, and the offset from the cell's centre, -½ … ½ cells."""
    half, last = constants[5], constants[6]
    position = (level + half) * constants[0] + constants[7 + number]
    cell = np.floor(position)
    # NaN gives cell 0 and the offset NaN.
    cell = min(cell, last) if cell >= 0 else half - half
    return cell, position - cell - half


@_jit
def locate(rgb: Array, constants: Array, first: int, last: int, index: Array, used: Array) -> None:
    """Find and mark the cells of the pixels first ≤ p < last: rgb (F, 3, P) -> index (F, P) int32, used (cells³,)."""
    cells = int(constants[6]) + 1
    for f in range(rgb.shape[0]):
        for p in range(first, last):
            r, _ = _axis(rgb[f, 0, p], 0, constants)
            g, _ = _axis(rgb[f, 1, p], 1, constants)
            b, _ = _axis(rgb[f, 2, p], 2, constants)
            cell = (int(r) * cells + int(g)) * cells + int(b)
            index[f, p] = cell
            used[cell] = True


@_jit
def number(used: Array, rows: Array, slot: Array, blue: Array) -> int:
    """Number the cells in use in order, and return how many there are.

    Args:
        used: (cells³,) bool.
        rows: (cells² + 1,) int32, set to the first number of each (r, g) row.
        slot: (cells³,) int32, set to the number of each cell in use.
        blue: (≥ cells in use,) int32, set to the b of each number.
    """
    cells = len(used) // (len(rows) - 1)
    count = 0
    for row in range(len(rows) - 1):
        rows[row] = count
        for b in range(cells):
            if used[row * cells + b]:
                slot[row * cells + b] = count
                blue[count] = b
                count += 1
    rows[-1] = count
    return count


@_part
def _local(rgb: Array, f: int, p: int, constants: Array) -> tuple[float, float, float, float]:
    """φ of a pixel: e, f_r·e, f_g·e and f_b·e with their scales."""
    q, one = constants[1], constants[4]
    _, r = _axis(rgb[f, 0, p], 0, constants)
    _, g = _axis(rgb[f, 1, p], 1, constants)
    _, b = _axis(rgb[f, 2, p], 2, constants)
    e = (one - q * r * r) * (one - q * g * g) * (one - q * b * b)
    slope = constants[3] * e
    return constants[2] * e, slope * r, slope * g, slope * b


@_jit
def splat(
    rgb: Array,
    values: Array,
    psi: Array,
    constants: Array,
    first: int,
    last: int,
    index: Array,
    slot: Array,
    moments: Array,
) -> None:
    """Add φ ⊗ (ψ ⊗ v) of the pixels first ≤ p < last of every frame to their cells.

    Args:
        rgb: (F, 3, P).
        values: (F, C, P).
        psi: (R, P).
        constants: of the basis.
        first: pixel.
        last: pixel.
        index: (F, P) cell of each pixel; its number when done.
        slot: number of each cell in use.
        moments: (cells in use, R·C, 4), added to; the channel is k·C + c.
    """
    ranks, channels = len(psi), values.shape[1]
    for f in range(rgb.shape[0]):
        for p in range(first, last):
            e, r, g, b = _local(rgb, f, p, constants)
            cell = slot[index[f, p]]
            index[f, p] = cell
            for c in range(channels):
                for k in range(ranks):
                    v = psi[k, p] * values[f, c, p]
                    m = moments[cell, k * channels + c]
                    m[0] += e * v
                    m[1] += r * v
                    m[2] += g * v
                    m[3] += b * v


@_jit
def slice_(
    rgb: Array, out: Array, psi: Array, constants: Array, first: int, last: int, index: Array, moments: Array
) -> None:
    """Transpose of ``splat``: moments (cells in use, R·C, 4) -> out (F, C, P)."""
    ranks, channels = len(psi), out.shape[1]
    for f in range(rgb.shape[0]):
        for p in range(first, last):
            e, r, g, b = _local(rgb, f, p, constants)
            for c in range(channels):
                total = e - e
                for k in range(ranks):
                    m = moments[index[f, p], k * channels + c]
                    total += psi[k, p] * (e * m[0] + r * m[1] + g * m[2] + b * m[3])
                out[f, c, p] = total


@_part
def combine(coefficients: Array, rows: Array, out: Array) -> None:
    """Add coefficientsᵀ @ rows to ``out``: (K, A), (K, n) -> (A, n); 4 × 4 terms at a time, for vector instructions."""
    terms, count = coefficients.shape
    whole, wide = terms - terms % 4, count - count % 4
    for a in range(0, wide, 4):
        o, p, q, r = out[a], out[a + 1], out[a + 2], out[a + 3]
        for i in range(0, whole, 4):
            s0, s1, s2, s3 = coefficients[i : i + 4, a]
            t0, t1, t2, t3 = coefficients[i : i + 4, a + 1]
            u0, u1, u2, u3 = coefficients[i : i + 4, a + 2]
            v0, v1, v2, v3 = coefficients[i : i + 4, a + 3]
            x0, x1, x2, x3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
            for j in range(rows.shape[1]):
                o[j] += s0 * x0[j] + s1 * x1[j] + s2 * x2[j] + s3 * x3[j]
                p[j] += t0 * x0[j] + t1 * x1[j] + t2 * x2[j] + t3 * x3[j]
                q[j] += u0 * x0[j] + u1 * x1[j] + u2 * x2[j] + u3 * x3[j]
                r[j] += v0 * x0[j] + v1 * x1[j] + v2 * x2[j] + v3 * x3[j]
        for i in range(whole, terms):
            s0, s1, s2, s3 = coefficients[i, a : a + 4]
            x0 = rows[i]
            for j in range(rows.shape[1]):
                o[j] += s0 * x0[j]
                p[j] += s1 * x0[j]
                q[j] += s2 * x0[j]
                r[j] += s3 * x0[j]
    for a in range(wide, count):
        for i in range(terms):
            s0, o, x0 = coefficients[i, a], out[a], rows[i]
            for j in range(rows.shape[1]):
                o[j] += s0 * x0[j]


@_jit
def analyse(moments: Array, rows: Array, blue: Array, factor: Array, first: int, last: int, spectrum: Array) -> None:
    """Spectrum of the planes first ≤ r < last: added to ``spectrum`` (rank, rank·C·rank).

    A linear function along one axis is multiplied by constant ones along the other two. So of each row (r, g) three
    sums over b are kept: of what is constant along r and g, linear along g, linear along r; of each plane two.
    """
    flat, slope = factor[0], factor[1]
    cells, rank = flat.shape
    width = moments.shape[1] * rank
    lines = np.empty((3, cells, width), moments.dtype)
    planes = np.zeros((2, last - first, rank, width), moments.dtype)
    coefficients = np.empty((2, cells, rank), moments.dtype)
    for r in range(first, last):
        count = 0
        for g in range(cells):
            begin, end = rows[r * cells + g], rows[r * cells + g + 1]
            if begin == end:
                continue
            m, m_g, m_r = lines[0, count], lines[1, count], lines[2, count]
            m[:] = 0
            m_g[:] = 0
            m_r[:] = 0
            for i in range(begin, end):
                u, w = flat[blue[i]], slope[blue[i]]
                for c in range(moments.shape[1]):
                    v, v_r, v_g, v_b = moments[i, c, 0], moments[i, c, 1], moments[i, c, 2], moments[i, c, 3]
                    for a in range(rank):
                        m[c * rank + a] += v * u[a] + v_b * w[a]
                        m_g[c * rank + a] += v_g * u[a]
                        m_r[c * rank + a] += v_r * u[a]
            # Numba compiles an assignment of arrays for seconds: it also compiles the text of its error.
            for a in range(rank):
                coefficients[0, count, a] = flat[g, a]
                coefficients[1, count, a] = slope[g, a]
            count += 1
        combine(coefficients[0, :count], lines[0, :count], planes[0, r - first])
        combine(coefficients[1, :count], lines[1, :count], planes[0, r - first])
        combine(coefficients[0, :count], lines[2, :count], planes[1, r - first])
    flattened = planes.reshape(2, last - first, rank * width)
    combine(flat[first:last], flattened[0], spectrum)
    combine(slope[first:last], flattened[1], spectrum)


@_jit
def synthesise(spectrum: Array, rows: Array, blue: Array, factor: Array, first: int, last: int, moments: Array) -> None:
    """Transpose of ``analyse``: set the moments of the cells in the planes first ≤ r < last."""
    flat, slope = factor[0], factor[1]
    cells, rank = flat.shape
    width = moments.shape[1] * rank
    lines = np.empty((3, cells, width), moments.dtype)
    planes = np.zeros((2, last - first, rank, width), moments.dtype)
    coefficients = np.empty((2, rank, cells), moments.dtype)
    flattened = planes.reshape(2, last - first, rank * width)
    combine(np.ascontiguousarray(flat[first:last].T), spectrum, flattened[0])
    combine(np.ascontiguousarray(slope[first:last].T), spectrum, flattened[1])
    for r in range(first, last):
        count = 0
        for g in range(cells):
            if rows[r * cells + g] < rows[r * cells + g + 1]:
                for a in range(rank):
                    coefficients[0, a, count] = flat[g, a]
                    coefficients[1, a, count] = slope[g, a]
                count += 1
        lines[:, :count] = 0
        combine(coefficients[0, :, :count], planes[0, r - first], lines[0, :count])
        combine(coefficients[1, :, :count], planes[0, r - first], lines[1, :count])
        combine(coefficients[0, :, :count], planes[1, r - first], lines[2, :count])
        count = 0
        for g in range(cells):
            begin, end = rows[r * cells + g], rows[r * cells + g + 1]
            if begin == end:
                continue
            m, m_g, m_r = lines[0, count], lines[1, count], lines[2, count]
            count += 1
            for i in range(begin, end):
                u, w = flat[blue[i]], slope[blue[i]]
                for c in range(moments.shape[1]):
                    v = v_r = v_g = v_b = u[0] - u[0]
                    for a in range(rank):
                        v += u[a] * m[c * rank + a]
                        v_r += u[a] * m_r[c * rank + a]
                        v_g += u[a] * m_g[c * rank + a]
                        v_b += w[a] * m[c * rank + a]
                    moments[i, c, 0], moments[i, c, 1], moments[i, c, 2], moments[i, c, 3] = v, v_r, v_g, v_b

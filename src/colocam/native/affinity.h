/* ---- losses/affinity/cpu.py, for one type of numbers: REAL -------------------------------------------------------- */

/* ``constants`` are cells per level, q, scale of e, scale of f e, 1, 1/2, cells - 1, and the shifts of r, g and b.
 * Moments are (cells in use, channels, 4), spectra (rank_r, rank_g, channels, rank_b). */

/* Cell of a level on the axis of this number, and the offset from the center of the cell, -1/2 to 1/2 cells. */

static inline REAL TYPED(axis)(REAL level, int number, const REAL *constants, REAL *offset) {
    REAL position = (level + constants[5]) * constants[0] + constants[7 + number], cell = FLOOR(position);
    cell = cell >= 0 ? (constants[6] < cell ? constants[6] : cell) : 0; /* NaN gives cell 0 and the offset NaN */
    *offset = position - cell - constants[5];
    return cell;
}

/* Find and mark the cells of the pixels first ≤ p < last. */
static void TYPED(locate)(const REAL *rgb, const REAL *constants, Py_ssize_t frames, Py_ssize_t pixels,
                          Py_ssize_t first, Py_ssize_t last, int32_t *index, uint8_t *used) {
    int32_t cells = (int32_t)constants[6] + 1;
    for (Py_ssize_t f = 0; f < frames; f++, rgb += 3 * pixels, index += pixels)
        for (Py_ssize_t p = first; p < last; p++) {
            REAL offset;
            int32_t r = (int32_t)TYPED(axis)(rgb[p], 0, constants, &offset);
            int32_t g = (int32_t)TYPED(axis)(rgb[pixels + p], 1, constants, &offset);
            int32_t b = (int32_t)TYPED(axis)(rgb[2 * pixels + p], 2, constants, &offset);
            index[p] = (r * cells + g) * cells + b;
            used[index[p]] = 1;
        }
}

/* φ of a pixel: e, f_r·e, f_g·e and f_b·e with their scales. */
static inline void TYPED(local)(const REAL *rgb, Py_ssize_t pixels, const REAL *constants, REAL *phi) {
    REAL r, g, b, q = constants[1], one = constants[4];
    TYPED(axis)(rgb[0], 0, constants, &r);
    TYPED(axis)(rgb[pixels], 1, constants, &g);
    TYPED(axis)(rgb[2 * pixels], 2, constants, &b);
    REAL e = (one - q * r * r) * (one - q * g * g) * (one - q * b * b), slope = constants[3] * e;
    phi[0] = constants[2] * e;
    phi[1] = slope * r;
    phi[2] = slope * g;
    phi[3] = slope * b;
}

/* Add φ ⊗ (ψ ⊗ v) of the pixels first ≤ p < last of every frame to their cells; the channel is k·C + c. */
WIDE static void TYPED(splat)(const REAL *rgb, const REAL *values, const REAL *psi, const REAL *constants,
                              Py_ssize_t frames, Py_ssize_t channels, Py_ssize_t ranks, Py_ssize_t pixels,
                              Py_ssize_t first, Py_ssize_t last, const int32_t *index, const int32_t *slot,
                              REAL *moments) {
    for (Py_ssize_t f = 0; f < frames; f++, rgb += 3 * pixels, values += channels * pixels, index += pixels)
        for (Py_ssize_t p = first; p < last; p++) {
            REAL phi[4];
            TYPED(local)(rgb + p, pixels, constants, phi);
            REAL *m = moments + (Py_ssize_t)slot[index[p]] * ranks * channels * 4;
            for (Py_ssize_t k = 0; k < ranks; k++)
                for (Py_ssize_t c = 0; c < channels; c++, m += 4) {
                    REAL v = psi[k * pixels + p] * values[c * pixels + p];
                    for (int i = 0; i < 4; i++) m[i] += phi[i] * v;
                }
        }
}

/* Transpose of splat. */
WIDE static void TYPED(slice)(const REAL *rgb, REAL *out, const REAL *psi, const REAL *constants, Py_ssize_t frames,
                              Py_ssize_t channels, Py_ssize_t ranks, Py_ssize_t pixels, Py_ssize_t first,
                              Py_ssize_t last, const int32_t *index, const int32_t *slot, const REAL *moments) {
    for (Py_ssize_t f = 0; f < frames; f++, rgb += 3 * pixels, out += channels * pixels, index += pixels)
        for (Py_ssize_t p = first; p < last; p++) {
            REAL phi[4];
            TYPED(local)(rgb + p, pixels, constants, phi);
            const REAL *own = moments + (Py_ssize_t)slot[index[p]] * ranks * channels * 4;
            for (Py_ssize_t c = 0; c < channels; c++) {
                REAL total = phi[0] - phi[0]; /* a color that is not a number gives none */
                for (Py_ssize_t k = 0; k < ranks; k++) {
                    const REAL *m = own + (k * channels + c) * 4;
                    total += psi[k * pixels + p] * (phi[0] * m[0] + phi[1] * m[1] + phi[2] * m[2] + phi[3] * m[3]);
                }
                out[c * pixels + p] = total;
            }
        }
}

/* Add coefficientsᵀ @ rows to out: (K, A) with `step` numbers from row to row, (K, n) -> (A, n). */
WIDE static void TYPED(combine)(const REAL *coefficients, Py_ssize_t step, Py_ssize_t terms, Py_ssize_t count,
                                const REAL *rows, Py_ssize_t width, REAL *out) {
    for (Py_ssize_t a = 0; a < count; a++, out += width) {
        Py_ssize_t i = 0;
        for (; i + 4 <= terms; i += 4) {
            const REAL *s = coefficients + i * step + a, *x = rows + i * width;
            REAL s0 = s[0], s1 = s[step], s2 = s[2 * step], s3 = s[3 * step];
            for (Py_ssize_t j = 0; j < width; j++)
                out[j] += s0 * x[j] + s1 * x[width + j] + s2 * x[2 * width + j] + s3 * x[3 * width + j];
        }
        for (; i < terms; i++) {
            REAL s0 = coefficients[i * step + a];
            const REAL *x = rows + i * width;
            for (Py_ssize_t j = 0; j < width; j++) out[j] += s0 * x[j];
        }
    }
}

typedef struct {
    Py_ssize_t cells, rank, width;
    REAL *lines, *planes, *coefficients;
} TYPED(Room);

static int TYPED(room)(TYPED(Room) * room, Py_ssize_t cells, Py_ssize_t rank, Py_ssize_t channels, Py_ssize_t planes) {
    Py_ssize_t width = channels * rank;
    *room = (TYPED(Room)){cells, rank, width, malloc(sizeof(REAL) * 3 * (size_t)(cells * width + 1)),
                          calloc((size_t)(2 * planes * rank * width + 1), sizeof(REAL)),
                          malloc(sizeof(REAL) * 2 * (size_t)(cells * rank + 1))};
    return room->lines && room->planes && room->coefficients;
}

static void TYPED(leave)(TYPED(Room) * room) {
    free(room->lines);
    free(room->planes);
    free(room->coefficients);
}

/* Spectrum of the planes first ≤ r < last, added to ``spectrum``. A linear function along one axis is multiplied by
 * constant ones along the other two. So of each row (r, g) three sums over b are kept: of what is constant along r and g,
 * linear along g, linear along r; of each plane two. */
static int TYPED(analyze)(const REAL *moments, Py_ssize_t channels, const int32_t *rows, const int32_t *blue,
                          const REAL *factor, Py_ssize_t cells, Py_ssize_t rank, Py_ssize_t first, Py_ssize_t last,
                          REAL *spectrum) {
    const REAL *flat = factor, *slope = factor + cells * rank;
    TYPED(Room) room;
    int enough = TYPED(room)(&room, cells, rank, channels, last - first);
    Py_ssize_t width = room.width, plane = rank * width, size = (last - first) * plane;
    REAL *flats = room.coefficients, *slopes = flats + cells * rank;
    REAL *constant = room.lines, *along_g = constant + cells * width, *along_r = along_g + cells * width;
    for (Py_ssize_t r = first; enough && r < last; r++) {
        Py_ssize_t count = 0;
        for (Py_ssize_t g = 0; g < cells; g++) {
            int32_t begin = rows[r * cells + g], end = rows[r * cells + g + 1];
            if (begin == end) continue;
            REAL *m = constant + count * width, *m_g = along_g + count * width, *m_r = along_r + count * width;
            for (Py_ssize_t j = 0; j < width; j++) m[j] = m_g[j] = m_r[j] = 0;
            for (int32_t i = begin; i < end; i++) {
                const REAL *u = flat + blue[i] * rank, *w = slope + blue[i] * rank, *v = moments + i * channels * 4;
                for (Py_ssize_t c = 0; c < channels; c++, v += 4)
                    for (Py_ssize_t a = 0; a < rank; a++) {
                        m[c * rank + a] += v[0] * u[a] + v[3] * w[a];
                        m_g[c * rank + a] += v[2] * u[a];
                        m_r[c * rank + a] += v[1] * u[a];
                    }
            }
            memcpy(flats + count * rank, flat + g * rank, sizeof(REAL) * (size_t)rank);
            memcpy(slopes + count * rank, slope + g * rank, sizeof(REAL) * (size_t)rank);
            count++;
        }
        REAL *here = room.planes + (r - first) * plane;
        TYPED(combine)(flats, rank, count, rank, constant, width, here);
        TYPED(combine)(slopes, rank, count, rank, along_g, width, here);
        TYPED(combine)(flats, rank, count, rank, along_r, width, here + size);
    }
    if (enough) {
        TYPED(combine)(flat + first * rank, rank, last - first, rank, room.planes, plane, spectrum);
        TYPED(combine)(slope + first * rank, rank, last - first, rank, room.planes + size, plane, spectrum);
    }
    TYPED(leave)(&room);
    return enough;
}

/* Transpose of analyze: set the moments of the cells in the planes first ≤ r < last. */
static int TYPED(synthesize)(const REAL *spectrum, Py_ssize_t channels, const int32_t *rows, const int32_t *blue,
                             const REAL *factor, Py_ssize_t cells, Py_ssize_t rank, Py_ssize_t first, Py_ssize_t last,
                             REAL *moments) {
    const REAL *flat = factor, *slope = factor + cells * rank;
    TYPED(Room) room;
    int enough = TYPED(room)(&room, cells, rank, channels, last - first);
    Py_ssize_t width = room.width, plane = rank * width, size = (last - first) * plane;
    REAL *flats = room.coefficients, *slopes = flats + cells * rank;
    REAL *constant = room.lines, *along_g = constant + cells * width, *along_r = along_g + cells * width;
    if (enough) {
        for (Py_ssize_t a = 0; a < rank; a++)
            for (Py_ssize_t r = first; r < last; r++) {
                flats[a * (last - first) + r - first] = flat[r * rank + a];
                slopes[a * (last - first) + r - first] = slope[r * rank + a];
            }
        TYPED(combine)(flats, last - first, rank, last - first, spectrum, plane, room.planes);
        TYPED(combine)(slopes, last - first, rank, last - first, spectrum, plane, room.planes + size);
    }
    for (Py_ssize_t r = first; enough && r < last; r++) {
        Py_ssize_t count = 0;
        for (Py_ssize_t g = 0; g < cells; g++)
            if (rows[r * cells + g] < rows[r * cells + g + 1]) {
                for (Py_ssize_t a = 0; a < rank; a++) {
                    flats[a * cells + count] = flat[g * rank + a];
                    slopes[a * cells + count] = slope[g * rank + a];
                }
                count++;
            }
        memset(constant, 0, sizeof(REAL) * (size_t)(count * width));
        memset(along_g, 0, sizeof(REAL) * (size_t)(count * width));
        memset(along_r, 0, sizeof(REAL) * (size_t)(count * width));
        const REAL *here = room.planes + (r - first) * plane;
        TYPED(combine)(flats, cells, rank, count, here, width, constant);
        TYPED(combine)(slopes, cells, rank, count, here, width, along_g);
        TYPED(combine)(flats, cells, rank, count, here + size, width, along_r);
        count = 0;
        for (Py_ssize_t g = 0; g < cells; g++) {
            int32_t begin = rows[r * cells + g], end = rows[r * cells + g + 1];
            if (begin == end) continue;
            const REAL *m = constant + count * width, *m_g = along_g + count * width, *m_r = along_r + count * width;
            count++;
            for (int32_t i = begin; i < end; i++) {
                const REAL *u = flat + blue[i] * rank, *w = slope + blue[i] * rank;
                REAL *v = moments + i * channels * 4;
                for (Py_ssize_t c = 0; c < channels; c++, v += 4) {
                    REAL sums[4] = {0};
                    for (Py_ssize_t a = 0; a < rank; a++) {
                        sums[0] += u[a] * m[c * rank + a];
                        sums[1] += u[a] * m_r[c * rank + a];
                        sums[2] += u[a] * m_g[c * rank + a];
                        sums[3] += w[a] * m[c * rank + a];
                    }
                    memcpy(v, sums, sizeof sums);
                }
            }
        }
    }
    TYPED(leave)(&room);
    return enough;
}

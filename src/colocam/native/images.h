/* ---- temporal/cuts.py -------------------------------------------------------------------------------------------- */

static PyObject *count_colors(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(2)
    READ(frames, 0, 'B', 4)
    FILL(counts, 1, 'q', 4)
    SAME(frames->shape[3] == 3 && counts->shape[0] == frames->shape[0] && counts->shape[1] == 4)
    SAME(counts->shape[2] == 3 && counts->shape[3] == 256)
    Py_ssize_t height = frames->shape[1], width = frames->shape[2], middle = width / 2;
    const uint8_t *at = frames->buf;
    int64_t *of_frame = counts->buf;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t t = 0; t < frames->shape[0]; t++, of_frame += 4 * 768)
        for (Py_ssize_t y = 0; y < height; y++)
            for (int side = 0; side < 2; side++) {
                int64_t *own = of_frame + (2 * (2 * y / height) + side) * 768;
                for (Py_ssize_t x = side ? middle : 0; x < (side ? width : middle); x++, at += 3) {
                    own[at[0]]++;
                    own[256 + at[1]]++;
                    own[512 + at[2]]++;
                }
            }
    Py_END_ALLOW_THREADS
    DONE
}

/* ---- video/frame_ring.py: area averages of 8-bit RGB images; elsewhere OpenCV resizes ---------------------------- */
#ifdef __GNUC__

/* The sums are added in the order of OpenCV's INTER_AREA (along x, then along y, in float), so that every byte is the
 * same. Sizes that are divided by whole numbers in both directions are an exception: OpenCV adds these as integers. */

/* Source cells of each target cell along one axis: ``taps`` from the ``first`` on (targets,), and their shares
 * (targets, taps), of which the last may be 0. */
typedef struct {
    Py_ssize_t taps;
    int32_t *first;
    float *share;
} Cells;

/* A target covers sources / targets ≥ 1 cells. Less than 0.001 of a cell is left out, as in OpenCV. */
static int find_cells(Cells *cells, Py_ssize_t sources, Py_ssize_t targets) {
    double scale = 1.0 / ((double)targets / (double)sources);
    cells->taps = (Py_ssize_t)ceil(scale) + 1;
    cells->first = malloc((size_t)targets * sizeof *cells->first);
    cells->share = calloc((size_t)(targets * cells->taps), sizeof *cells->share);
    if (!cells->first || !cells->share) return 0;
    for (Py_ssize_t target = 0; target < targets; target++) {
        double begin = (double)target * scale, end = begin + scale, width = fmin(scale, (double)sources - begin);
        Py_ssize_t last = (Py_ssize_t)fmin(floor(end), (double)(sources - 1));
        Py_ssize_t whole = (Py_ssize_t)fmin(ceil(begin), (double)last);
        int begins_inside = (double)whole - begin > 1e-3;
        float *share = cells->share + target * cells->taps;
        cells->first[target] = (int32_t)(whole - begins_inside);
        if (begins_inside) *share++ = (float)(((double)whole - begin) / width);
        for (Py_ssize_t source = whole; source < last; source++) *share++ = (float)(1.0 / width);
        if (end - (double)last > 1e-3) *share = (float)(fmin(fmin(end - (double)last, 1.0), width) / width);
    }
    return 1;
}

WIDE static void to_floats(const uint8_t *restrict row, Py_ssize_t length, float *restrict floats) {
    for (Py_ssize_t i = 0; i < length; i++) floats[i] = row[i];
}

/* Four floats at any address: the three of a pixel, and one that is not used. */
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

#define TOGETHER 4
#define AFTER_ROW 8
/* Average TOGETHER rows along x. A row is followed by AFTER_ROW floats, of which 7 may be read and 1 written. */
WIDE static void average_rows(const float *rows, Py_ssize_t length, const Cells *cells, Py_ssize_t targets,
                              float *averaged) {
    const float *share = cells->share;
    Py_ssize_t own = 3 * targets + AFTER_ROW;
    for (Py_ssize_t target = 0; target < targets; target++, share += cells->taps, averaged += 3) {
        const float *pixel = rows + 3 * cells->first[target];
        Four sum[TOGETHER];
        for (int i = 0; i < TOGETHER; i++) sum[i] = *(const Four *)(pixel + i * length) * share[0];
        for (Py_ssize_t tap = 1; tap < cells->taps; tap++)
            for (int i = 0; i < TOGETHER; i++) sum[i] += *(const Four *)(pixel + i * length + 3 * tap) * share[tap];
        for (int i = 0; i < TOGETHER; i++) *(Four *)(averaged + i * own) = sum[i]; /* the next overwrites the fourth */
    }
}

WIDE static void add_row(const float *restrict row, float share, Py_ssize_t length, float *restrict sum) {
    for (Py_ssize_t i = 0; i < length; i++) sum[i] += share * row[i];
}

/* Round to the nearest, half to even: a float above 2²³ has no bits after the point. */
WIDE static void to_bytes(const float *restrict sum, Py_ssize_t length, uint8_t *restrict bytes) {
    for (Py_ssize_t i = 0; i < length; i++) {
        float rounded = (sum[i] + 8388608.0f) - 8388608.0f;
        bytes[i] = (uint8_t)(int32_t)(rounded > 255.0f ? 255.0f : rounded);
    }
}

/* Memory: TOGETHER rows of both lengths, each with AFTER_ROW, and 3 · columns floats. */
static void average(const uint8_t *image, Py_ssize_t height, Py_ssize_t width, const Cells *across, const Cells *down,
                    Py_ssize_t rows, Py_ssize_t columns, float *memory, uint8_t *resized) {
    Py_ssize_t length = 3 * width + AFTER_ROW, own = 3 * columns + AFTER_ROW, ready = -TOGETHER;
    float *floats = memory, *averaged = floats + TOGETHER * length, *sum = averaged + TOGETHER * own;
    for (Py_ssize_t row = 0; row < rows; row++) {
        const float *share = down->share + row * down->taps;
        memset(sum, 0, (size_t)(3 * columns) * sizeof *sum);
        for (Py_ssize_t tap = 0; tap < down->taps && share[tap] > 0; tap++) {
            Py_ssize_t source = down->first[row] + tap;
            if (source >= ready + TOGETHER) { /* rows are needed in their order, some of them twice */
                ready = source;
                for (Py_ssize_t i = 0; i < TOGETHER && source + i < height; i++)
                    to_floats(image + 3 * width * (source + i), 3 * width, floats + i * length);
                average_rows(floats, length, across, columns, averaged);
            }
            add_row(averaged + (source - ready) * own, share[tap], 3 * columns, sum);
        }
        to_bytes(sum, 3 * columns, resized + 3 * columns * row);
    }
}

static PyObject *resize_area(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(2)
    READ(image, 0, 'B', 3)
    FILL(resized, 1, 'B', 3)
    Py_ssize_t height = image->shape[0], width = image->shape[1], rows = resized->shape[0], columns = resized->shape[1];
    SAME(image->shape[2] == 3 && resized->shape[2] == 3)
    SAME(0 < rows && rows <= height && height < INT32_MAX / 3)
    SAME(0 < columns && columns <= width && width < INT32_MAX / 3)
    Cells across, down;
    float *memory;
    int enough;
    Py_BEGIN_ALLOW_THREADS
    memory = calloc((size_t)(TOGETHER * (3 * (width + columns) + 2 * AFTER_ROW) + 3 * columns), sizeof *memory);
    enough = find_cells(&across, width, columns) & find_cells(&down, height, rows) & (memory != NULL);
    if (enough) average(image->buf, height, width, &across, &down, rows, columns, memory, resized->buf);
    free(memory);
    free(across.first);
    free(across.share);
    free(down.first);
    free(down.share);
    Py_END_ALLOW_THREADS
    if (!enough) {
        PyErr_NoMemory();
        goto fail;
    }
    DONE
}
#endif

/* ---- losses/affinity/cpu.py: what Python calls ------------------------------------------------------------------ */

#define REAL float
#define FLOOR floorf
#define TYPED(name) name##_f
#include "affinity.h"
#undef REAL
#undef FLOOR
#undef TYPED
#define REAL double
#define FLOOR floor
#define TYPED(name) name##_d
#include "affinity.h"
#undef REAL
#undef FLOOR
#undef TYPED

#define IS_FLOAT(view) ((view)->itemsize == 4)

static PyObject *color_locate(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(6)
    READ(rgb, 0, 'F', 3)
    READ(constants, 1, 'F', 1)
    WHOLE_NUMBER(first, 2)
    WHOLE_NUMBER(last, 3)
    FILL(index, 4, 'i', 2)
    FILL(used, 5, '?', 1)
    Py_ssize_t frames = rgb->shape[0], pixels = rgb->shape[2];
    SAME(rgb->shape[1] == 3 && constants->shape[0] == 10 && constants->itemsize == rgb->itemsize)
    SAME(index->shape[0] == frames && index->shape[1] == pixels && 0 <= first && last <= pixels)
    double cells = 1 + (IS_FLOAT(rgb) ? ((float *)constants->buf)[6] : ((double *)constants->buf)[6]);
    SAME((double)used->shape[0] == cells * cells * cells)
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(rgb))
        locate_f(rgb->buf, constants->buf, frames, pixels, first, last, index->buf, used->buf);
    else
        locate_d(rgb->buf, constants->buf, frames, pixels, first, last, index->buf, used->buf);
    Py_END_ALLOW_THREADS
    DONE
}

static PyObject *color_splat(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(9)
    READ(rgb, 0, 'F', 3)
    READ(values, 1, 'F', 3)
    READ(psi, 2, 'F', 2)
    READ(constants, 3, 'F', 1)
    WHOLE_NUMBER(first, 4)
    WHOLE_NUMBER(last, 5)
    READ(index, 6, 'i', 2)
    READ(slot, 7, 'i', 1)
    FILL(moments, 8, 'F', 3)
    Py_ssize_t frames = rgb->shape[0], pixels = rgb->shape[2], channels = values->shape[1], ranks = psi->shape[0];
    SAME(rgb->shape[1] == 3 && values->shape[0] == frames && values->shape[2] == pixels && psi->shape[1] == pixels)
    SAME(index->shape[0] == frames && index->shape[1] == pixels && 0 <= first && last <= pixels)
    SAME(constants->shape[0] == 10 && moments->shape[1] == ranks * channels && moments->shape[2] == 4)
    SAME(values->itemsize == rgb->itemsize && psi->itemsize == rgb->itemsize)
    SAME(constants->itemsize == rgb->itemsize && moments->itemsize == rgb->itemsize)
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(rgb))
        splat_f(rgb->buf, values->buf, psi->buf, constants->buf, frames, channels, ranks, pixels, first, last,
                index->buf, slot->buf, moments->buf);
    else
        splat_d(rgb->buf, values->buf, psi->buf, constants->buf, frames, channels, ranks, pixels, first, last,
                index->buf, slot->buf, moments->buf);
    Py_END_ALLOW_THREADS
    DONE
}

static PyObject *color_slice(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(9)
    READ(rgb, 0, 'F', 3)
    FILL(out, 1, 'F', 3)
    READ(psi, 2, 'F', 2)
    READ(constants, 3, 'F', 1)
    WHOLE_NUMBER(first, 4)
    WHOLE_NUMBER(last, 5)
    READ(index, 6, 'i', 2)
    READ(slot, 7, 'i', 1)
    READ(moments, 8, 'F', 3)
    Py_ssize_t frames = rgb->shape[0], pixels = rgb->shape[2], channels = out->shape[1], ranks = psi->shape[0];
    SAME(rgb->shape[1] == 3 && out->shape[0] == frames && out->shape[2] == pixels && psi->shape[1] == pixels)
    SAME(index->shape[0] == frames && index->shape[1] == pixels && 0 <= first && last <= pixels)
    SAME(constants->shape[0] == 10 && moments->shape[1] == ranks * channels && moments->shape[2] == 4)
    SAME(out->itemsize == rgb->itemsize && psi->itemsize == rgb->itemsize)
    SAME(constants->itemsize == rgb->itemsize && moments->itemsize == rgb->itemsize)
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(rgb))
        slice_f(rgb->buf, out->buf, psi->buf, constants->buf, frames, channels, ranks, pixels, first, last, index->buf,
                slot->buf, moments->buf);
    else
        slice_d(rgb->buf, out->buf, psi->buf, constants->buf, frames, channels, ranks, pixels, first, last, index->buf,
                slot->buf, moments->buf);
    Py_END_ALLOW_THREADS
    DONE
}

/* analyze and synthesize have the same arguments but for the order: moments → spectrum, spectrum → moments. */
static PyObject *transform(PyObject *const *args, Py_ssize_t given, int analyzes) {
    PyObject *self = NULL;
    ARGUMENTS(7)
    READ(moments, analyzes ? 0 : 6, 'F', 3)
    READ(rows, 1, 'i', 1)
    READ(blue, 2, 'i', 1)
    READ(factor, 3, 'F', 3)
    WHOLE_NUMBER(first, 4)
    WHOLE_NUMBER(last, 5)
    READ(spectrum, analyzes ? 6 : 0, 'F', 2)
    FILL(written, 6, 'F', analyzes ? 2 : 3)
    Py_ssize_t cells = factor->shape[1], rank = factor->shape[2], channels = moments->shape[1];
    SAME(written->itemsize == factor->itemsize && factor->shape[0] == 2 && rows->shape[0] == cells * cells + 1)
    SAME(spectrum->shape[0] == rank && spectrum->shape[1] == rank * channels * rank && moments->shape[2] == 4)
    SAME(moments->itemsize == factor->itemsize && spectrum->itemsize == factor->itemsize)
    SAME(0 <= first && first <= last && last <= cells && blue->shape[0] >= moments->shape[0])
    const int32_t *begin = rows->buf;
    SAME(begin[cells * cells] <= moments->shape[0])
    int enough;
    Py_BEGIN_ALLOW_THREADS
    if (analyzes && IS_FLOAT(factor))
        enough = analyze_f(moments->buf, channels, begin, blue->buf, factor->buf, cells, rank, first, last,
                           written->buf);
    else if (analyzes)
        enough = analyze_d(moments->buf, channels, begin, blue->buf, factor->buf, cells, rank, first, last,
                           written->buf);
    else if (IS_FLOAT(factor))
        enough = synthesize_f(spectrum->buf, channels, begin, blue->buf, factor->buf, cells, rank, first, last,
                              written->buf);
    else
        enough = synthesize_d(spectrum->buf, channels, begin, blue->buf, factor->buf, cells, rank, first, last,
                              written->buf);
    Py_END_ALLOW_THREADS
    if (!enough) {
        PyErr_NoMemory();
        goto fail;
    }
    DONE
}

static PyObject *color_analyze(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    (void)self;
    return transform(args, given, 1);
}

static PyObject *color_synthesize(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    (void)self;
    return transform(args, given, 0);
}

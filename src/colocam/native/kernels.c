/* Loops over pixels in C, where NumPy and OpenCV need several times as long.
 *
 * Python has a function beside each that computes the same (colocam/native/__init__.py): it explains the arguments, runs
 * where this module was not built, and is what tests compare with. Sums have a fixed order and no fused operations.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#include "arguments.h"
#include "images.h"
#include "levels.h"
#include "colors.h"

#define METHOD(name, function) {#name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {
    METHOD(count_colors, count_colors),
#ifdef __GNUC__
    METHOD(resize_area, resize_area),
#endif
    METHOD(sweep_levels, sweep_levels),
    METHOD(locate, color_locate),
    METHOD(splat, color_splat),
    METHOD(slice, color_slice),
    METHOD(analyze, color_analyze),
    METHOD(synthesize, color_synthesize),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "kernels", "Loops over pixels in C.", -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_kernels(void) {
    neighborhood_tables();
    numpy = PyImport_ImportModule("numpy");
    return numpy == NULL ? NULL : PyModule_Create(&MODULE);
}

/* The loops over pixels and boxes that run on the CPU, in C: what a wheel carries instead of Numba.
 *
 * Each function is the twin of a Python function of the same name, in the module that its name begins with: the Python
 * source explains it. A source tree without this module compiles the Python functions with Numba (utils/jit.py).
 * resizing_area is the twin of a function of OpenCV.
 * Arithmetic is in the order of the Python source and without fused operations, so that both give the same numbers.
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
#include "contours.h"
#include "over_time.h"
#include "candidates.h"
#include "levels.h"
#include "colors.h"
#ifdef __GNUC__ /* elsewhere OpenCV resizes */
#include "resizing.h"
#endif

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}
static PyMethodDef METHODS[] = {
    METHOD(cuts__count),          METHOD(extract__largest),    METHOD(instance_boxes__blobs), METHOD(iou_pair_iou),
    METHOD(iou__fill),            METHOD(path__margin),        METHOD(path__changes),         METHOD(path__best_changes),
    METHOD(path__line),           METHOD(presence_later_odds), METHOD(presence__next),        METHOD(candidates__search),
    METHOD(candidates__explain),  METHOD(levels__sweep),       METHOD(cpu_kernels_locate),    METHOD(cpu_kernels_number),
    METHOD(cpu_kernels_splat),    METHOD(cpu_kernels_slice_),  METHOD(cpu_kernels_analyse),
    METHOD(cpu_kernels_synthesise),
#ifdef __GNUC__
    METHOD(resizing_area),
#endif
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "kernels", "Loops over pixels and boxes in C.", -1, METHODS,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_kernels(void) {
    neighbourhood_tables();
    numpy = PyImport_ImportModule("numpy");
    return numpy == NULL ? NULL : PyModule_Create(&MODULE);
}

/* Arrays and numbers that Python passes: checked, contiguous, and released on every way out. */
static PyObject *numpy;

#define MOST_ARRAYS 8
typedef struct {
    Py_buffer views[MOST_ARRAYS];
    int count;
} Arrays;

static void release(Arrays *arrays) {
    while (arrays->count) PyBuffer_Release(&arrays->views[--arrays->count]);
}

static int is_kind(const Py_buffer *view, char kind) {
    const char *format = view->format ? view->format : "B";
    while (*format == '@' || *format == '=' || *format == '<') format++;
    if (kind == 'q') return view->itemsize == 8 && strchr("lq", *format) != NULL;
    if (kind == 'i') return view->itemsize == 4 && strchr("il", *format) != NULL;
    return *format == kind;
}

/* A contiguous array of numbers of one kind (B uint8, ? bool, h int16, i int32, q int64, f float32, d float64); F: f or
 * d. What is only read may lie apart in memory and is then copied. */
static Py_buffer *take(Arrays *arrays, PyObject *object, char kind, int axes, int written) {
    Py_buffer *view = &arrays->views[arrays->count];
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (written ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, view, flags) < 0) {
        if (written) return NULL;
        PyErr_Clear();
        PyObject *copy = PyObject_CallMethod(numpy, "ascontiguousarray", "O", object);
        if (copy == NULL) return NULL;
        int failed = PyObject_GetBuffer(copy, view, flags);
        Py_DecRef(copy);
        if (failed < 0) return NULL;
    }
    arrays->count++;
    if (view->ndim != axes || !(kind == 'F' ? is_kind(view, 'f') || is_kind(view, 'd') : is_kind(view, kind))) {
        PyErr_Format(PyExc_TypeError, "needs an array of kind %c with %d axes, got %s with %d", kind, axes,
                     view->format ? view->format : "B", view->ndim);
        return NULL;
    }
    return view;
}

#define ARGUMENTS(wanted)                                                                          \
    Arrays arrays = {.count = 0};                                                                  \
    (void)self;                                                                                    \
    if (given != (wanted)) {                                                                       \
        PyErr_Format(PyExc_TypeError, "needs %d arguments, got %zd", (int)(wanted), given);        \
        return NULL;                                                                               \
    }
#define READ(name, index, kind, axes)                                 \
    Py_buffer *name = take(&arrays, args[index], kind, axes, 0);      \
    if (name == NULL) goto fail;
#define FILL(name, index, kind, axes)                                 \
    Py_buffer *name = take(&arrays, args[index], kind, axes, 1);      \
    if (name == NULL) goto fail;
#define REAL_NUMBER(name, index)                                      \
    double name = PyFloat_AsDouble(args[index]);                      \
    if (name == -1.0 && PyErr_Occurred()) goto fail;
#define WHOLE_NUMBER(name, index)                                     \
    Py_ssize_t name = PyNumber_AsSsize_t(args[index], PyExc_OverflowError); \
    if (name == -1 && PyErr_Occurred()) goto fail;
#define SAME(condition)                                               \
    if (!(condition)) {                                               \
        PyErr_SetString(PyExc_ValueError, "shapes do not fit: " #condition); \
        goto fail;                                                    \
    }
#define DONE                 \
    release(&arrays);        \
    Py_IncRef(Py_None);      \
    return Py_None;          \
    fail:                    \
    release(&arrays);        \
    return NULL;

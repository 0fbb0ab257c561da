/* ---- temporal/cuts.py ------------------------------------------------------------------------------------------ */

static PyObject *cuts__count(PyObject *self, PyObject *const *args, Py_ssize_t given) {
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

/* ---- boxes/iou.py, temporal/path.py ------------------------------------------------------------------------------ */

static double pair(const double *a, const double *b, double border) {
    double width = (b[2] < a[2] ? b[2] : a[2]) - (b[0] > a[0] ? b[0] : a[0]) + border;
    double height = (b[3] < a[3] ? b[3] : a[3]) - (b[1] > a[1] ? b[1] : a[1]) + border;
    if (!(width > 0 && height > 0)) return 0.0;
    double common = width * height;
    double area_a = (a[2] - a[0] + border) * (a[3] - a[1] + border);
    double area_b = (b[2] - b[0] + border) * (b[3] - b[1] + border);
    double all = area_a + area_b - common;
    return all > 0 ? common / all : 0.0;
}

static PyObject *iou_pair_iou(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(3)
    READ(a, 0, 'd', 1)
    READ(b, 1, 'd', 1)
    REAL_NUMBER(border, 2)
    SAME(a->shape[0] == 4 && b->shape[0] == 4)
    PyObject *found = PyFloat_FromDouble(pair(a->buf, b->buf, border));
    release(&arrays);
    return found;
fail:
    release(&arrays);
    return NULL;
}

static PyObject *iou__fill(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(4)
    READ(a, 0, 'd', 2)
    READ(b, 1, 'd', 2)
    REAL_NUMBER(border, 2)
    FILL(overlaps, 3, 'd', 1)
    SAME(a->shape[1] == 4 && b->shape[1] == 4 && a->shape[0] == b->shape[0] && a->shape[0] == overlaps->shape[0])
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < a->shape[0]; i++)
        ((double *)overlaps->buf)[i] = pair((double *)a->buf + 4 * i, (double *)b->buf + 4 * i, border);
    Py_END_ALLOW_THREADS
    DONE
}

static PyObject *path__margin(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(3)
    READ(boxes, 0, 'd', 2)
    READ(scores, 1, 'd', 1)
    READ(box, 2, 'd', 1)
    SAME(boxes->shape[1] == 4 && box->shape[0] == 4 && scores->shape[0] == boxes->shape[0])
    double own = 0.0, other = 0.0;
    for (Py_ssize_t i = 0; i < boxes->shape[0]; i++) {
        double score = ((double *)scores->buf)[i], change = 1.0 - pair(box->buf, (double *)boxes->buf + 4 * i, 0.0);
        double *best = 1.0 - change >= 0.5 ? &own : &other;
        if (score > *best) *best = score;
    }
    release(&arrays);
    return PyFloat_FromDouble(own - other);
fail:
    release(&arrays);
    return NULL;
}

static PyObject *path__changes(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(3)
    READ(before, 0, 'd', 1)
    READ(after, 1, 'd', 2)
    REAL_NUMBER(jump, 2)
    SAME(before->shape[0] == 4 && after->shape[1] == 4)
    Py_buffer *costs;
    Py_ssize_t count = after->shape[0];
    PyObject *result = empty(&arrays, &costs, count + 1, 0, "d");
    if (result == NULL) goto fail;
    for (Py_ssize_t j = 0; j < count; j++)
        ((double *)costs->buf)[j] = jump * (1 - pair(before->buf, (double *)after->buf + 4 * j, 0.0));
    ((double *)costs->buf)[count] = jump / 2;
    release(&arrays);
    return result;
fail:
    release(&arrays);
    return NULL;
}

static PyObject *path__best_changes(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(4)
    PyObject *worth = NULL, *origins = NULL;
    READ(before, 0, 'd', 2)
    READ(totals, 1, 'd', 1)
    READ(after, 2, 'd', 2)
    REAL_NUMBER(jump, 3)
    Py_ssize_t nothing = before->shape[0], last = after->shape[0];
    SAME(before->shape[1] == 4 && after->shape[1] == 4 && totals->shape[0] == nothing + 1)
    Py_buffer *values, *indices;
    if ((worth = empty(&arrays, &values, last + 1, 0, "d")) == NULL) goto fail;
    if ((origins = empty(&arrays, &indices, last + 1, 0, "i8")) == NULL) goto fail;
    double *best = values->buf;
    int64_t *origin = indices->buf;
    for (Py_ssize_t j = 0; j <= last; j++) {
        best[j] = -INFINITY;
        origin[j] = 0;
    }
    for (Py_ssize_t i = 0; i <= nothing; i++)
        for (Py_ssize_t j = 0; j <= last; j++) {
            double cost = jump / 2;
            if (i < nothing && j < last)
                cost = jump * (1 - pair((double *)before->buf + 4 * i, (double *)after->buf + 4 * j, 0.0));
            else if (i == nothing && j == last)
                cost = 0.0;
            double value = ((double *)totals->buf)[i] - cost;
            if (value > best[j]) {
                best[j] = value;
                origin[j] = i;
            }
        }
    release(&arrays);
    return Py_BuildValue("(NN)", worth, origins);
fail:
    Py_DecRef(worth);
    Py_DecRef(origins);
    release(&arrays);
    return NULL;
}

static PyObject *path__line(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(6)
    double *weights = NULL;
    PyObject *result = NULL;
    READ(times, 0, 'd', 1)
    READ(boxes, 1, 'd', 2)
    REAL_NUMBER(at, 2)
    REAL_NUMBER(width, 3)
    REAL_NUMBER(damping, 4)
    READ(counts, 5, 'd', 1)
    Py_ssize_t n = times->shape[0];
    SAME(boxes->shape[0] == n && boxes->shape[1] == 4 && counts->shape[0] == n)
    const double *time = times->buf, *box = boxes->buf;
    double total = 0, middle = 0, spread = damping, level[4] = {0}, pull[4] = {0}, factor = -0.5 / (width * width);
    if ((weights = malloc(8 * (size_t)(n + 1))) == NULL) {
        PyErr_NoMemory();
        goto fail;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        double apart = time[i] - at;
        weights[i] = ((double *)counts->buf)[i] * exp(apart * apart * factor);
        total += weights[i];
    }
    for (Py_ssize_t i = 0; i < n; i++) weights[i] /= total;
    for (Py_ssize_t i = 0; i < n; i++) middle += weights[i] * (time[i] - at);
    for (Py_ssize_t i = 0; i < n; i++, box += 4) {
        double apart = time[i] - at - middle;
        spread += weights[i] * apart * apart;
        for (int axis = 0; axis < 2; axis++) {
            double low = box[axis], high = box[axis + 2], side = high - low;
            double value[2] = {(low + high) / 2, log(1.0 > side ? 1.0 : side)};
            for (int k = 0; k < 2; k++) {
                level[axis + 2 * k] += weights[i] * value[k];
                pull[axis + 2 * k] += weights[i] * apart * value[k];
            }
        }
    }
    if (spread > 1e-9)
        for (int k = 0; k < 4; k++) level[k] -= pull[k] * (middle / spread);
    Py_buffer *out;
    if ((result = empty(&arrays, &out, 4, 0, "d")) == NULL) goto fail;
    for (int axis = 0; axis < 2; axis++) {
        double half = exp(level[2 + axis]) / 2;
        ((double *)out->buf)[axis] = level[axis] - half;
        ((double *)out->buf)[axis + 2] = level[axis] + half;
    }
fail:
    free(weights);
    release(&arrays);
    return result;
}

/* ---- temporal/presence.py ---------------------------------------------------------------------------------------- */

static const double APPEAR = 0.15, VANISH = 0.05;

static PyObject *presence_later_odds(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(1)
    READ(evidence, 0, 'd', 1)
    double odds = 0.0;
    for (Py_ssize_t i = evidence->shape[0] - 1; i >= 0; i--) {
        double both = ((double *)evidence->buf)[i] + odds, e = exp(-fabs(both));
        double there = both > 0 ? 1.0 : e, gone = both > 0 ? e : 1.0;
        odds = log(((1 - VANISH) * there + VANISH * gone) / (APPEAR * there + (1 - APPEAR) * gone));
    }
    release(&arrays);
    return PyFloat_FromDouble(odds);
fail:
    release(&arrays);
    return NULL;
}

static PyObject *presence__next(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(1)
    READ(odds, 0, 'd', 1)
    Py_buffer *out;
    PyObject *result = empty(&arrays, &out, odds->shape[0], 0, "d");
    if (result == NULL) goto fail;
    for (Py_ssize_t i = 0; i < odds->shape[0]; i++) {
        double p = 1 / (1 + exp(-((double *)odds->buf)[i]));
        p = p * (1 - VANISH) + (1 - p) * APPEAR;
        ((double *)out->buf)[i] = log(p) - log1p(-p);
    }
    release(&arrays);
    return result;
fail:
    release(&arrays);
    return NULL;
}

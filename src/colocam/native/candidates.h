/* ---- boxes/candidates.py ----------------------------------------------------------------------------------------- */

typedef struct {
    int32_t box[4], origin;
} Found;

WIDE static void foreground(const uint8_t *level, Py_ssize_t width, int64_t cut, int64_t x1, int64_t y1, int64_t x2,
                            int64_t y2, int64_t *total, int64_t *count) {
    uint8_t limit = (uint8_t)cut;
    *total = *count = 0;
    for (int64_t y = y1; y <= y2; y++) {
        const uint8_t *row = level + y * width;
        int32_t sum = 0, many = 0;
        for (int64_t x = x1; x <= x2; x++) {
            sum += row[x] > limit ? row[x] : 0;
            many += row[x] > limit;
        }
        *total += sum;
        *count += many;
    }
}

static int64_t largest_first(const Space *space, int64_t first, double least, int64_t *large) {
    const int64_t *areas = space->areas;
    int64_t count = 0, best = first;
    for (int64_t at = first; at >= 0; at = next_contour(space->table, at)) {
        if (areas[at] > areas[best]) best = at;
        if ((double)areas[at] >= 2 * least) {
            int64_t place = count++;
            while (place > 0 && areas[large[place - 1]] < areas[at]) {
                large[place] = large[place - 1];
                place--;
            }
            large[place] = at;
        }
    }
    if (count == 0 && best >= 0) {
        large[0] = best;
        count = 1;
    }
    return count;
}

static int is_among(const Found *found, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (memcmp(found[i].box, found[count].box, sizeof found[i].box) == 0) return 1;
    return 0;
}

static double score(int64_t total, int64_t bright, int64_t common, int64_t covered, int64_t area) {
    return (double)common / ((double)total + (double)total / (double)bright * (double)(area - covered));
}

static PyObject *candidates__search(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(7)
    READ(levels, 0, 'B', 3)
    READ(thresholds, 1, 'd', 1)
    REAL_NUMBER(least, 2)
    FILL(boxes, 3, 'd', 3)
    FILL(scores, 4, 'd', 2)
    FILL(origins, 5, 'q', 2)
    FILL(counts, 6, 'q', 1)
    Py_ssize_t batch = levels->shape[0], height = levels->shape[1], width = levels->shape[2];
    Py_ssize_t most = boxes->shape[1], tries = thresholds->shape[0];
    SAME(boxes->shape[0] == batch && boxes->shape[2] == 4 && scores->shape[0] == batch && scores->shape[1] == most)
    SAME(origins->shape[0] == batch && origins->shape[1] == most && counts->shape[0] == batch && tries > 0)
    const double *tau = thresholds->buf;
    Space space;
    int64_t *large = NULL;
    Found *found = NULL;
    double *values = NULL;
    int room;
    Py_BEGIN_ALLOW_THREADS
    size_t contours = (size_t)(height * width + 1);
    room = scratch(&space, height, width);
    large = malloc(8 * contours);
    found = malloc(sizeof(Found) * contours * (size_t)tries);
    values = malloc(8 * contours * (size_t)tries);
    room = room && large && found && values;
    for (Py_ssize_t i = 0; room && i < batch; i++) {
        const uint8_t *level = (const uint8_t *)levels->buf + i * height * width;
        int64_t highest = highest_of(level, height * width), count = 0, own = (int64_t)(tau[0] * (double)highest);
        for (Py_ssize_t origin = 0; origin < (own < highest ? tries : 0); origin++) {
            int64_t cut = (int64_t)(tau[origin] * (double)highest);
            int repeated = 0;
            for (Py_ssize_t other = 0; other < origin; other++)
                repeated |= cut == (int64_t)(tau[other] * (double)highest);
            if (repeated) continue;
            int64_t first = follow_contours(level, cut, &space, NULL);
            int64_t many = largest_first(&space, first, least, large);
            for (int64_t place = 0; place < many; place++) {
                box_of_contour(space.table + large[place] * COLUMNS, &space, found[count].box);
                found[count].origin = (int32_t)origin;
                count += !is_among(found, count);
            }
        }
        int64_t total, bright;
        foreground(level, width, own, 0, 0, width - 1, height - 1, &total, &bright);
        for (int64_t n = 0; n < count; n++) {
            const int32_t *b = found[n].box;
            int64_t common, covered, area = ((int64_t)b[2] + 1 - b[0]) * ((int64_t)b[3] + 1 - b[1]);
            foreground(level, width, own, b[0], b[1], b[2], b[3], &common, &covered);
            values[n] = score(total, bright, common, covered, area);
        }
        int64_t kept = 0;
        for (int64_t n = 0; n < count; n++) {
            int64_t better = 0;
            for (int64_t j = 1; n > 0 && count > most && j < count; j++)
                better += values[j] > values[n] || (values[j] == values[n] && j < n);
            if (better < most - 1) {
                for (int side = 0; side < 4; side++)
                    ((double *)boxes->buf)[(i * most + kept) * 4 + side] = found[n].box[side];
                ((double *)scores->buf)[i * most + kept] = values[n];
                ((int64_t *)origins->buf)[i * most + kept] = found[n].origin;
                kept++;
            }
        }
        ((int64_t *)counts->buf)[i] = kept;
    }
    free(large);
    free(found);
    free(values);
    discard(&space);
    Py_END_ALLOW_THREADS
    if (!room) {
        PyErr_NoMemory();
        goto fail;
    }
    DONE
}

static int64_t pixel(double at, Py_ssize_t length) {
    double whole = rint(at);
    whole = whole > 0 ? whole : 0; /* a corner that is not a number is at the edge */
    return (int64_t)(whole < (double)(length - 1) ? whole : (double)(length - 1));
}

static PyObject *candidates__explain(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(4)
    READ(level_, 0, 'B', 2)
    REAL_NUMBER(threshold, 1)
    READ(boxes, 2, 'd', 2)
    FILL(values, 3, 'd', 1)
    Py_ssize_t height = level_->shape[0], width = level_->shape[1], n = boxes->shape[0];
    SAME(boxes->shape[1] == 4 && values->shape[0] == n && n > 0)
    const uint8_t *level = level_->buf;
    const double *box = boxes->buf;
    int64_t *sums = NULL;
    int room = 1;
    Py_BEGIN_ALLOW_THREADS
    int64_t highest = highest_of(level, height * width), cut = (int64_t)(threshold * (double)highest);
    if (cut < highest) {
        int64_t left = width, top = height, right = 0, bottom = 0;
        for (Py_ssize_t i = 0; i < n; i++)
            for (int end = 0; end < 4; end += 2) {
                int64_t x = pixel(box[4 * i + end], width), y = pixel(box[4 * i + end + 1], height);
                left = x < left ? x : left;
                right = x > right ? x : right;
                top = y < top ? y : top;
                bottom = y > bottom ? y : bottom;
            }
        int64_t rows = bottom + 1 - top, columns = right + 1 - left, line = columns + 1, counted[256] = {0};
        for (int64_t value = cut + 1; value < 256; value++) counted[value] = value + (INT64_C(1) << 32);
        sums = calloc((size_t)((rows + 1) * line), 8);
        room = sums != NULL;
        for (int64_t row = 0; room && row < rows; row++) {
            const uint8_t *from = level + (top + row) * width + left;
            int64_t *above = sums + row * line, *below = above + line, so_far = 0;
            for (int64_t column = 0; column < columns; column++) {
                so_far += counted[from[column]];
                below[column + 1] = above[column + 1] + so_far;
            }
        }
        int64_t total, bright;
        foreground(level, width, cut, 0, 0, width - 1, height - 1, &total, &bright);
        for (Py_ssize_t i = 0; room && i < n; i++) {
            int64_t x1 = pixel(box[4 * i], width) - left, y1 = pixel(box[4 * i + 1], height) - top;
            int64_t x2 = pixel(box[4 * i + 2], width) + 1 - left, y2 = pixel(box[4 * i + 3], height) + 1 - top;
            int64_t both = sums[y2 * line + x2] - sums[y1 * line + x2] - sums[y2 * line + x1] + sums[y1 * line + x1];
            int64_t common = both & INT64_C(0xFFFFFFFF), covered = both >> 32;
            ((double *)values->buf)[i] = score(total, bright, common, covered, (x2 - x1) * (y2 - y1));
        }
    }
    free(sums);
    Py_END_ALLOW_THREADS
    if (!room) {
        PyErr_NoMemory();
        goto fail;
    }
    DONE
}

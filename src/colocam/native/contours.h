/* ---- boxes/contours.py ----------------------------------------------------------------------------------------- */

enum { EMPTY, FRESH, MARKED, MARKED_RIGHT };
enum { LEFT, TOP, RIGHT, BOTTOM, PARENT, HOLE, CHILD, NEXT, COLUMNS };
#define WORD 8
static const int DX[8] = {1, 1, 0, -1, -1, -1, 0, 1}, DY[8] = {0, -1, -1, -1, 0, 1, 1, 1};

typedef struct {
    Py_ssize_t height, width, stride;
    uint8_t *pixels;
    int32_t *numbers, *table;
    int64_t *areas;
} Space;

static int scratch(Space *space, Py_ssize_t height, Py_ssize_t width) {
    Py_ssize_t stride = (width + 3 * WORD - 1) / WORD * WORD, size = (height + 2) * stride, room = height * width + 1;
    *space = (Space){height, width, stride, calloc(size, 1), malloc(4 * size), malloc(4 * COLUMNS * room),
                     malloc(8 * room)};
    return space->pixels && space->numbers && space->table && space->areas;
}

static void discard(Space *space) {
    free(space->pixels);
    free(space->numbers);
    free(space->table);
    free(space->areas);
}

static int64_t follow(Space *space, int64_t x, int64_t y, int hole, int32_t number, int32_t *row) {
    Py_ssize_t stride = space->stride;
    uint8_t *pixels = space->pixels;
    int32_t *numbers = space->numbers;
    int64_t left = x, right = x, at_x = x, top = y, bottom = y, at_y = y, area = 0;
    int end = hole ? 0 : 4, side = (end - 1) & 7;
    while (side != end && pixels[(y + DY[side]) * stride + x + DX[side]] == EMPTY) side = (side - 1) & 7;
    int alone = side == end;
    if (alone) {
        pixels[y * stride + x] = MARKED_RIGHT;
        numbers[y * stride + x] = number;
    }
    int64_t last_x = x + DX[side], last_y = y + DY[side];
    while (!alone) {
        end = side;
        side++;
        while (pixels[(at_y + DY[side & 7]) * stride + at_x + DX[side & 7]] == EMPTY) side++;
        side &= 7;
        Py_ssize_t at = at_y * stride + at_x;
        if (0 < side && side <= end) {
            pixels[at] = MARKED_RIGHT;
            numbers[at] = number;
        } else if (pixels[at] == FRESH) {
            pixels[at] = MARKED;
            numbers[at] = number;
        }
        int dx = DX[side], dy = DY[side];
        area += at_x * dy - at_y * dx;
        int done = at_x == last_x && at_y == last_y;
        at_x += dx;
        at_y += dy;
        if (done && at_x == x && at_y == y) break;
        if (at_x < left) left = at_x;
        if (at_x > right) right = at_x;
        if (at_y < top) top = at_y;
        if (at_y > bottom) bottom = at_y;
        side = (side + 4) & 7;
    }
    row[LEFT] = left;
    row[TOP] = top;
    row[RIGHT] = right;
    row[BOTTOM] = bottom;
    return area < 0 ? -area : area;
}

/* Index of the contour that OpenCV lists first, -1 without any; *count is their number. */
static int64_t follow_contours(const uint8_t *level, int64_t cut, Space *space, int64_t *found) {
    Py_ssize_t height = space->height, width = space->width, stride = space->stride;
    int32_t *table = space->table;
    uint8_t limit = (uint8_t)cut;
    for (Py_ssize_t i = 0; i < height; i++) {
        const uint8_t *row = level + i * width;
        uint8_t *out = space->pixels + (i + 1) * stride + WORD;
        for (Py_ssize_t j = 0; j < width; j++) out[j] = row[j] > limit;
    }
    int64_t count = 0, head = -1;
    for (Py_ssize_t y = 1; y <= height; y++) {
        int64_t met = -1;
        uint8_t before = EMPTY, *line = space->pixels + y * stride;
        for (Py_ssize_t x = WORD; x <= width + WORD; x++) {
            if (x % WORD == 0) {
                uint64_t alike;
                memcpy(&alike, line + x, WORD);
                if ((alike == 0 && before == EMPTY) || (alike == UINT64_C(0x0101010101010101) && before == FRESH)) {
                    x += WORD - 1;
                    continue;
                }
            }
            uint8_t here = line[x];
            int outer = before == EMPTY && here == FRESH;
            int hole = here == EMPTY && before > EMPTY && before < MARKED_RIGHT;
            if (outer || hole) {
                int64_t parent = met;
                if (met >= 0 && (table[met * COLUMNS + HOLE] == 1) != outer) parent = table[met * COLUMNS + PARENT];
                int32_t *row = table + count * COLUMNS;
                space->areas[count] = follow(space, x - hole, y, hole, (int32_t)count, row);
                row[PARENT] = (int32_t)parent;
                row[HOLE] = hole;
                row[CHILD] = -1;
                if (parent < 0) {
                    row[NEXT] = (int32_t)head;
                    head = count;
                } else {
                    row[NEXT] = table[parent * COLUMNS + CHILD];
                    table[parent * COLUMNS + CHILD] = (int32_t)count;
                }
                count++;
                here = line[x];
            }
            before = here;
            if (here >= MARKED) met = space->numbers[y * stride + x];
        }
    }
    if (found) *found = count;
    return head;
}

static int64_t next_contour(const int32_t *table, int64_t at) {
    if (table[at * COLUMNS + CHILD] >= 0) return table[at * COLUMNS + CHILD];
    while (at >= 0 && table[at * COLUMNS + NEXT] < 0) at = table[at * COLUMNS + PARENT];
    return at >= 0 ? table[at * COLUMNS + NEXT] : -1;
}

static void box_of_contour(const int32_t *row, const Space *space, int32_t *box) {
    int32_t right = row[RIGHT] - WORD + 1, bottom = row[BOTTOM];
    box[0] = row[LEFT] - WORD;
    box[1] = row[TOP] - 1;
    box[2] = right < space->width - 1 ? right : (int32_t)space->width - 1;
    box[3] = bottom < space->height - 1 ? bottom : (int32_t)space->height - 1;
}

static int64_t highest_of(const uint8_t *level, Py_ssize_t size) {
    uint8_t highest = 0;
    for (Py_ssize_t i = 0; i < size; i++) highest = level[i] > highest ? level[i] : highest;
    return highest;
}

/* ---- boxes/extract.py, boxes/instance_boxes.py ------------------------------------------------------------------ */

static PyObject *extract__largest(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(4)
    READ(levels, 0, 'B', 3)
    REAL_NUMBER(threshold, 1)
    FILL(boxes, 2, 'f', 2)
    FILL(found, 3, '?', 1)
    SAME(boxes->shape[0] == levels->shape[0] && boxes->shape[1] == 4 && found->shape[0] == levels->shape[0])
    Space space;
    int room;
    Py_ssize_t size = levels->shape[1] * levels->shape[2];
    Py_BEGIN_ALLOW_THREADS
    room = scratch(&space, levels->shape[1], levels->shape[2]);
    for (Py_ssize_t i = 0; room && i < levels->shape[0]; i++) {
        const uint8_t *level = (const uint8_t *)levels->buf + i * size;
        int64_t best = follow_contours(level, (int64_t)(threshold * (double)highest_of(level, size)), &space, NULL);
        for (int64_t at = best; at >= 0; at = next_contour(space.table, at))
            if (space.areas[at] > space.areas[best]) best = at;
        if (best >= 0) {
            int32_t box[4];
            box_of_contour(space.table + best * COLUMNS, &space, box);
            for (int side = 0; side < 4; side++) ((float *)boxes->buf)[4 * i + side] = (float)box[side];
            ((uint8_t *)found->buf)[i] = 1;
        }
    }
    discard(&space);
    Py_END_ALLOW_THREADS
    if (!room) {
        PyErr_NoMemory();
        goto fail;
    }
    DONE
}

static PyObject *instance_boxes__blobs(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(3)
    READ(level, 0, 'B', 2)
    REAL_NUMBER(threshold, 1)
    REAL_NUMBER(least, 2)
    Space space;
    int room;
    int64_t count = 0, blobs = 0, kept = 0, *outer = NULL;
    Py_BEGIN_ALLOW_THREADS
    room = scratch(&space, level->shape[0], level->shape[1]);
    if (room) {
        int64_t highest = highest_of(level->buf, level->len);
        follow_contours(level->buf, (int64_t)(threshold * (double)highest), &space, &count);
        outer = malloc(8 * (size_t)(count + 1));
        room = outer != NULL;
    }
    for (int64_t at = count - 1; room && at >= 0; at--) /* by area, equals in this order: insertion sort is stable */
        if (space.table[at * COLUMNS + HOLE] == 0) {
            int64_t place = blobs++;
            while (place > 0 && space.areas[outer[place - 1]] < space.areas[at]) {
                outer[place] = outer[place - 1];
                place--;
            }
            outer[place] = at;
        }
    if (room && blobs) {
        double share = 0.1 * (double)space.areas[outer[0]], limit = 2 * least > share ? 2 * least : share;
        while (kept < blobs && (kept == 0 || (double)space.areas[outer[kept]] >= limit)) kept++;
    }
    Py_END_ALLOW_THREADS
    PyObject *result = NULL;
    Py_buffer *boxes;
    if (!room)
        PyErr_NoMemory();
    else if ((result = empty(&arrays, &boxes, kept, 4, "d")) != NULL)
        for (int64_t i = 0; i < kept; i++) {
            int32_t box[4];
            box_of_contour(space.table + outer[i] * COLUMNS, &space, box);
            for (int side = 0; side < 4; side++) ((double *)boxes->buf)[4 * i + side] = box[side];
        }
    free(outer);
    discard(&space);
    release(&arrays);
    return result;
fail:
    release(&arrays);
    return NULL;
}

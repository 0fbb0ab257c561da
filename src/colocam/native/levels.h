/* ---- boxes/extract.py: the box of the largest contour at every level ---------------------------------------------- */

/* Two facts make one flood fill and one component tree per map exact:
 * 1. Contours of holes, and of components inside holes, are never the largest. So holes may be filled for all masks in
 *    advance: a pixel is outside of every filled component of ``levels > t`` exactly if a 4-connected path of levels
 *    <= t leads from it out of the map. A flood fill from the border finds the lowest such t (fill_holes).
 * 2. In a mask without holes the polygon through the border pixels of an 8-connected component has the area
 *    #(2x2 squares with 4 pixels set) + 1/2 #(2x2 squares with 3 set). Each such square lies in one component, so areas
 *    are only added up while pixels are set from the highest level down and components are joined (add_level).
 */

/* Of a component: first and last column, first and last pixel in raster order, twice the area of its contour. START also
 * breaks ties as OpenCV's order of contours does: of equals the one that starts last is listed first. */
enum { FIRST_COLUMN, LAST_COLUMN, START, END, AREA2, FIELDS };
/* Neighbors in the column to the left and to the right, and before and after the pixel in raster order; bit i of a
 * neighborhood stands for the i-th neighbor clockwise from the upper left. */
#define WEST 0xC1
#define EAST 0x1C
#define BEFORE 0x87
#define AFTER 0x78

static const int NEAR_Y[8] = {-1, -1, -1, 0, 1, 1, 1, 0}, NEAR_X[8] = {-1, 0, 1, 1, 1, 0, -1, -1};
static uint8_t GROWTH[256], JOIN[256], FIRST[256];

/* For each neighborhood of a pixel that is set now: growth of twice the area, neighbors to join, the lowest bit. A 2x2
 * square gains 1/2 when at least two of its other three pixels are set already. */
static void neighborhood_tables(void) {
    for (int bits = 0; bits < 256; bits++) {
        int growth = 0, join = 0, left = bits;
        for (int corner = 1; corner < 8; corner += 2) {
            int set = 0;
            for (int k = 0; k < 3; k++) set += bits >> ((corner + k) % 8) & 1;
            growth += set >= 2;
        }
        while (left) { /* neighbors that touch each other are one component: its lowest bit stands for it */
            int group = left & -left, grown;
            join |= group;
            do {
                grown = 0;
                for (int i = 0; i < 8; i++)
                    for (int j = 0; j < 8; j++)
                        if (group >> i & 1 && left >> j & 1 && !(group >> j & 1) && abs(NEAR_Y[i] - NEAR_Y[j]) <= 1 &&
                            abs(NEAR_X[i] - NEAR_X[j]) <= 1) {
                            group |= 1 << j;
                            grown = 1;
                        }
            } while (grown);
            left &= ~group;
        }
        GROWTH[bits] = (uint8_t)growth;
        JOIN[bits] = (uint8_t)join;
        int first = 0;
        while (bits && !(bits >> first & 1)) first++;
        FIRST[bits] = (uint8_t)first;
    }
}

typedef struct {
    Py_ssize_t height, width, stride, size;
    uint8_t *filled, *present;
    int32_t *parent, *link, *order, *tied, *table, steps[8];
    int64_t largest, ties;
} Sweep;

/* Find the lowest t at which a pixel is connected with the outside through levels <= t, and the order of these t. */
static void fill_holes(Sweep *sweep, const uint8_t *levels) {
    Py_ssize_t height = sweep->height, width = sweep->width, stride = sweep->stride;
    uint8_t *filled = sweep->filled, *waiting = sweep->present;
    int32_t first[256], *link = sweep->link;
    for (int level = 0; level < 256; level++) first[level] = -1;
    for (Py_ssize_t y = 0; y < height; y++)
        for (Py_ssize_t x = 0; x < width; x++) {
            Py_ssize_t pixel = (y + 1) * stride + x + 1;
            filled[pixel] = levels[y * width + x];
            waiting[pixel] = 1;
        }
    for (Py_ssize_t y = 0; y < height; y++)
        for (Py_ssize_t x = 0; x < width; x += y == 0 || y == height - 1 || width < 2 ? 1 : width - 1) {
            int32_t pixel = (int32_t)((y + 1) * stride + x + 1);
            uint8_t level = levels[y * width + x];
            waiting[pixel] = 0;
            link[pixel] = first[level];
            first[level] = pixel;
        }
    Py_ssize_t done = 0;
    for (int level = 0; level < 256; level++)
        while (first[level] >= 0) {
            int32_t pixel = first[level];
            const int32_t others[4] = {pixel - (int32_t)stride, pixel - 1, pixel + 1, pixel + (int32_t)stride};
            first[level] = link[pixel];
            sweep->order[done++] = pixel;
            for (int i = 0; i < 4; i++) {
                int32_t other = others[i];
                if (waiting[other]) {
                    waiting[other] = 0;
                    uint8_t reached = filled[other] > level ? filled[other] : (uint8_t)level;
                    filled[other] = reached;
                    link[other] = first[reached];
                    first[reached] = other;
                }
            }
        }
}

static int32_t root_of(int32_t *parent, int32_t at) {
    while (parent[at] != at) {
        parent[at] = parent[parent[at]];
        at = parent[at];
    }
    return at;
}

/* Set the pixels above ``level`` that are still to come, from order[at] downwards, and join components. */
static Py_ssize_t add_level(Sweep *sweep, int level, Py_ssize_t at) {
    const uint8_t *filled = sweep->filled;
    uint8_t *present = sweep->present;
    int32_t *parent = sweep->parent, *table = sweep->table, stride = (int32_t)sweep->stride;
    while (at >= 0 && filled[sweep->order[at]] > level) {
        int32_t pixel = sweep->order[at--], root, column = pixel % stride;
        unsigned bits = 0;
        for (int i = 0; i < 8; i++) bits |= (unsigned)present[pixel + sweep->steps[i]] << i;
        present[pixel] = 1;
        if (bits == 0) {
            root = pixel;
            int32_t *row = table + root * FIELDS;
            row[FIRST_COLUMN] = row[LAST_COLUMN] = column;
            row[START] = row[END] = pixel;
            row[AREA2] = 0;
        } else {
            root = root_of(parent, pixel + sweep->steps[FIRST[bits]]);
            int32_t *row = table + root * FIELDS;
            row[AREA2] += GROWTH[bits];
            if (!(bits & WEST) && column < row[FIRST_COLUMN]) row[FIRST_COLUMN] = column;
            if (!(bits & EAST) && column > row[LAST_COLUMN]) row[LAST_COLUMN] = column;
            if (!(bits & BEFORE) && pixel < row[START]) row[START] = pixel;
            if (!(bits & AFTER) && pixel > row[END]) row[END] = pixel;
        }
        parent[pixel] = root;
        for (unsigned rest = JOIN[bits] & ~(1u << FIRST[bits]); rest; rest &= rest - 1) {
            int32_t other = root_of(parent, pixel + sweep->steps[FIRST[rest]]);
            if (other == root) continue;
            if (table[other * FIELDS + AREA2] > table[root * FIELDS + AREA2]) {
                int32_t swapped = root;
                root = other;
                other = swapped;
            }
            parent[other] = root;
            int32_t *row = table + root * FIELDS, *gone = table + other * FIELDS;
            if (gone[FIRST_COLUMN] < row[FIRST_COLUMN]) row[FIRST_COLUMN] = gone[FIRST_COLUMN];
            if (gone[LAST_COLUMN] > row[LAST_COLUMN]) row[LAST_COLUMN] = gone[LAST_COLUMN];
            if (gone[START] < row[START]) row[START] = gone[START];
            if (gone[END] > row[END]) row[END] = gone[END];
            row[AREA2] += gone[AREA2];
        }
        int32_t area = table[root * FIELDS + AREA2];
        if (area > sweep->largest) {
            sweep->largest = area;
            sweep->ties = 0;
        }
        if (area == sweep->largest) sweep->tied[sweep->ties++] = root;
    }
    return at;
}

/* Drop entries that are no longer roots; return the root that OpenCV lists first. */
static int32_t first_of_tied(Sweep *sweep) {
    int32_t best = -1;
    int64_t kept = 0;
    for (int64_t i = 0; i < sweep->ties; i++) {
        int32_t root = sweep->tied[i];
        if (sweep->parent[root] == root) {
            sweep->tied[kept++] = root;
            if (best < 0 || sweep->table[root * FIELDS + START] > sweep->table[best * FIELDS + START]) best = root;
        }
    }
    sweep->ties = kept;
    return best;
}

static void largest_components(Sweep *sweep, int16_t *boxes) {
    int32_t stride = (int32_t)sweep->stride, right = (int32_t)sweep->width - 1, bottom = (int32_t)sweep->height - 1;
    Py_ssize_t at = sweep->height * sweep->width - 1;
    sweep->largest = sweep->ties = 0;
    for (int level = (int)sweep->filled[sweep->order[at]] - 1; level >= 0; level--) {
        at = add_level(sweep, level, at);
        const int32_t *row = sweep->table + first_of_tied(sweep) * FIELDS;
        int32_t x1 = row[FIRST_COLUMN] - 1, y1 = row[START] / stride - 1, x2 = row[LAST_COLUMN], y2 = row[END] / stride;
        int whole = sweep->largest > (int64_t)right * bottom && x1 == 0 && y1 == 0 && x2 > right && y2 > bottom;
        x2 = x2 < right ? x2 : right;
        y2 = y2 < bottom ? y2 : bottom;
        /* A component with more than half of the area that touches all edges keeps its box at all lower levels. */
        for (int lower = level; lower >= (whole ? 0 : level); lower--) {
            int16_t *box = boxes + 4 * lower;
            box[0] = (int16_t)x1;
            box[1] = (int16_t)y1;
            box[2] = (int16_t)x2;
            box[3] = (int16_t)y2;
        }
        if (whole) return;
    }
}

static PyObject *sweep_levels(PyObject *self, PyObject *const *args, Py_ssize_t given) {
    ARGUMENTS(2)
    READ(levels, 0, 'B', 3)
    FILL(boxes, 1, 'h', 3)
    Py_ssize_t height = levels->shape[1], width = levels->shape[2], stride = width + 2, size = (height + 2) * stride;
    SAME(boxes->shape[0] == levels->shape[0] && boxes->shape[1] == 256 && boxes->shape[2] == 4)
    Sweep sweep = {.height = height, .width = width, .stride = stride, .size = size};
    for (int i = 0; i < 8; i++) sweep.steps[i] = (int32_t)(NEAR_Y[i] * stride + NEAR_X[i]);
    int room;
    Py_BEGIN_ALLOW_THREADS
    sweep.filled = calloc((size_t)size, 1);
    sweep.present = calloc((size_t)size, 1);
    sweep.parent = malloc(4 * (size_t)size);
    sweep.link = malloc(4 * (size_t)size);
    sweep.order = malloc(4 * (size_t)size);
    sweep.tied = malloc(4 * (size_t)size);
    sweep.table = malloc(4 * FIELDS * (size_t)size);
    room = sweep.filled && sweep.present && sweep.parent && sweep.link && sweep.order && sweep.tied && sweep.table;
    for (Py_ssize_t i = 0; room && i < levels->shape[0]; i++) {
        fill_holes(&sweep, (const uint8_t *)levels->buf + i * height * width);
        memset(sweep.present, 0, (size_t)size);
        largest_components(&sweep, (int16_t *)boxes->buf + i * 1024);
        memset(sweep.present, 0, (size_t)size);
    }
    free(sweep.filled);
    free(sweep.present);
    free(sweep.parent);
    free(sweep.link);
    free(sweep.order);
    free(sweep.tied);
    free(sweep.table);
    Py_END_ALLOW_THREADS
    if (!room) {
        PyErr_NoMemory();
        goto fail;
    }
    DONE
}

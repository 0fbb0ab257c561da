"""One-to-one assignment of rows to columns with the largest sum."""

import numpy as np
import numpy.typing as npt

Pairs = tuple[list[int], list[int]]


def best_pairs(values: npt.NDArray[np.floating] | npt.NDArray[np.bool_]) -> Pairs:
    """Rows and columns of the min(n, m) pairs of ``values`` (n, m), each row and column once, with the largest sum.

    Shortest augmenting paths (Crouse, 2016): rows are added one by one; each finds the cheapest chain of changes that
    gives it a column. The order of the search is that of SciPy's ``linear_sum_assignment``, so that of equally good
    assignments the same is returned. For the few boxes of a frame; rows come in order.
    """
    if values.shape[0] > values.shape[1]:
        columns, rows = best_pairs(values.T)
        order = np.argsort(rows).tolist()
        return [rows[i] for i in order], [columns[i] for i in order]
    costs = (-values.astype(np.float64)).tolist()
    count, width = values.shape
    u, v = [0.0] * count, [0.0] * width
    column_of, row_of = [-1] * count, [-1] * width
    for first in range(count):
        shortest, path = [np.inf] * width, [-1] * width
        remaining = list(range(width - 1, -1, -1))
        seen_rows, seen_columns = [], []
        row, sink, least = first, -1, 0.0
        while sink < 0:
            seen_rows.append(row)
            best, lowest = -1, np.inf
            for place, column in enumerate(remaining):
                reached = least + costs[row][column] - u[row] - v[column]
                if reached < shortest[column]:
                    path[column], shortest[column] = row, reached
                if shortest[column] < lowest or (shortest[column] == lowest and row_of[column] < 0):
                    best, lowest = place, shortest[column]
            least, column = lowest, remaining[best]
            if row_of[column] < 0:
                sink = column
            else:
                row = row_of[column]
            seen_columns.append(column)
            remaining[best] = remaining[-1]
            remaining.pop()
        u[first] += least
        for row in seen_rows[1:]:
            u[row] += least - shortest[column_of[row]]
        for column in seen_columns:
            v[column] -= least - shortest[column]
        column = sink
        while True:  # turn the chain around
            row = path[column]
            row_of[column] = row
            column_of[row], column = column, column_of[row]
            if row == first:
                break
    return list(range(count)), column_of

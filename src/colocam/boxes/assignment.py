"""Who belongs to whom: the one-to-one assignment of rows to columns with the largest sum."""

import numpy as np
import numpy.typing as npt

from colocam.types import Float64Array


def assign(gains: npt.NDArray[np.floating] | npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Pairs (row, column) of the best one-to-one assignment, by rows; pairs that gain nothing are left out.

    The Hungarian method with shortest augmenting paths (Kuhn, Munkres; Jonker and Volgenant), O(n²·m). With gains of 0
    and 1 it is the matching with the most pairs.

    Args:
        gains: (n, m), 0 or more; 0 for pairs that may not be.
    """
    wide = np.asarray(gains, np.float64)
    if wide.shape[0] > wide.shape[1]:
        return sorted((row, column) for column, row in assign(wide.T))
    rows, columns = wide.shape
    costs = np.zeros((rows + 1, columns + 1))
    costs[1:, 1:] = -wide
    by_row, by_column = np.zeros(rows + 1), np.zeros(columns + 1)  # dual variables; number 0 stands for nobody
    row_of = np.zeros(columns + 1, np.int64)
    for row in range(1, rows + 1):
        _augment(costs, by_row, by_column, row_of, row)
    pairs = [(int(row_of[column]) - 1, column - 1) for column in range(1, columns + 1) if row_of[column]]
    return sorted(pair for pair in pairs if wide[pair] > 0)


def _augment(
    costs: Float64Array, by_row: Float64Array, by_column: Float64Array, row_of: npt.NDArray[np.int64], row: int
) -> None:
    """Give ``row`` a column by the cheapest chain of changes; updates the duals and ``row_of``."""
    distance = np.full(len(by_column), np.inf)
    before = np.zeros(len(by_column), np.int64)
    done = np.zeros(len(by_column), bool)
    row_of[0], column = row, 0
    while row_of[column]:
        done[column] = True
        reduced = costs[row_of[column]] - by_row[row_of[column]] - by_column
        nearer = ~done & (reduced < distance)
        distance[nearer], before[nearer] = reduced[nearer], column
        best = int(np.where(done, np.inf, distance).argmin())
        step = distance[best]
        by_row[row_of[done]] += step
        by_column[done] -= step
        distance[~done] -= step
        column = best
    while column:
        row_of[column] = row_of[before[column]]
        column = int(before[column])
    row_of[0] = 0

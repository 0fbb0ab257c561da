from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment

from colocam.boxes.assignment import assign

shapes = st.tuples(st.integers(0, 7), st.integers(0, 7))
gains = shapes.flatmap(
    lambda shape: hnp.arrays(np.float64, shape, elements=st.one_of(st.just(0.0), st.floats(2**-7, 1, width=32)))
)


def checked(table):
    """The pairs, after a look whether they are one-to-one, gain something and come by rows."""
    pairs = assign(table)
    rows, columns = [row for row, _ in pairs], [column for _, column in pairs]
    assert rows == sorted(set(rows))
    assert len(set(columns)) == len(columns)
    assert all(table[pair] > 0 for pair in pairs)
    return pairs


@settings(max_examples=60, deadline=None)
@given(gains)
def test_the_sum_is_that_of_scipy(table):
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert sum(table[pair] for pair in checked(table)) == pytest.approx(best, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.tuples(st.integers(1, 4), st.integers(1, 4)).flatmap(lambda shape: hnp.arrays(np.bool_, shape)))
def test_with_right_and_wrong_it_makes_as_many_pairs_as_can_be(table):
    wide = table if table.shape[0] <= table.shape[1] else table.T
    most = max(wide[range(len(wide)), list(order)].sum() for order in permutations(range(wide.shape[1]), len(wide)))
    assert len(checked(table)) == most


def test_a_greedy_choice_would_lose():
    """The best single pair (0, 0) leaves row 1 with nothing."""
    assert assign(np.array([[0.9, 0.8], [0.7, 0.0]])) == [(0, 1), (1, 0)]

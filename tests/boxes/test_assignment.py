import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment

from colocam.boxes.assignment import best_pairs

SHAPES = st.tuples(st.integers(0, 6), st.integers(0, 6))


@settings(max_examples=150, deadline=None)
@given(st.one_of(arrays(np.float64, SHAPES, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])), arrays(bool, SHAPES)))
def test_the_same_pairs_as_scipy_also_among_equals(values):
    rows, columns = linear_sum_assignment(values, maximize=True)
    assert best_pairs(values) == (rows.tolist(), columns.tolist())


@pytest.mark.parametrize("shape", [(40, 60), (60, 40), (30, 30)])
def test_many_rows_and_columns(shape):
    values = np.random.default_rng(0).random(shape)
    rows, columns = linear_sum_assignment(values, maximize=True)
    assert best_pairs(values) == (rows.tolist(), columns.tolist())

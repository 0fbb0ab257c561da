"""Arrays and tensors become the same levels, and the same faults of them are refused."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.boxes.quantize import checked_levels, to_8bit
from colocam.errors import ColocamError

maps = st.sampled_from([np.float16, np.float32, np.float64]).flatmap(
    lambda kind: hnp.arrays(
        kind, (2, 3, 4), elements=st.floats(0, 1, width=np.dtype(kind).itemsize * 8, allow_subnormal=False)
    )
)


@given(maps)
def test_an_array_has_the_levels_of_the_tensor(values):
    levels = to_8bit(values)
    assert levels.dtype == np.uint8
    np.testing.assert_array_equal(levels, to_8bit(torch.from_numpy(values)).numpy())
    np.testing.assert_array_equal(levels, checked_levels(values))
    np.testing.assert_array_equal(levels, checked_levels(torch.from_numpy(values)))
    wide = np.float64 if values.dtype == np.float64 else np.float32
    np.testing.assert_array_equal(levels, np.floor(wide(255) * values.astype(wide)))


def test_levels_pass_through():
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    assert np.shares_memory(to_8bit(levels), levels)
    np.testing.assert_array_equal(checked_levels(levels), levels)
    np.testing.assert_array_equal(checked_levels(torch.from_numpy(levels)), levels)
    assert checked_levels(levels[:, ::2, ::-1]).flags.c_contiguous


def test_no_frames_are_no_fault():
    assert checked_levels(np.zeros((0, 4, 4), np.float32)).shape == (0, 4, 4)


@pytest.mark.parametrize("as_given", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.zeros((4, 4), np.float32), r"must have shape \(frames, height, width\), got \(4, 4\)"),
        (np.zeros((1, 0, 4), np.float32), r"must have shape .*, got \(1, 0, 4\)"),
        (np.zeros((1, 4, 4), np.int64), "must be floats in 0–1 or uint8 levels, got .*int64"),
        (np.zeros((1, 4, 4), bool), "must be floats in 0–1 or uint8 levels, got .*bool"),
        (np.full((1, 4, 4), 1.01), "must be in 0–1 without NaN"),
        (np.full((1, 4, 4), -0.01), "must be in 0–1 without NaN"),
        (np.full((1, 4, 4), np.nan), "must be in 0–1 without NaN"),
    ],
)
def test_what_is_no_map_is_refused(values, told, as_given):
    with pytest.raises(ColocamError, match=told):
        checked_levels(as_given(values))

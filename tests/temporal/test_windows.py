"""Windows: consecutive frames of one shot, at most 32, from the beginning of the shot."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.temporal.cuts import WINDOW, window_starts


def by_hand(cuts):
    """Walk through the frames one by one."""
    starts, length = [], 0
    for cut in cuts:
        begins = cut or length in {0, WINDOW}
        length = 1 if begins else length + 1
        starts.append(bool(begins))
    return starts


@settings(deadline=None)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=6), st.lists(st.integers(1, 50), min_size=1, max_size=8))
def test_windows_are_those_counted_by_hand_whatever_the_batches(shots, batches):
    cuts = np.zeros(sum(shots), bool)
    cuts[np.cumsum(shots)[:-1]] = True
    assert window_starts(cuts)[0].tolist() == by_hand(cuts)
    found, position, start = [], 0, 0
    for batch in [*batches, len(cuts)]:
        starts, position = window_starts(cuts[start : start + batch], position)
        found += starts.tolist()
        start += batch
    assert found == by_hand(cuts)

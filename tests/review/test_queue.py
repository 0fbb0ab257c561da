from math import exp

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.labels.review import LESS, queue


def by_hand(doubt, video, pts, most, apart):
    """The same, looking at all frames for every choice."""
    chosen = []

    def urgency(i):
        away = [abs(pts[i] - pts[c]) for c in chosen if video[c] == video[i]]
        near = [a for a in away if apart and a <= 4 * apart]
        return doubt[i] * (1 - LESS * exp(-0.5 * (min(near) / apart) ** 2) if near else 1)

    for _ in range(min(most, len(doubt))):
        chosen.append(max(set(range(len(doubt))) - set(chosen), key=lambda i: (urgency(i), -i)))
    return chosen


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float64, st.integers(1, 14), elements=st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])),
    st.integers(0, 14),
    st.sampled_from([0.0, 0.05, 0.1, 1.0]),
)
def test_against_the_same_by_hand(doubt, cut, apart):
    count = len(doubt)
    video = (np.arange(count) >= cut).astype(np.int64)
    pts = np.arange(count) / 10
    assert queue(doubt, video, pts, count, apart) == by_hand(doubt, video, pts, count, apart)


def test_neighbours_of_the_worst_frame_wait():
    doubt = np.full(100, 0.1)
    doubt[40:50] = 0.9
    doubt[70] = 0.8
    pts, video = np.arange(100) / 25, np.zeros(100, np.int64)
    assert set(queue(doubt, video, pts, 10, apart=0)) == set(range(40, 50))
    spread = queue(doubt, video, pts, 3, apart=0.25)
    assert spread == [40, 70, 49]  # the far end of the stretch

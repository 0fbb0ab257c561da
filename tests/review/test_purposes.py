"""Frames to learn from are at even distances over all videos; those of errors go by doubt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.labels import rank
from colocam.labels.review import PURPOSES, Rows, check, evenly_spread, shares


def frames(*lengths):
    video = np.repeat(np.arange(len(lengths)), lengths)
    pts = np.concatenate([np.arange(length) / 10 for length in lengths])
    return video, pts


lengths_of_videos = st.lists(st.integers(1, 30), min_size=1, max_size=6)


@settings(max_examples=20)
@given(lengths_of_videos, st.integers(1, 60), st.integers(0, 99))
def test_every_order_lists_as_many_distinct_frames_as_asked(lengths, most, seed):
    video, pts = frames(*lengths)
    doubt = np.random.default_rng(seed).random(len(video))
    for order in PURPOSES.values():
        chosen = order(doubt, video, pts, most, 0.5)
        assert len(set(chosen)) == len(chosen) == min(most, len(video))


@given(lengths_of_videos, st.integers(0, 60))
def test_frames_are_divided_as_equally_as_the_videos_are_long(lengths, most):
    counts = shares(np.array(lengths), most)
    assert counts.sum() == min(most, sum(lengths))
    assert (counts <= lengths).all()
    filled = counts == lengths
    assert counts[~filled].max(initial=0) - counts[~filled].min(initial=60) <= 1
    assert counts[filled].max(initial=0) <= counts[~filled].min(initial=60) + 1


def test_few_frames_come_from_videos_at_even_distances():
    assert shares(np.full(6, 9), 2).tolist() == [0, 1, 0, 0, 1, 0]
    assert shares(np.full(6, 9), 8).tolist() == [1, 2, 1, 1, 2, 1]


def test_even_frames_are_the_middle_then_spread():
    video, pts = frames(9, 9)
    assert evenly_spread(np.zeros(18), video, pts, 2, 0.5) == [4, 13]
    assert sorted(evenly_spread(np.zeros(18), video, pts, 6, 0.5)) == [1, 4, 7, 10, 13, 16]
    assert evenly_spread(np.zeros(18), video, pts, 6, 0.5)[:2] == [4, 13]


def test_doubt_leads_to_errors_and_not_to_frames_to_learn_from():
    count = 10
    score = np.full(count, 0.9)
    score[8] = 0.1
    box, ones = np.tile([10.0, 10, 50, 50], (count, 1)), np.ones(count)
    rows = Rows(np.zeros(count, int), np.arange(count), np.arange(count) / 1.0, box, score, ones, ones)
    assert [one.frame for one in rank(rows, share=0.1)] == [8]
    assert [one.frame for one in rank(rows, share=0.1, purpose="learning")] == [5]


def test_an_unknown_purpose_is_named():
    with pytest.raises(ColocamError, match="purpose must be one of errors, learning, got 'lerning'"):
        check(0.1, 0.5, "lerning")

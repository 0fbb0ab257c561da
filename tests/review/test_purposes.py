"""Frames to learn from come from all videos; frames at even distances do not look at doubt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.errors import ColocamError
from colocam.review import rank
from colocam.review.doubt import Rows, extents
from colocam.review.purposes import BASE, PURPOSES, evenly_spread, find_purpose, for_learning


def frames(*lengths):
    video = np.repeat(np.arange(len(lengths)), lengths)
    pts = np.concatenate([np.arange(length) / 10 for length in lengths])
    return video, pts


@settings(max_examples=20)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 60), st.integers(0, 99))
def test_every_order_lists_distinct_frames(lengths, most, seed):
    video, pts = frames(*lengths)
    doubt = np.random.default_rng(seed).random(len(video))
    for name, order in PURPOSES.items():
        chosen = order(doubt, video, pts, most, 0.5)
        assert len(set(chosen)) == len(chosen) <= most
        if name != "even":
            assert len(chosen) == min(most, len(video))


def test_learning_takes_each_video_before_the_second_frame_of_a_doubtful_one():
    video, pts = frames(20, 20, 20)
    doubt = np.zeros(60)
    doubt[:20] = 0.4  # 0.9 / 2 is below 0.5 / 1
    chosen = for_learning(doubt, video, pts, 6, 0.5)
    assert video[chosen[:3]].tolist() == [0, 1, 2]
    assert video[chosen[3]] == 0
    seen = [video[chosen[:place]].tolist().count(video[at]) for place, at in enumerate(chosen)]
    values = [(BASE + doubt[at]) / (1 + before) for at, before in zip(chosen, seen, strict=True)]
    assert values == sorted(values, reverse=True)


def test_even_frames_are_the_middle_then_spread():
    video, pts = frames(9, 9)
    assert evenly_spread(np.zeros(18), video, pts, 2, 0.5) == [4, 13]
    assert sorted(evenly_spread(np.zeros(18), video, pts, 6, 0.5)) == [1, 4, 7, 10, 13, 16]


def test_a_box_that_is_suddenly_small_is_a_sign_for_learning_alone():
    count = 9
    box = np.tile([10.0, 10, 50, 50], (count, 1))
    box[4] = [10, 10, 20, 20]
    ones = np.ones(count)
    rows = Rows(np.zeros(count, int), np.arange(count), np.arange(count) / 1.0, box, ones, ones, ones)
    assert extents(rows).tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]
    (first,) = rank(rows._replace(box=box), share=0.1, purpose="learning")
    assert first.frame == 4
    assert "smaller or larger" in first.reason
    assert "smaller or larger" not in rank(rows, share=0.1)[0].reason


def test_an_unknown_purpose_is_named():
    with pytest.raises(ColocamError, match="purpose must be one of errors, learning, even, got 'lerning'"):
        find_purpose("lerning")

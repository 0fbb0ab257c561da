"""Doubt, its reasons, and the orders in which frames are listed."""

from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.boxes.iou import iou
from colocam.errors import ColocamError
from colocam.labels import rank
from colocam.labels.review import (
    LESS,
    PARTNERS,
    PURPOSES,
    USUAL,
    WEIGHTS,
    check,
    doubts,
    evenly_spread,
    jumps,
    queue,
    reason,
    shares,
    signs,
)
from colocam.labels.table import TableRows

BOX = (10, 10, 30, 30)
NONE = (np.nan,) * 4


def rows(*boxes, frame=None, score=0.6, presence=1.0, margin=1.0):
    count = len(boxes)
    score, presence, margin = (np.broadcast_to(np.asarray(value, float), count) for value in (score, presence, margin))
    frames, texts = np.arange(count) if frame is None else np.array(frame), [""] * count
    box, track = np.array(boxes, float).reshape(-1, 4), np.zeros(count, int)
    return TableRows(frames, frames / 25, texts, score, box, score, track, presence, margin, texts, texts, score, texts)


def moved(dx):
    return (BOX[0] + dx, BOX[1], BOX[2] + dx, BOX[3])


def by_row(tables):
    """Signs of each row, by the table in the text of the module: faint, rival, jump, classifier."""
    scores = np.concatenate([np.nan_to_num(table.score)[~np.isnan(table.box[:, 0])] for table in tables])
    usual = max(np.quantile(scores, USUAL), 1e-9) if scores.size else 1.0
    found = []
    for table in tables:
        frames = np.unique(table.frame).tolist()
        for row, box in enumerate(table.box):
            at = frames.index(table.frame[row])
            beside = [table.box[table.frame == frames[i]] for i in (at - 1, at + 1) if 0 <= i < len(frames)]
            presence = table.presence[row]
            if np.isnan(box[0]):
                jump = len(beside) == 2 and not any(np.isnan(others[:, 0]).all() for others in beside)
                found.append((0, 0, jump, presence))
            else:
                jump = 1 - np.mean([iou(box, others).max() for others in beside]) if beside else 0
                found.append((1 - np.nan_to_num(table.score[row]) / usual, 1 - table.margin[row], jump, 1 - presence))
    return np.clip(np.nan_to_num(np.array(found, float)), 0, 1)


numbers = st.one_of(st.just(np.nan), st.floats(0, 1))
boxes = st.one_of(st.just(NONE), st.tuples(*[st.integers(0, 9)] * 2).map(lambda c: (*c, c[0] + 9, c[1] + 9)))
tables = st.lists(st.tuples(boxes, numbers, numbers, st.floats(-1, 1), st.booleans()), min_size=1, max_size=9)


@settings(max_examples=100, deadline=None)
@given(st.lists(tables, min_size=1, max_size=2))
def test_signs_and_doubts_against_the_same_row_by_row(listed):
    given_tables = []
    for table in listed:
        box, score, presence, margin, new = zip(*table, strict=True)
        given_tables.append(rows(*box, score=score, presence=presence, margin=margin, frame=np.cumsum(new)))
    found, expected = signs(given_tables), by_row(given_tables)
    for column, name in enumerate(("faint", "rival", "jump", "classifier")):
        np.testing.assert_allclose(found[name], expected[:, column], atol=1e-9)
    sure = 1 - expected * [WEIGHTS[name] for name in ("faint", "rival", "jump", "classifier")]
    np.testing.assert_allclose(doubts(found), 1 - sure.prod(axis=1), atol=1e-9)


def test_reasons_in_words():
    none = dict.fromkeys(WEIGHTS, 0.0)
    assert reason(none | {"faint": 0.8, "jump": 0.1}, box=True) == "little heat inside the box"
    assert reason(none | {"jump": 0.9, "rival": 1.0}, box=True) == "another region is as likely; the box jumps"
    assert reason(none, box=True) == "no single reason"
    assert reason(none | {"classifier": 0.9}, box=False) == "no box, but the classifier finds the object"
    assert reason(none | {"jump": 1.0}, box=False) == "no box, but boxes before and after"


def test_a_frame_of_many_boxes_is_compared_by_its_first_ones():
    """Otherwise the time would grow with the square of the boxes in a frame."""
    far = [moved(100)] * PARTNERS
    assert jumps(rows(BOX, *far[1:], BOX, frame=[0, *[1] * PARTNERS]))[0] == 0
    assert jumps(rows(BOX, *far, BOX, frame=[0, *[1] * (PARTNERS + 1)]))[0] == 1


def by_hand(doubt, video, pts, most, apart):
    """:func:`queue`, looking at all frames for every choice."""
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
def test_the_queue_against_the_same_by_hand(doubt, cut, apart):
    count = len(doubt)
    video = (np.arange(count) >= cut).astype(np.int64)
    pts = np.arange(count) / 10
    assert queue(doubt, video, pts, count, apart) == by_hand(doubt, video, pts, count, apart)


def frames(*lengths):
    return np.repeat(np.arange(len(lengths)), lengths), np.concatenate([np.arange(length) / 10 for length in lengths])


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


def test_even_frames_are_the_middle_then_spread():
    assert shares(np.full(6, 9), 2).tolist() == [0, 1, 0, 0, 1, 0]
    assert shares(np.full(6, 9), 8).tolist() == [1, 2, 1, 1, 2, 1]
    video, pts = frames(9, 9)
    assert evenly_spread(np.zeros(18), video, pts, 2, 0.5) == [4, 13]
    six = evenly_spread(np.zeros(18), video, pts, 6, 0.5)
    assert six[:2] == [4, 13]
    assert sorted(six) == [1, 4, 7, 10, 13, 16]


def test_doubt_leads_to_errors_and_not_to_frames_to_learn_from():
    score = np.full(10, 0.9)
    score[8] = 0.1
    table = rows(*[BOX] * 10, score=score)
    assert [one.frame for one in rank([table], share=0.1)] == [8]
    assert [one.frame for one in rank([table], share=0.1, purpose="learning")] == [5]
    with pytest.raises(ColocamError, match="purpose must be one of errors, learning, got 'lerning'"):
        check(0.1, 0.5, "lerning")

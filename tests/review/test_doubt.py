import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.labels.review import PARTNERS, WEIGHTS, Rows, doubts, jumps, reason, signs

BOX = (10, 10, 30, 30)
NONE = (np.nan,) * 4


def rows(*boxes, video=None, frame=None, score=0.6, presence=1.0, margin=0.9):
    count = len(boxes)
    each = [np.broadcast_to(np.asarray(value, float), count) for value in (score, presence, margin)]
    frames = np.arange(count) if frame is None else np.array(frame)
    videos = np.zeros(count, int) if video is None else np.array(video)
    return Rows(videos, frames, frames / 25, np.array(boxes, float).reshape(-1, 4), *each)


def moved(dx):
    return (BOX[0] + dx, BOX[1], BOX[2] + dx, BOX[3])


def test_quiet_frames_raise_no_doubt():
    found = signs(rows(*[BOX] * 5, margin=1.0))
    assert all(not sign.any() for sign in found.values())
    assert not doubts(found).any()


@pytest.mark.parametrize(
    ("sign", "changed"),
    [("faint", {"score": 0.2}), ("rival", {"margin": 0.1}), ("classifier", {"presence": 0.2})],
)
def test_each_sign_alone_raises_the_doubt_of_its_frame(sign, changed):
    ((name, value),) = changed.items()
    usual = {"score": 0.6, "presence": 1.0, "margin": 1.0}
    odd = np.full(20, usual[name])
    odd[7] = value
    found = signs(rows(*[BOX] * 20, **{**usual, name: odd}))
    assert {name for name, values in found.items() if values.any()} == {sign}
    doubt = doubts(found)
    assert doubt.argmax() == 7
    assert doubt[7] == pytest.approx(WEIGHTS[sign] * found[sign][7])


def test_a_score_is_faint_by_what_the_model_usually_gives():
    """A pale model whose good boxes score 0.3 is not in doubt everywhere."""
    pale = np.full(20, 0.3)
    pale[3] = 0.1
    bright = 2 * pale
    np.testing.assert_allclose(
        signs(rows(*[BOX] * 20, score=pale))["faint"], signs(rows(*[BOX] * 20, score=bright))["faint"]
    )
    assert signs(rows(*[BOX] * 20, score=pale))["faint"][3] == pytest.approx(2 / 3)


def test_a_box_that_leaps_away_and_back():
    found = jumps(rows(BOX, BOX, moved(100), BOX, BOX))
    np.testing.assert_allclose(found, [0, 0.5, 1, 0.5, 0])


def test_jumps_are_those_of_the_listed_frames_of_the_same_video():
    table = rows(BOX, BOX, moved(100), moved(100), video=[0, 0, 1, 1], frame=[0, 5, 0, 5])
    assert not jumps(table).any()
    assert jumps(rows(BOX)).tolist() == [0]


def test_of_several_objects_each_is_compared_with_its_like():
    table = rows(BOX, moved(100), moved(100), BOX, BOX, moved(103), frame=[0, 0, 1, 1, 2, 2])
    found = jumps(table)
    assert found[[0, 1, 3, 4]].max() == 0
    assert 0 < found[2] < found[5] < 0.3
    lost = jumps(rows(BOX, moved(100), BOX, BOX, frame=[0, 0, 1, 2]))
    np.testing.assert_allclose(lost, [0, 1, 0, 0])


def test_a_missing_box():
    table = rows(BOX, NONE, BOX, NONE, NONE, score=[0.6, 0, 0.6, 0, 0], presence=[1, 0.9, 1, 0.9, 0.1], margin=np.nan)
    found = signs(table)
    assert found["jump"][[1, 3, 4]].tolist() == [1, 0, 0]
    np.testing.assert_allclose(found["classifier"], [0, 0.9, 0, 0.9, 0.1])
    assert not found["faint"].any()
    assert not found["rival"].any()


numbers = st.one_of(st.just(np.nan), st.floats(0, 1))
boxes = st.one_of(st.just(NONE), st.tuples(*[st.floats(0, 50)] * 2).map(lambda c: (c[0], c[1], c[0] + 9, c[1] + 9)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(boxes, st.floats(0, 1), numbers, st.floats(-1, 1), st.booleans()), min_size=1, max_size=9))
def test_signs_and_doubts_are_always_in_0_to_1(listed):
    found, score, presence, margin, new = zip(*listed, strict=True)
    table = rows(*found, score=score, presence=presence, margin=margin, frame=np.cumsum(new))
    every = signs(table)
    for values in (*every.values(), doubts(every)):
        assert values.shape == (len(listed),)
        assert ((values >= 0) & (values <= 1)).all()
    for name, weight in WEIGHTS.items():  # one sign more is never less doubt
        assert (doubts(every) >= weight * every[name] - 1e-12).all()


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

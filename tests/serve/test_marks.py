"""From actions to what each frame shows, against a plain loop over frames."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colocam.serve.marks import ACCEPTED, ASKED, BOX, FOLLOWS, FOLLOWS_NONE, NONE, PREDICTED, Action, objects_of

COUNT = 20
KEY = (ACCEPTED, NONE, BOX)
spans = st.tuples(st.integers(0, COUNT - 1), st.integers(1, COUNT)).map(
    lambda one: (one[0], min(COUNT, one[0] + one[1]))
)


@st.composite
def actions(draw):
    kind = draw(st.sampled_from(["box", "none", "accepted", "class", "clear", "follow"]))
    start, stop = draw(spans)
    if kind == "box":
        x, y = draw(st.integers(0, 30)), draw(st.integers(0, 30))
        return Action(kind=kind, start=start, stop=start + 1, box=[x, y, x + 10, y + 8])
    if kind == "follow":
        x = draw(st.integers(0, 30))
        return Action(kind=kind, start=start, stop=stop, boxes=[[x, at, x + 9, at + 9] for at in range(start, stop)])
    return Action(kind=kind, start=start, stop=stop, tag="dog" if kind == "class" else None)


def by_frame(listed, frames, cuts, absent):
    """What each frame shows, frame by frame."""
    shown = {}
    for frame in frames:
        state, box, tag = PREDICTED, None, ""
        for action in listed:
            if not action.start <= frame < action.stop:
                continue
            if action.kind == "class":
                tag = action.tag
            elif action.kind == "accepted":
                state, box = (state, box) if state in KEY else (ACCEPTED, None)
            elif action.kind == "follow":
                carried = action.boxes[sum(action.start <= one < frame for one in frames)]
                state, box = (state, box) if state in KEY else (FOLLOWS, carried)
            elif action.kind == "clear":
                state, box, tag = PREDICTED, None, ""
            else:
                state, box = (BOX, action.box) if action.kind == "box" else (NONE, None)
        shown[frame] = (state, box, tag)
    return interpolated(shown, frames, cuts, absent)


def interpolated(shown, frames, cuts, absent):
    filled = dict(shown)
    for frame, (state, _, tag) in shown.items():
        if state == FOLLOWS and frame in absent:
            filled[frame] = (ASKED, shown[frame][1], tag)
        if state != PREDICTED:
            continue
        before = [other for other in frames if other < frame and shown[other][0] in KEY]
        after = [other for other in frames if other > frame and shown[other][0] in KEY]
        if not before or not after or any(before[-1] < cut <= after[0] for cut in cuts):
            continue
        a, b = before[-1], after[0]
        if shown[a][0] == shown[b][0] == NONE:
            filled[frame] = (FOLLOWS_NONE, None, tag)
        elif shown[a][0] == shown[b][0] == BOX:
            part = (frame - a) / (b - a)
            box = [p + part * (q - p) for p, q in zip(shown[a][1], shown[b][1], strict=True)]
            asked = any(a < other < b for other in absent)
            if not asked or frame in absent:
                filled[frame] = (ASKED if asked else FOLLOWS, box, tag)
    return filled


@settings(max_examples=60)
@given(
    st.lists(actions(), max_size=8),
    st.sets(st.integers(1, COUNT - 1), max_size=3),
    st.sets(st.integers(0, COUNT - 1), max_size=4),
    st.sets(st.integers(0, COUNT - 1), max_size=3),
)
def test_marks_are_those_of_a_loop_over_frames(listed, cuts, missing, away):
    frames = np.array([frame for frame in range(COUNT) if frame not in missing], np.int64)
    there = lambda one: [box for frame, box in enumerate(one.boxes, one.start) if frame in frames]  # noqa: E731
    listed = [one.model_copy(update={"boxes": there(one)}) if one.kind == "follow" else one for one in listed]
    marks = objects_of(listed, frames, np.isin(frames, list(cuts)), np.isin(frames, list(away)))[1]
    expected = by_frame(listed, frames.tolist(), [cut for cut in cuts if cut in frames], away & set(frames.tolist()))
    for at, frame in enumerate(frames.tolist()):
        state, box, tag = expected[frame]
        assert (marks.state[at], marks.tag[at]) == (state, tag)
        np.testing.assert_allclose(marks.box[at], box if box is not None else [np.nan] * 4)


def test_what_was_accepted_is_kept_until_it_is_changed():
    frames, cuts = np.arange(6), np.zeros(6, bool)
    shown = [[1.0, 2.0, 3.0, 4.0], None, [5.0, 6.0, 7.0, 8.0]]
    accepted = Action(kind="accepted", start=1, stop=4, tag="cat", boxes=shown)
    marks = objects_of([accepted], frames, cuts)[1]
    assert marks.kept.tolist() == [False, True, True, True, False, False]
    np.testing.assert_array_equal(marks.box[1:4], [shown[0], [np.nan] * 4, shown[2]])
    assert marks.accepted_tag == ["", "cat", "cat", "cat", "", ""]
    drawn = Action(kind="box", start=3, stop=4, box=[0, 0, 9, 9])
    marks = objects_of([drawn, accepted, Action(kind="clear", start=1, stop=2)], frames, cuts)[1]
    assert marks.state.tolist() == [PREDICTED, PREDICTED, ACCEPTED, BOX, PREDICTED, PREDICTED]
    assert marks.kept.tolist() == [False, False, True, False, False, False]
    assert marks.box[3].tolist() == [0, 0, 9, 9]
    old = objects_of([Action(kind="accepted", start=0, stop=6)], frames, cuts)[1]  # events of the first version
    assert not old.kept.any()


@pytest.mark.parametrize("boxes", [None, [[0, 0, 9, 9], None]])
def test_a_box_is_carried_on_to_every_frame(boxes):
    with pytest.raises(ValueError, match="needs a box for each frame"):
        Action(kind="follow", start=1, stop=3, boxes=boxes)


def test_of_two_tracks_a_marked_box_counts_more_than_one_carried_on():
    drawn = Action(kind="box", start=1, stop=2, box=[0, 0, 9, 9], track=2)
    carried = Action(kind="follow", start=1, stop=3, boxes=[[1, 1, 8, 8], [2, 2, 9, 9]])
    moved = Action(kind="move", start=0, stop=4, track=2, into=1)
    marks = objects_of([drawn, carried, moved], np.arange(4), np.zeros(4, bool))[1]
    assert marks.state.tolist() == [PREDICTED, BOX, FOLLOWS, PREDICTED]
    assert marks.box[1:3].tolist() == [[0, 0, 9, 9], [2, 2, 9, 9]]

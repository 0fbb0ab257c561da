"""From actions to what each frame shows of each object, against a plain loop over frames."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from colocam.serve.marks import (
    ACCEPTED,
    ASKED,
    BOX,
    FOLLOWS,
    FOLLOWS_NONE,
    NONE,
    PREDICTED,
    Action,
    frame_states,
    objects_of,
)

COUNT, NUMBERS = 10, (1, 2)
KEY = (ACCEPTED, NONE, BOX)
BY_SURENESS = (PREDICTED, ASKED, FOLLOWS, FOLLOWS_NONE, *KEY)


@st.composite
def actions(draw):
    kind = draw(st.sampled_from(["box", "box", "none", "accepted", "class", "clear", "follow", "move"]))
    start, number, x = draw(st.integers(0, COUNT - 1)), draw(st.sampled_from(NUMBERS)), draw(st.integers(0, 30))
    stop = start + 1 if kind == "box" else draw(st.integers(start + 1, COUNT))
    more = {
        "box": {"box": [x, 4, x + 10, 12]},
        "class": {"tag": "dog"},
        "move": {"into": 3 - number},
        "follow": {"boxes": [[x, at, x + 9, at + 9] for at in range(start, stop)]},
    }
    return Action(kind=kind, start=start, stop=stop, track=number, **more.get(kind, {}))


def by_frame(listed, frames, cuts, absent):
    """Of each object and frame, before anything follows: state, box, class, whether the model's object is this, and
    whether it followed before tracks were split or joined.
    """
    cells = {(number, frame): [PREDICTED, None, "", number == 1, False] for number in NUMBERS for frame in frames}
    for action in listed:
        for number in (action.track, action.into) if action.kind == "move" else ():
            own = {frame: cells[number, frame] for frame in frames}
            for frame, (state, box) in followed(own, cuts, absent).items():
                stated = own[frame][0] == FOLLOWS and not own[frame][4]
                own[frame][:2] = FOLLOWS if state == ASKED else state, box
                own[frame][4] = own[frame][0] in {FOLLOWS, FOLLOWS_NONE} and not stated
        for at, frame in enumerate(frame for frame in frames if action.start <= frame < action.stop):
            cell = cells[action.track, frame]
            if action.kind == "move":
                other = cells[action.into, frame]
                takes = other[0] == PREDICTED != cell[0] or (
                    other[0] in {NONE, FOLLOWS, FOLLOWS_NONE} and cell[0] in {ACCEPTED, BOX}
                )
                takes = takes or (other[0] == FOLLOWS_NONE and cell[0] == FOLLOWS)
                other[2] = (cell[2] if takes else "") or other[2] or cell[2]
                if takes:
                    other[:2], other[4] = cell[:2], cell[4]
                other[3] = other[3] or cell[3]
                cells[action.track, frame] = [PREDICTED, None, "", False, False]
            elif action.kind == "class":
                cell[2] = action.tag
            elif action.kind in {"accepted", "follow"}:
                if cell[0] not in KEY:
                    cell[:2] = [ACCEPTED, None] if action.kind == "accepted" else [FOLLOWS, action.boxes[at]]
                    cell[4] = False
            else:
                cell[:2] = [{"box": BOX, "none": NONE, "clear": PREDICTED}[action.kind], action.box]
                cell[4] = False
                if action.kind == "clear" and cell[3]:
                    cell[2] = ""
    return cells


def followed(own, cuts, absent):
    """State and box of each frame of one object, once frames between marked ones follow."""
    found = {}
    for frame, (state, box, _, main, loose) in own.items():
        found[frame] = ASKED if state == FOLLOWS and frame in absent else state, box
        before = [other for other in own if other < frame and own[other][0] in KEY]
        after = [other for other in own if other > frame and own[other][0] in KEY]
        if not (state == PREDICTED or loose) or not before or not after:
            continue
        a, b = before[-1], after[0]
        if any(a < cut <= b for cut in cuts):
            continue
        if own[a][0] == own[b][0] != ACCEPTED:
            found[frame] = PREDICTED, None
        if own[a][0] == own[b][0] == NONE:
            found[frame] = FOLLOWS_NONE, None
        elif own[a][0] == own[b][0] == BOX:
            part = (frame - a) / (b - a)
            between = [p + part * (q - p) for p, q in zip(own[a][1], own[b][1], strict=True)]
            # It may have left and come back: the prediction stays, where there is one.
            if frame in absent or not main or not any(a < other < b for other in absent):
                found[frame] = ASKED if frame in absent else FOLLOWS, between
    return found


SECOND = [Action(kind="box", start=at, stop=at + 1, track=2, box=[at, 0, at + 5, 5]) for at in (2, 8)]


@settings(max_examples=400)
@example(SECOND, set(), set(), {4, 5})  # where no prediction stands a box follows, beside frames without an object
@given(
    st.lists(actions(), min_size=2, max_size=8),
    st.sets(st.integers(1, COUNT - 1), max_size=3),
    st.sets(st.integers(0, COUNT - 1), max_size=2),
    st.sets(st.integers(0, COUNT - 1), max_size=3),
)
def test_objects_are_those_of_a_loop_over_frames(listed, cuts, missing, away):
    frames = [frame for frame in range(COUNT) if frame not in missing]
    there = lambda one: [box for frame, box in enumerate(one.boxes, one.start) if frame in frames]  # noqa: E731
    listed = [one.model_copy(update={"boxes": there(one)}) if one.kind == "follow" else one for one in listed]
    objects = objects_of(listed, np.array(frames), np.isin(frames, list(cuts)), np.isin(frames, list(away)))
    cells = by_frame(listed, frames, cuts & set(frames), away & set(frames))
    states = {frame: [] for frame in frames}
    for number in NUMBERS:
        own = {frame: cells[number, frame] for frame in frames}
        if number not in objects:
            assert not any(cell[0] or cell[3] for cell in own.values())
            continue
        marks, shown = objects[number], followed(own, cuts & set(frames), away & set(frames))
        assert marks.state.tolist() == [state for state, _ in shown.values()]
        assert marks.tag == [cell[2] for cell in own.values()]
        assert marks.main.tolist() == [cell[3] for cell in own.values()]
        np.testing.assert_allclose(marks.box, [box or [np.nan] * 4 for _, box in shown.values()])
        for frame, (state, _) in shown.items():
            states[frame] += [state] if state or own[frame][3] else []
    # A frame is as sure as its least sure object.
    expected = [min(each, key=BY_SURENESS.index) for each in states.values()]
    assert frame_states(objects.values()).tolist() == expected


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

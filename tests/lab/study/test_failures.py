"""Failures by rule, on frames made for each of them."""

import numpy as np

from lab.study.examples import EMPTY, SEVERAL, SHIFT, WRONG, find_failures

NAN = float("nan")
NONE = [NAN] * 4


def boxes(*rows):
    return np.array(rows, np.float32).reshape(-1, 4)


def find(predicted, ious, cam_ious, true, clips):
    return find_failures(np.array(predicted, float), np.array(ious), np.array(cam_ious), true, np.array(clips))


def test_each_rule_finds_its_frame_and_no_other():
    left, right, far = [0, 0, 10, 10], [12, 0, 22, 10], [50, 50, 60, 60]
    predicted = [
        [0, 0, 22, 10],  # around two objects
        left,  # one of two: right
        far,  # where nothing is, and the CAM is there, too
        far,  # the CAM was right: the decoder's own mistake
        left,  # on an empty frame
        NONE,  # rightly nothing
        NONE,  # missed
    ]
    ious = [0.45, 1.0, 0.0, 0.0, NAN, NAN, 0.0]
    cams = [0.4, 1.0, 0.05, 0.8, NAN, NAN, 0.6]
    true = [boxes(left, right), boxes(left, right), boxes(left), boxes(left), boxes(), boxes(), boxes(left)]
    found = find(predicted, ious, cams, true, range(7))
    assert found == {SEVERAL: [0], WRONG: [2], EMPTY: [4], SHIFT: []}


def test_half_of_two_objects_must_be_inside():
    true = boxes([0, 0, 10, 10], [20, 0, 30, 10])
    for reach, several in ((24, []), (25, [0])):
        assert find([[0, 0, reach, 10]], [0.4], [0.9], [true], [0])[SEVERAL] == several


def test_a_shift_is_between_neighbours_of_one_clip_whose_object_stays():
    here, there = [0, 0, 10, 10], [20, 20, 30, 30]
    still = boxes([0, 0, 10, 10])
    moved = boxes([20, 20, 30, 30])
    assert find([here, there], [1.0, 0.0], [1.0, 0.5], [still, still], [0, 0])[SHIFT] == [1]
    assert find([here, there], [1.0, 0.0], [1.0, 0.5], [still, still], [0, 1])[SHIFT] == []
    assert find([here, there], [1.0, 1.0], [1.0, 0.5], [still, moved], [0, 0])[SHIFT] == []
    assert find([here, NONE], [1.0, 0.0], [1.0, 0.5], [still, still], [0, 0])[SHIFT] == []
    assert find([here, there], [NAN, 0.0], [NAN, 0.5], [boxes(), still], [0, 0])[SHIFT] == []

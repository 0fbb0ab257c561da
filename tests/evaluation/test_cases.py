"""Examples for the report are chosen by rule; test_run_evaluation.py reads the file of them."""

import numpy as np
import pytest

from colocam.evaluation.cases import choose_cases

NAN = float("nan")


@pytest.mark.parametrize(
    ("overlaps", "classes", "expected"),
    [
        pytest.param(
            [0.1, 0.9, 0.5, 0.3, 0.8, 0.2],
            [0, 0, 0, 1, 1, 1],
            [(1, "best"), (4, "best"), (2, "typical"), (3, "typical"), (0, "worst"), (5, "worst")],
            id="in the order of the classes",
        ),
        pytest.param([0.4], [0], [(0, "best")], id="once"),
        pytest.param([0.4, 0.2], [3, 3], [(0, "best"), (1, "worst")], id="under its best group"),
        pytest.param([NAN, 0.3], [0, 1], [(1, "best"), (0, "empty")], id="nothing of a class"),
        pytest.param([], [], [], id="nothing"),
    ],
)
def test_best_typical_and_worst_of_each_class(overlaps, classes, expected):
    assert choose_cases(np.array(overlaps), np.array(classes), np.arange(len(overlaps))) == expected


def test_empty_frames_come_from_different_clips_and_are_few():
    clips = np.array([0, 7, 5, 5, 6, 7, 8, 9, 9, 4, 3, 2, 1])
    found = choose_cases(np.array([0.5] + [NAN] * 12), np.zeros(13, np.int64), clips)
    assert found == [(0, "best"), (1, "empty"), (2, "empty"), (4, "empty"), (6, "empty")]

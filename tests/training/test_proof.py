"""The proof of learning: by video, with an interval, and honest about few videos."""

from math import isnan

import numpy as np
import pytest

from colocam.training.learning.proof import held_out_count, prove


def proof_of(differences, corrected, frames=4, changed=True):
    """A proof by videos whose IoU rises by these differences in each of their frames."""
    rng, count = np.random.default_rng(1), len(differences)
    video = np.repeat(np.arange(count), frames)
    before = rng.uniform(0.3, 0.7, count * frames)
    return prove(before, before + np.repeat(differences, frames), video, corrected, changed=changed)


def test_shifts_without_meaning_prove_nothing():
    found = proof_of([0.03, -0.02, 0.01, -0.01], corrected=20, frames=8)
    assert found.low < 0 < found.high
    assert (found.verdict, found.missing) == ("unclear", 2)
    assert found.line().endswith("which includes zero: correct 2 more videos")


def test_a_gain_in_all_videos_is_one():
    found = proof_of([0.1, 0.06, 0.12], corrected=6)
    assert found.verdict == "better"
    assert found.after - found.before == pytest.approx(0.28 / 3)
    assert found.low >= 0.06 - 1e-9
    assert found.high <= 0.12 + 1e-9
    assert "3 held-out videos, +0.093 IoU (+0.060 to +0.120)" in found.line()


def test_many_frames_of_one_video_are_one_video():
    found = prove(np.zeros(400), np.ones(400), np.zeros(400, np.int64), 4, changed=True)
    assert (found.videos, found.corrections, found.verdict, found.missing) == (1, 400, "too few", 2)
    assert isnan(found.low)
    assert found.line() == "not enough yet to say whether the new model is better: correct 2 more videos"
    # A video with many frames counts as much as one with few.
    sizes = [1, 1, 98]
    mixed = prove(np.zeros(100), np.repeat([0.3, 0.3, 0.0], sizes), np.repeat([0, 1, 2], sizes), 9, changed=True)
    assert mixed.after == pytest.approx(0.2)


def test_nothing_kept_and_nothing_held_out():
    assert proof_of([0.0] * 3, 6, changed=False).verdict == "unchanged"
    nothing = prove(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), 1, changed=True)
    assert (nothing.verdict, nothing.missing) == ("too few", 5)
    assert nothing.as_json()["before"] is None


def test_an_interval_agrees_with_its_formula_for_many_videos():
    differences = np.random.default_rng(3).normal(0.02, 0.05, 200)
    found = proof_of(differences, corrected=1000)
    half = 1.96 * differences.std() / np.sqrt(200)
    assert (found.low, found.high) == pytest.approx((differences.mean() - half, differences.mean() + half), abs=0.001)


@pytest.mark.parametrize(("videos", "held"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (6, 3), (15, 3), (30, 6)])
def test_half_of_few_videos_and_a_fifth_of_many_are_held_out(videos, held):
    assert held_out_count(videos) == held

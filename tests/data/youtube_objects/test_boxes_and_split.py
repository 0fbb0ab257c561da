"""Mending of boxes; the validation split as a property."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.data.youtube_objects import correct_boxes, sample_validation
from colocam.data.youtube_objects.layouts import Notes, Shot


@pytest.mark.parametrize("corners", [(4, 5, 4, 9), (4, 5, 9, 5), (40, 5, 50, 9), (float("nan"), 1, 2, 3)])
def test_boxes_without_an_area_are_left_out_and_noted(corners):
    notes = Notes()
    assert correct_boxes(np.array([corners]), (32, 24), Path("f.jpg"), notes, first=0) == []
    assert any("boxes left out" in note for note in notes.lines())


def shots_of(videos):
    """Shots of ``{(tag, number): (split, how many shots, labeled)}``."""
    shots = []
    for (tag, number), (split, count, labeled) in videos.items():
        for place in range(count):
            frame = Path(f"{tag}-{number}-{place}.jpg")
            labels = {frame: np.ones((1, 4))} if labeled and place == 0 else {}
            shots.append(Shot(f"{tag}/{number:04d}/{place:03d}", tag, f"{tag}/{number:04d}", split, (frame,), labels))
    return shots


collections = st.dictionaries(
    st.tuples(st.sampled_from(["cat", "dog", "train"]), st.integers(1, 30)),
    st.tuples(st.sampled_from(["train", "train", "test"]), st.integers(1, 3), st.booleans()),
    min_size=1,
    max_size=25,
)


@given(collections, st.integers(0, 5), st.integers(0, 2**31))
def test_the_drawn_split(videos, count, seed):
    shots = shots_of(videos)
    drawn = sample_validation(shots, count, seed, Notes())
    assert drawn == sample_validation(shots, count, seed, Notes())
    assert [shot.name for shot in drawn] == [shot.name for shot in shots]
    splits = {}
    for before, after in zip(shots, drawn, strict=True):
        assert splits.setdefault(after.video, after.split) == after.split  # by video
        assert (before.split == "test") == (after.split == "test")
    for tag in {shot.tag for shot in shots}:
        official = {shot.video: False for shot in shots if shot.tag == tag and shot.split == "train"}
        official |= {shot.video: True for shot in shots if shot.video in official and shot.labels}
        val = {video for video in official if splits[video] == "val"}
        assert len(val) == min(count, max(len(official) - 1, 0))
        assert sum(official[video] for video in val) == min(len(val), sum(official.values()))  # boxes come first


def test_too_few_videos_are_noted():
    notes = Notes()
    drawn = sample_validation(shots_of({("cat", 1): ("train", 1, True), ("cat", 2): ("train", 1, True)}), 5, 0, notes)
    assert sorted(shot.split for shot in drawn) == ["train", "val"]
    assert notes.lines() == ["1 classes with too few training videos for 5 of validation (first: cat, 2)"]

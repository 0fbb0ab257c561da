"""Mending of boxes; the validation split as a property."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colocam.data.youtube_objects import correct_boxes, listed_validation, sample_validation
from colocam.data.youtube_objects.shots import Notes, Shot


def mended(*corners, first=0, size=(32, 24), **options):
    notes = Notes()
    boxes = correct_boxes(np.array(corners, float).reshape(-1, 4), size, Path("f.jpg"), notes, first=first, **options)
    return boxes, notes.lines()


def test_whole_boxes_stay_as_they_are():
    assert mended((0, 0, 31, 23), (1.5, 2, 3, 4.25)) == ([(0, 0, 31, 23), (1.5, 2, 3, 4.25)], [])
    assert mended() == ([], [])


def test_coordinates_from_one():
    """The last pixel of a frame of 32×24 is 32, 24 there, and 31, 23 from 0."""
    assert mended((1, 1, 32, 24), first=1) == ([(0, 0, 31, 23)], [])


@pytest.mark.parametrize(
    ("corners", "box", "note"),
    [
        ((20, 5, 4, 18), (4, 5, 20, 18), "1 boxes with swapped corners put in order (first: f.jpg)"),
        ((4, 18, 20, 5), (4, 5, 20, 18), "1 boxes with swapped corners put in order (first: f.jpg)"),
        ((-3, -0.5, 4, 5), (0, 0, 4, 5), "1 boxes with negative corners clipped to 0 (first: f.jpg)"),
        (
            (3, 4, 32, 23.5),
            (3, 4, 31, 23),
            "1 boxes that pass the right or bottom edge clipped to the last pixel (first: f.jpg)",
        ),
    ],
)
def test_broken_boxes_are_mended_and_noted(corners, box, note):
    assert mended(corners) == ([box], [note])


@pytest.mark.parametrize("corners", [(4, 5, 4, 9), (4, 5, 9, 5), (40, 5, 50, 9), (float("nan"), 1, 2, 3)])
def test_boxes_without_an_area_are_left_out_and_noted(corners):
    boxes, notes = mended(corners)
    assert boxes == []
    assert any("boxes left out" in note for note in notes)


def test_boxes_of_a_frame_that_was_stored_smaller():
    boxes, notes = mended((20, 20, 40, 40), drawn_on=(64, 48))
    assert boxes == [(10, 10, 20, 20)]
    assert "boxes scaled" in notes[0]
    assert mended((20, 2, 30, 4), drawn_on=(32, 24)) == ([(20, 2, 30, 4)], [])


numbers = st.floats(-50, 80, allow_nan=False)


@given(st.tuples(numbers, numbers, numbers, numbers))
def test_every_mended_box_lies_in_the_frame(corners):
    for box in mended(corners)[0]:
        assert 0 <= box.x1 < box.x2 <= 31
        assert 0 <= box.y1 < box.y2 <= 23


def shots_of(videos):
    """Shots of ``{(tag, number): (split, how many shots, labelled)}``."""
    shots = []
    for (tag, number), (split, count, labelled) in videos.items():
        for place in range(count):
            frame = Path(f"{tag}-{number}-{place}.jpg")
            labels = {frame: np.ones((1, 4))} if labelled and place == 0 else {}
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


def test_seeds_and_other_classes():
    videos = {("cat", number): ("train", 1, True) for number in range(1, 21)}
    alone = sample_validation(shots_of(videos), 5, 3, Notes())
    more = {("bird", number): ("train", 2, True) for number in range(1, 9)} | videos
    both = sample_validation(shots_of(more), 5, 3, Notes())
    chosen = {shot.video for shot in alone if shot.split == "val"}
    assert {shot.video for shot in both if shot.split == "val" and shot.tag == "cat"} == chosen
    draws = Counter(
        shot.video
        for seed in range(40)
        for shot in sample_validation(shots_of(videos), 5, seed, Notes())
        if shot.split == "val"
    )
    assert sum(draws.values()) == 200
    assert len(draws) == 20  # every video comes up in some draw
    assert max(draws.values()) < 25


def test_too_few_videos_are_noted():
    notes = Notes()
    drawn = sample_validation(shots_of({("cat", 1): ("train", 1, True), ("cat", 2): ("train", 1, True)}), 5, 0, notes)
    assert sorted(shot.split for shot in drawn) == ["train", "val"]
    assert notes.lines() == ["1 classes with too few training videos for 5 of validation (first: cat, 2)"]


def test_given_videos():
    notes = Notes()
    videos = {("cat", n): ("test" if n == 4 else "train", 2, True) for n in (1, 2, 3, 4)}
    shots = listed_validation(shots_of(videos), {("cat", 2), ("cat", 4), ("dog", 7)}, notes)
    assert {(s.video, s.split) for s in shots} == {
        *(("cat/0001", "train"), ("cat/0002", "val"), ("cat/0003", "train"), ("cat/0004", "test")),
    }
    assert notes.lines() == [
        "1 videos of the validation list that are not there (first: dog, 7)",
        "1 videos of the validation list that are test videos and stay in test (first: cat/0004)",
    ]

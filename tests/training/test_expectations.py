"""What training says of too few videos, and of a class that is not learned."""

from pathlib import Path

import pytest

from colocam.config import load_config
from colocam.data.catalogue import Catalogue
from colocam.training.train import EXPECTED, FEW, few_videos, near_chance
from colocam.types import Clip
from tests.helpers.csv_tables import csv_rows

SCRATCH, PRETRAINED = load_config("demo"), load_config("resnet50")


def catalogue(**videos):
    """``owl=3``: three shots of two videos to learn from, the first for validation, and 20 for the test."""
    clips = [
        Clip(f"{tag}/{number}", tag, "val" if number == 0 else "train", Path(), video=f"{tag}/{number > 0}")
        for tag, count in videos.items()
        for number in range(count)
    ]
    clips += [Clip(f"{tag}/t{n}", tag, "test", Path(), video=f"{tag}/t{n}") for tag in videos for n in range(20)]
    return Catalogue(tuple(clips), tuple(sorted(videos)))


def test_classes_with_few_videos_are_named():
    assert few_videos(catalogue(owl=10, cat=12), SCRATCH) is None
    told = few_videos(catalogue(owl=3, cat=12, fox=9), SCRATCH)
    assert told.startswith("warning: 2 of 3 tags have fewer than 10 videos or shots (owl 3, fox 9); on real videos")
    assert "2 of each gave 48 % right boxes and 42 % right classes, 10 gave 75 and 74 %" in told
    assert "5 of each gave 73 % right boxes" in few_videos(catalogue(owl=4, cat=12), SCRATCH)
    assert "leave --preset out" in told
    assert "preset" not in few_videos(catalogue(owl=3, cat=12), PRETRAINED)
    many = few_videos(catalogue(**{f"tag{n}": 2 for n in range(8)}), SCRATCH)
    assert "tag4 2 and 3 more)" in many


@pytest.mark.parametrize(("classes", "bound"), [(2, 0.625), (4, 0.4375), (10, 0.325)])
def test_a_class_near_chance_is_told_with_its_accuracy(classes, bound):
    assert near_chance(bound + 0.01, classes, SCRATCH) is None
    told = near_chance(bound - 0.01, classes, SCRATCH)
    assert f"{100 * bound - 1:.0f} % of the frames of held-out videos, where chance is {100 / classes:.0f} %" in told


def test_what_to_expect_is_what_the_study_measured():
    study = Path(__file__).parents[2] / "lab/notes/studies/youtube-objects-frames/videos/table.csv"
    measured = [
        (int(row["clips of each class"].split()[0]), round(float(row["tags-only"]), 1), round(float(row["class"]), 1))
        for row in csv_rows(study)
    ]
    assert [tuple(point) for point in EXPECTED] == [row for row in measured if row[0] <= FEW]

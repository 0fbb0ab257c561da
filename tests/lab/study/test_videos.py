"""The study of the number of videos: which videos it takes, and that its table is what was evaluated."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from colocam.data.catalogue import Catalogue
from colocam.types import Clip
from lab.study.videos import chosen_clips
from tests.helpers.csv_tables import csv_rows


def catalogue(**videos):
    """Two clips of each video; the first three videos of a tag are for validation, and two more for the test."""

    def clips(tag, name, split):
        return [Clip(f"{tag}/{name}-{part}", tag, split, Path(), video=f"{tag}/{name}") for part in range(2)]

    found = [
        clip
        for tag, count in videos.items()
        for number in range(count)
        for clip in clips(tag, number, "val" if number < 3 else "train")
    ]
    found += [clip for tag in videos for number in range(2) for clip in clips(tag, f"test-{number}", "test")]
    return Catalogue(tuple(found), tuple(sorted(videos)))


def videos_of(clips, tag, *splits):
    return {clip.video for clip in clips if clip.tag == tag and clip.split in splits}


@pytest.mark.parametrize("seed", range(3))
def test_so_many_clips_of_each_tag_are_taken(seed):
    every = catalogue(cat=30, owl=7)
    before: set[str] = set()
    for count, held in ((2, 1), (5, 1), (10, 2), (20, 4)):
        clips = chosen_clips(every, count, 0.2, seed)
        assert len([clip for clip in clips if clip.tag == "cat" and clip.split != "test"]) == count
        assert len([clip for clip in clips if clip.tag == "owl" and clip.split != "test"]) == min(count, 14)
        assert len(videos_of(clips, "cat", "val")) == held
        for tag in ("cat", "owl"):
            assert not videos_of(clips, tag, "train") & videos_of(clips, tag, "val")
            assert videos_of(clips, tag, "test") == {f"{tag}/test-0", f"{tag}/test-1"}
        names = {clip.name for clip in clips}
        assert before <= names  # more clips are more, not others
        before = names
    assert chosen_clips(every, 5, 0.2, seed) == chosen_clips(every, 5, 0.2, seed)
    assert chosen_clips(every, 5, 0.2, seed) != chosen_clips(every, 5, 0.2, seed + 1)


def test_the_table_is_what_was_trained_on_fewer_videos_and_evaluated(smoked):
    folder = smoked("videos")
    ET.fromstring((folder / "figure.svg").read_text(encoding="utf-8"))
    said = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert said["cells"] == "2 of 2"
    rows = csv_rows(folder / "table.csv")
    assert [row["clips of each class"] for row in rows] == ["2 clips", "all clips"]
    work = folder.parent / "work"
    for row, name in zip(rows, ("2-clips", "all-clips"), strict=True):
        (path,) = (work / "cells").glob(f"colo-cam-{name}-*/result.json")
        result = json.loads(path.read_text(encoding="utf-8"))
        assert float(row["tags-only"]) == pytest.approx(result["corloc"]["tags-only"]["average"])
        assert float(row["class"]) == pytest.approx(result["classification"])
        assert float(row["presence, ROC AUC"]) == pytest.approx(100 * result["presence"]["roc_auc"])
        trained = json.loads((path.parent / "data.json").read_text(encoding="utf-8"))
        used = {clip["video"] for clip in trained["clips"] if clip["split"] != "test"}
        assert len(used) == 3 * (2 if name == "2-clips" else 3)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "Not in the paper." in text
    assert "All clips: 3–3 of each class" in text

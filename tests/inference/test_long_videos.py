"""Long videos that are divided at cuts and joined have the bytes of videos that were labeled at once."""

import re
from dataclasses import replace
from functools import partial

import pytest

from colocam.config.options import Options
from colocam.inference.engine import Model
from colocam.inference.parts import Parts
from colocam.inference.task import FrameRange, LocalizeVideo, LostError, Worker, attempt, result_of
from colocam.inference.videos import Video, stored_source
from colocam.labels.label_folder import part_path
from colocam.video.frame_choice import ALL


def prepared(model, labels, video, long, **options):
    """A worker, and the task that labels a video."""
    asked = Model(model, Options(**options))
    return Worker(asked.load()[0]), LocalizeVideo(
        Video(stored_source(video), "video"), Parts(labels, long), asked.key(ALL)
    )


def ranges_of(result):
    return [FrameRange(*one) for one in result.get("ranges", [])]


def label(worker, task):
    """The bytes of the part of a video, and the number of ranges it was divided into; the last range comes first."""
    result, count = task(worker), 0
    while ranges := ranges_of(result):
        count += len(ranges)
        for one in reversed(ranges):
            replace(task, range=one)(worker)
        result = task(worker)
    return part_path(task.sink.labels, result["key"]).read_bytes(), count


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"instances": True, "presence": 0.4, "color_mean": "clip", "focus": True},
        {"smooth": "online", "presence": 0.4},
        {"smooth": "none"},
    ],
    ids=["offline", "instances", "online", "none"],
)
def test_ranges_give_the_same_bytes(model, video_of_shots, tmp_path, monkeypatch, options):
    monkeypatch.setattr("colocam.labels.table._ROWS_AT_ONCE", 16)  # tables of several row groups
    whole, none = label(*prepared(model, tmp_path / "whole", video_of_shots, 10_000, **options))
    joined, found = label(*prepared(model, tmp_path / "joined", video_of_shots, 30, **options))
    assert none == 0
    assert found >= 3
    assert joined == whole
    assert not any(path.is_file() for path in (tmp_path / "joined" / "ranges").rglob("*"))


def test_a_range_that_is_damaged_is_labeled_again(model, video_of_shots, tmp_path):
    worker, task = prepared(model, tmp_path / "labels", video_of_shots, 60, smooth="none")
    for one in ranges_of(task(worker)):
        replace(task, range=one)(worker)
    damaged = max((tmp_path / "labels" / "ranges").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-5])
    again = ranges_of(task(worker))
    assert [f"{one.begin}.parquet" for one in again] == [damaged.name]
    replace(task, range=again[0])(worker)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    with pytest.raises(LostError, match=re.escape(f"{damaged}: ")):  # only its checksum tells
        result_of(attempt(partial(task, worker)))
    assert ranges_of(task(worker)) == again

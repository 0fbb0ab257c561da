"""Long films that are divided at cuts and joined have the bytes of films that were labelled at once."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from colocam.inference.engine import Model
from colocam.inference.parts import FrameRange, WritePart
from colocam.inference.videos import Video
from colocam.inference.worker import LostError, Worker, attempt, result_of
from colocam.labels.label_folder import part_path
from colocam.labels.table import join_tables
from colocam.video.frame_choice import ALL


def prepared(model, labels, video, long, **options):
    """A worker, and the task that labels a video."""
    asked = Model(model, options=options)
    return Worker(asked.load()[0]), WritePart(Video("film", video), labels, asked.key(ALL), ALL, long=long)


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
    return part_path(task.labels, result["key"]).read_bytes(), count


@pytest.mark.parametrize(
    ("options", "ranges"),
    [
        ({}, 3),
        ({"instances": True, "presence": 0.4, "color_mean": "clip", "focus": True}, 3),
        ({"smooth": "online", "presence": 0.4}, 3),
        ({"smooth": "none"}, 3),
    ],
    ids=["offline", "instances", "online", "none"],
)
def test_ranges_give_the_same_bytes(model, film_of_shots, tmp_path, options, ranges):
    whole, none = label(*prepared(model, tmp_path / "whole", film_of_shots, 10_000, **options))
    joined, found = label(*prepared(model, tmp_path / "joined", film_of_shots, 30, **options))
    assert none == 0
    assert found >= ranges
    assert joined == whole
    assert not any(path.is_file() for path in (tmp_path / "joined" / "ranges").rglob("*"))


def test_a_range_that_is_damaged_is_labelled_again(model, film_of_shots, tmp_path):
    worker, task = prepared(model, tmp_path / "labels", film_of_shots, 60, smooth="none")
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


def test_joined_tables_have_the_row_groups_of_one(tmp_path):
    """Tables of more rows than a row group has, whose tracks are counted from 0."""
    rng = np.random.default_rng(0)
    columns = {
        "frame": pa.array(np.arange(10_000)),
        "class": pa.array(rng.choice(["cat", "owl"], 10_000)),
        "track": pa.array([None if index % 7 == 0 else index // 100 for index in range(10_000)], pa.int64()),
    }
    whole = pa.table(columns)
    with pq.ParquetWriter(tmp_path / "whole.parquet", whole.schema, write_page_checksum=True) as writer:
        for begin in range(0, 10_000, 4096):
            writer.write_table(whole.slice(begin, 4096).combine_chunks())
        writer.add_key_value_metadata({"name": "text"})
    parts = []
    for begin, end in ((0, 100), (100, 5000), (5000, 10_000)):
        part = whole.slice(begin, end - begin).to_pydict()
        part["track"] = [None if track is None else track - begin // 100 for track in part["track"]]
        pq.write_table(pa.table(part, schema=whole.schema), tmp_path / f"{begin}.parquet")
        parts.append((tmp_path / f"{begin}.parquet", begin // 100))
    join_tables(parts, tmp_path / "joined.parquet", {"name": "text"})
    assert (tmp_path / "joined.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()

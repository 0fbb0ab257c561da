"""Long films that are divided at cuts and joined have the bytes of films that were labelled at once."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from colocam.corpus.films import Film
from colocam.corpus.items import Item, Split
from colocam.corpus.labelling import LabelSettings
from colocam.corpus.part_files import part_path
from colocam.corpus.worker import attempt

from colocam.labels.table import join_tables


def label(settings: LabelSettings, film):
    """The bytes of the part of a film, and the number of ranges it was divided into; the last range comes first."""
    labeller, item = settings(0), Item(Film("film", film))
    result, ranges = labeller(item, [].append), 0
    while isinstance(result, Split):
        ranges += len(result.ranges)
        for one in reversed(result.ranges):
            labeller(Item(item.film, one), [].append)
        result = labeller(item, [].append)
    return part_path(settings.labels, result.key).read_bytes(), ranges


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
    def settings(name, long):
        return LabelSettings(model, tmp_path / name, tmp_path / "memory", options=options, long=long)

    whole, none = label(settings("whole", 10_000), film_of_shots)
    joined, found = label(settings("joined", 30), film_of_shots)
    assert none == 0
    assert found >= ranges
    assert joined == whole
    assert not any(path.is_file() for path in (tmp_path / "joined" / "ranges").rglob("*"))


def test_a_range_that_is_damaged_is_labelled_again(model, film_of_shots, tmp_path):
    settings = LabelSettings(model, tmp_path / "labels", tmp_path / "memory", options={"smooth": "none"}, long=60)
    labeller, item = settings(0), Item(Film("film", film_of_shots))
    first = labeller(item, [].append)
    for one in first.ranges:
        labeller(Item(item.film, one), [].append)
    damaged = max((tmp_path / "labels" / "ranges").rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-5])
    again = labeller(item, [].append)
    assert [f"{one.begin}.parquet" for one in again.ranges] == [damaged.name]
    labeller(Item(item.film, *again.ranges), [].append)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:60] + bytes([content[60] ^ 1]) + content[61:])
    told = attempt(labeller, item, [].append)  # only its checksum tells
    assert told.again
    assert f"{damaged}: " in told.reason
    assert labeller(item, [].append) == again


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

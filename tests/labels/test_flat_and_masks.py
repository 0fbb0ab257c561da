"""Tables that can be exported again without a change, and masks as pictures."""

import numpy as np
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from pyarrow.csv import ConvertOptions, read_csv

from colocam.boxes import rle
from colocam.labels import export
from colocam.labels.labeled_videos import read_videos
from tests.helpers.label_scenes import exported, row, scenes, write_table


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), kind=st.sampled_from(["csv", "parquet"]))
def test_a_table_comes_back_unchanged(data, kind):
    with exported(data.draw(scenes(tracked=data.draw(st.booleans()))), kind) as (out, video):
        (again,) = read_videos([out / f"clip one.{kind}"], [])
    for column, other in zip(again.rows, video.rows, strict=True):
        np.testing.assert_array_equal(column, other)
    assert (again.name, again.source) == (video.name, video.source)


def test_columns_of_both_tables():
    mask = rle.encode(np.eye(71, 97, dtype=bool))
    rows = [
        row(0, (1 / 3, 2, 3, 4), "猫", 7, probability=0.1, presence=0.25, margin=0.125, score=0.5, mask=mask),
        row(1, tag="猫"),
    ]
    wanted = [
        ["clip one", 0, 0.0, "猫", 0.1, 1 / 3, 2.0, 3.0, 4.0, 0.5, 7, 0.25, 0.125, mask, None],
        ["clip one", 1, 0.04, "猫", *[None] * 11],
    ]
    with exported(rows, "parquet") as (out, _):
        table = pq.read_table(out / "clip one.parquet")
    assert [list(one.values()) for one in table.to_pylist()] == wanted
    assert table.column_names[1:] == [
        "frame", "pts", "class", "probability", "x1", "y1", "x2", "y2", "score", "track", "presence", "margin", "mask",
        "refined",
    ]  # fmt: skip
    with exported(rows, "csv") as (out, _):
        read = read_csv(out / "clip one.csv", convert_options=ConvertOptions(strings_can_be_null=True))
    assert read.to_pylist() == table.to_pylist()


def test_masks_are_class_numbers_in_color(tmp_path):
    masks = np.zeros((2, 71, 97), bool)
    masks[0, 3:9, 5:40] = True
    masks[1, 60:, 90:] = True
    rows = [
        row(0, (5, 3, 40, 9), "dog", mask=rle.encode(masks[0])),
        row(0, (90, 60, 97, 71), "cat", mask=rle.encode(masks[1])),
        row(1, (5, 3, 40, 9), "dog"),
        row(2),
    ]
    out = export([write_table(tmp_path / "a.csv", rows)], "masks", tmp_path / "out")
    assert (out / "labels.txt").read_text().splitlines() == ["cat", "dog"]
    pictures = [Image.open(out / "masks" / f"a_{frame:06d}.png") for frame in range(3)]
    np.testing.assert_array_equal(np.array(pictures[0]), 2 * masks[0] + masks[1])
    assert not np.array(pictures[1]).any()
    assert not np.array(pictures[2]).any()
    assert pictures[0].convert("RGB").getpixel((6, 4)) == (0, 128, 0)

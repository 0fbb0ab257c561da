"""The localisation table: what is written, and that it is whole or not there."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from colocam.errors import ColocamError
from colocam.labels.table import COLUMNS, LocalizationTable, read_table
from colocam.types import Box, Localization

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
BOX = Box(10, 8, 40, 30)
NASTY = ["кошка", 'a "quoted", tag', "two\nlines", "=1+1", "", "猫"]


def localization(frame=0, pts=0.0, tag="cat", box=BOX, heat=0.0):
    heatmap = np.full((7, 7), heat, np.float32)
    return Localization(frame, pts, tag, 0.1 + 0.2, box, 0.0 if box is None else 1 / 3, heatmap)


def rows(count=5):
    box = Box(1 / 3, 2.5, 100.25, 77.125)
    return [localization(i, i / 29.97 + 0.04, NASTY[i % len(NASTY)], None if i % 3 == 1 else box) for i in range(count)]


def expected(localizations):
    return [
        (one.frame, one.pts, one.tag, one.probability, *(one.box or (None,) * 4), one.score) for one in localizations
    ]


def read(path):
    if path.suffix == ".parquet":
        table = pq.read_table(path)
    else:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True))
        tags = table["class"].to_pylist()
        assert not any(tag.startswith("=") for tag in tags)  # a spreadsheet would run it
        table = table.set_column(2, "class", [[tag.removeprefix("'") for tag in tags]])
    assert table.column_names == list(COLUMNS)
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".CSV"])
def test_tables_give_back_exactly_what_was_written(tmp_path, suffix):
    path = tmp_path / "новая папка" / f"boxes{suffix}"
    with LocalizationTable(path) as table:
        for one in rows(20):
            table.write(one)
    if suffix == ".CSV":
        path = path.rename(path.with_suffix(".csv"))
    assert read(path) == expected(rows(20))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_empty_video_gives_an_empty_table(tmp_path, suffix):
    path = tmp_path / f"boxes{suffix}"
    with LocalizationTable(path):
        pass
    assert read(path) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_numpy_numbers_and_broken_names_are_written(tmp_path, suffix):
    path = tmp_path / f"boxes{suffix}"
    one = Localization(
        np.int64(3),
        np.float64(0.5),
        "caf\udce9",
        np.float32(0.5),
        Box(*np.float32([1, 2, 3, 4])),
        np.float32(0.25),
        np.zeros((1, 1), np.float32),
    )
    with LocalizationTable(path) as table:
        table.write(one)
    assert read(path) == [(3, 0.5, "caf\\udce9", 0.5, 1.0, 2.0, 3.0, 4.0, 0.25)]


@pytest.mark.parametrize("name", ["boxes.xlsx", "boxes", "boxes.csv.gz"])
def test_other_suffixes_are_refused(tmp_path, name):
    with pytest.raises(ColocamError, match=r"\.csv or \.parquet"):
        LocalizationTable(tmp_path / name)


@pytest.mark.parametrize("name", ["none", "online", "offline"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_tables_of_version_0_1_0_are_read_and_written_byte_for_byte(tmp_path, name, separator):
    """Also after a spreadsheet of another country has saved them: semicolons, decimal commas, a byte-order mark."""
    stored = STORED / f"{name}.csv"
    text = stored.read_text(encoding="utf-8")
    saved = tmp_path / "saved.csv"
    if separator == ";":
        text = text.translate(str.maketrans(",.", ";,")).replace("\n", "\r\n")
    saved.write_bytes(text.encode("utf-8-sig" if separator == ";" else "utf-8"))
    header = stored.read_text(encoding="utf-8").splitlines()[0].split(",")
    with LocalizationTable(tmp_path / "again.csv", header[len(COLUMNS) :]) as table:
        table.write_rows(read_table(saved))
    assert (tmp_path / "again.csv").read_bytes() == stored.read_bytes()


def test_rows_come_in_the_order_of_frames(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_text("x1,y1,x2,y2,frame\n1,2,3,4,7\n,,,,2\n5,6,7,8,7\n", encoding="utf-8")
    rows = read_table(path)
    assert rows.frame.tolist() == [2, 7, 7]
    np.testing.assert_array_equal(rows.box, [[np.nan] * 4, [1, 2, 3, 4], [5, 6, 7, 8]])
    assert rows.track.tolist() == [-1] * 3
    assert np.isnan(rows.pts).all()

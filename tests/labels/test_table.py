"""The localization table: what is written, and that it is whole or not there."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from colocam.errors import ColocamError
from colocam.labels.table import COLUMNS, LocalizationTable, read_table
from colocam.types import Box, Localization

STORED = Path(__file__).parents[1] / "stored" / "version-0.1.0"
NASTY = ["кошка", 'a "quoted", tag', "two\nlines", "=1+1", "", "猫", "caf\udce9"]


def rows():
    boxes = Box(1 / 3, 2.5, 100.25, 77.125), None, Box(*np.float32([1, 2, 3.5, 4]))
    given = [(np.int64(i), i / 29.97 + 0.04, NASTY[i % len(NASTY)], boxes[i % 3]) for i in range(20)]
    return [
        Localization(frame, pts, tag, 0.1 + 0.2, box, np.float32(0 if box is None else 0.25), np.zeros((7, 7)))
        for frame, pts, tag, box in given
    ]


def expected(localizations):
    """A half of a surrogate pair, which no file holds, is written as its escape."""
    tags = [one.tag.replace("\udce9", "\\udce9") for one in localizations]
    return [
        (one.frame, one.pts, tag, one.probability, *(one.box or (None,) * 4), one.score)
        for one, tag in zip(localizations, tags, strict=True)
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
        for one in rows():
            table.write(one)
    if suffix == ".CSV":
        path = path.rename(path.with_suffix(".csv"))
    assert read(path) == expected(rows())
    assert [file.name for file in path.parent.iterdir()] == [path.name]


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

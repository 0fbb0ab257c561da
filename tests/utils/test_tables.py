"""Tables as people and spreadsheets save them: separators, marks, empty rows, and errors that name the row."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from colocam.errors import ColocamError
from colocam.utils.tables import csv_cell, read_cells, read_rows


def save(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_separators_and_marks(tmp_path, separator, encoding):
    lines = [["Name ", " X"], ["ü", "1.5"], ["b", ""]]
    cells = read_cells(save(tmp_path / "t.csv", "\r\n".join(map(separator.join, lines)), encoding))
    assert cells.text("name") == ["ü", "b"]
    np.testing.assert_array_equal(cells.floats("x"), [1.5, np.nan])
    assert np.isnan(cells.floats("missing")).all()


def test_decimal_commas_where_semicolons_separate(tmp_path):
    rows = read_rows(save(tmp_path / "t.csv", "x;y;note\n1,5;-2,25e1;1,2,3\n"))
    assert (rows[0].number("x"), rows[0].number("y"), rows[0].number("z")) == (1.5, -22.5, None)
    with pytest.raises(ColocamError, match="row 2: note is '1,2,3', which is not a number"):
        rows[0].number("note")
    with pytest.raises(ColocamError, match=r"row 2: x '1\.234,5' is not a number"):
        read_cells(save(tmp_path / "t.csv", "x;y\n1.234,5;1\n")).floats("x")
    with pytest.raises(ColocamError, match="row 2: x '1,5' is not a number"):  # 1500 or 1.5? nobody knows
        read_cells(save(tmp_path / "t.csv", 'x,y\n"1,5",1\n')).floats("x")


def test_rows_are_counted_as_a_spreadsheet_counts_them(tmp_path):
    """Empty rows and line breaks inside cells do not shift the number in an error."""
    text = 'a,b\n"two\nlines",1\n\n,,\n ,\nx,wrong\n'
    cells = read_cells(save(tmp_path / "t.csv", text))
    assert cells.row.tolist() == [2, 6]
    with pytest.raises(ColocamError, match=r"t\.csv, row 6: b 'wrong' is not a number"):
        cells.floats("b")
    assert [row.where for row in read_rows(tmp_path / "t.csv")] == [f"{tmp_path / 't.csv'}, row {n}" for n in (2, 6)]


def test_columns_without_a_name_are_left_out(tmp_path):
    cells = read_cells(save(tmp_path / "t.csv", "a,b,,\n1,2,,\n3,4,,,,\n"))
    assert list(cells.columns) == ["a", "b"]
    assert cells.floats("b").tolist() == [2, 4]


def test_long_cells_and_many_rows(tmp_path):
    """A mask may be longer than the limit of the csv module."""
    long = "0" * (2**17 + 1)
    path = save(tmp_path / "t.csv", "a,b\n" + f"{long},1\n" + "x,2\n" * 70_000)
    cells = read_cells(path)
    assert cells.text("a")[0] == long
    assert cells.floats("b").sum() == 1 + 2 * 70_000


def test_parquet_of_any_type(tmp_path):
    columns = {"A": pa.array([1, None], pa.int32()), "b": pa.array([" 1.5 ", ""], pa.large_string())}
    columns |= {"c": pa.array([True, False]), "d": pa.array(["x", "y"]).dictionary_encode()}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    cells = read_cells(tmp_path / "t.parquet")
    np.testing.assert_array_equal(cells.floats("a"), [1, np.nan])
    np.testing.assert_array_equal(cells.floats("b"), [1.5, np.nan])
    assert (cells.text("a"), cells.text("c"), cells.text("d")) == (["1", ""], ["1", "0"], ["x", "y"])


@pytest.mark.parametrize(
    "text", ["=cmd()", "+a", "-x", "@sum", " =1+1", "'=a", "''-b", "'plain", "-1.5", "+2e3", "-", "a=b"]
)
def test_a_spreadsheet_runs_no_cell_and_it_reads_back_unchanged(tmp_path, text):
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["name", "n"], [csv_cell(text), csv_cell(-1.5)]])
    with (tmp_path / "t.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.reader(file))[1]
    assert written[1] == "-1.5"
    assert written[0].lstrip()[0] not in "=+-@" or float(text)
    assert read_cells(tmp_path / "t.csv").text("name") == [text]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused_in_one_line(tmp_path, encoding, end):
    with pytest.raises(ColocamError, match="save it as 'CSV UTF-8'") as raised:
        read_cells(save(tmp_path / "t.csv", "frame,x1\n0,é" + end, encoding))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_too_many_columns_are_refused_before_they_cost_time(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("colocam.utils.tables.MOST_COLUMNS", 50)

    def table(columns):
        path, names = tmp_path / f"{columns}.{kind}", [f"c{number}" for number in range(columns)]
        if kind == "csv":
            path.write_text(f"{','.join(names)}\n{','.join('1' * columns)}\n")
        else:
            pq.write_table(pa.table({name: [1] for name in names}), path)
        return path

    assert read_rows(table(50))[0]["c49"] == "1"
    with pytest.raises(ColocamError, match=rf"\.{kind}: 51 columns, more than 50: remove"):
        read_rows(table(51))

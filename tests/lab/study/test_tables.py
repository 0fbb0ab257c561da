"""Tables: CSV that other readers read, and sentences about the order of rows."""

import csv
import io

import pytest

from lab.study.tables import Measured, Table, order_note, to_csv


def table():
    rows = (("a | b", Measured((1.0, 3.0)), 5.5), ("c", None, "in words, with a comma"))
    return Table("table", "Title", ("name", "ours", "published"), rows)


def test_csv_keeps_all_digits_and_tells_the_seeds():
    rows = list(csv.DictReader(io.StringIO(to_csv(table()))))
    assert float(rows[0]["ours"]) == 2
    assert float(rows[0]["ours, std"]) == pytest.approx(2**0.5, rel=1e-15)
    assert rows[0]["ours, seeds"] == "2"
    assert rows[1] == {
        "name": "c",
        "ours": "",
        "ours, std": "",
        "ours, seeds": "",
        "published": "in words, with a comma",
    }


def test_the_order_of_rows_is_compared():
    names = ("A", "B", "C")
    theirs = {"published, v1.0": (10.0, 20.0, None)}
    (same,) = order_note(names, (Measured((1.0,)), Measured((2.0, 2.0)), Measured((0.0,))), theirs)
    assert same == "Order by CorLoc, published, v1.0: A < B; ours (oracle-per-class): the same."
    (other,) = order_note(names, (Measured((3.0,)), Measured((2.0,)), None), theirs)
    assert "A < B; ours (oracle-per-class): B < A. It DIFFERS." in other
    assert "spread" not in other  # one seed has none
    apart = (Measured((9.0, 10.0, 11.0)), Measured((7.0, 8.0, 9.0)), None)
    assert order_note(names, apart, theirs)[0].endswith("It DIFFERS; beyond the seeds' spread: A above B.")
    near = (Measured((9.0, 10.0, 11.0)), Measured((8.0, 9.0, 10.0)), None)  # 1 point, spread √2
    assert order_note(names, near, theirs)[0].endswith("It DIFFERS; beyond the seeds' spread: nothing.")
    assert order_note(names, (None, Measured((2.0,)), None), theirs) == []

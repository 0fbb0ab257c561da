"""Rows that no table of true boxes may have; test_index.py reads the others."""

import pytest

from colocam.data.truth import read_truth
from colocam.errors import ColocamError
from tests.helpers.csv_tables import csv_table

HEADER = "clip,frame,present,x1,y1,x2,y2"
ROW = "cat/a,10,1,1,2,30.5,40"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (",1,0,,,,", "needs a clip and a frame index"),
        ("a,,0,,,,", "needs a clip and a frame index"),
        ("a,-1,0,,,,", "needs a clip and a frame index"),
        ("a,1.5,0,,,,", "needs a clip and a frame index"),
        ("a,one,0,,,,", "frame is 'one', which is not a number"),
        ("a,1,,,,,", "present must be 0 or 1, got ''"),
        ("a,1,2,,,,", "present must be 0 or 1, got '2'"),
        ("a,1,1,,,,", "a box needs x1 < x2"),
        ("a,1,1,5,5,5,9", "a box needs x1 < x2"),
        ("a,1,1,5,9,8,9", "a box needs x1 < x2 and y1 < y2"),
        ("a,1,1,5,9,8,5", "a box needs x1 < x2"),
        ("a,1,1,5,5,8,inf", "y2 is 'inf'"),
        ("a,1,0,5,5,8,9", "present is 0 but there is a box"),
    ],
)
def test_impossible_rows(tmp_path, row, message):
    with pytest.raises(ColocamError, match=message) as raised:
        read_truth(csv_table(tmp_path / "t.csv", HEADER, ROW, row))
    assert "t.csv, row 3: " in str(raised.value)

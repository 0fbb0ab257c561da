"""Sentences about the order of rows."""

from lab.study.tables import Measured, order_note


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

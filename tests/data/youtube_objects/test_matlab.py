"""Structures of .mat files, each written by scipy and read back."""

import builtins

import numpy as np
import pytest
from scipy.io import savemat

from colocam.data.youtube_objects.matlab import corners_of, labelled_frames, read_variable
from colocam.errors import ColocamError

A, B = [1.0, 2, 3, 4], [5.5, 6, 7, 8]


@pytest.fixture
def through(tmp_path):
    """``through(value)``: the value as it comes out of a .mat file."""

    def write_and_read(value):
        savemat(tmp_path / "x.mat", {"x": value})
        return read_variable(tmp_path / "x.mat", "x")

    return write_and_read


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([A]), [A]),
        (np.array(A), [A]),
        (np.array(A)[:, None], [A]),
        (np.array([A, B]), [A, B]),
        (np.array([A, B], np.int16), [A, [5, 6, 7, 8]]),
        (np.zeros((0, 0)), []),
    ],
)
def test_boxes_of_a_matrix(through, value, expected):
    boxes = corners_of(through(value), "here")
    assert boxes.shape == (len(expected), 4)
    assert boxes.tolist() == expected


@pytest.mark.parametrize("transpose", [False, True])
def test_boxes_of_a_cell(through, archives, transpose):
    value = archives.cell([A, np.zeros((0, 4)), [A, B]])
    assert corners_of(through(value.T if transpose else value), "here").tolist() == [A, A, B]


@pytest.mark.parametrize("value", [np.ones((4, 3)), np.array(["cat"]), np.ones((2, 2, 3))])
def test_what_is_no_box(through, value):
    with pytest.raises(ColocamError, match="here: boxes must be rows of x0, y0, x1, y1"):
        corners_of(through(value), "here")


def frames(value):
    return [(number, boxes.tolist()) for number, boxes in labelled_frames(value, "here")]


EXPECTED = [(1139, [A, B]), (7, [])]


def fields(frame, boxes, pairs):
    array = np.empty((1, len(pairs)), dtype=[(frame, object), (boxes, object)])
    for place, (name, them) in enumerate(pairs):
        array[0, place] = (name, np.array(them, float).reshape(-1, 4))
    return array


@pytest.mark.parametrize(
    ("frame", "boxes", "names"),
    [
        ("im", "boxes", ("car00001139", "car00000007")),
        ("name", "bb", ("car/00001139.jpg", "00000007.jpg")),
        ("frame", "bbox", (1139.0, 7.0)),
        ("some", "thing", ("00001139", "7")),
    ],
)
def test_a_struct_array(through, frame, boxes, names):
    pairs = [(names[0], [A, B]), (names[1], [])]
    assert frames(through(fields(frame, boxes, pairs))) == EXPECTED
    assert frames(through(fields(frame, boxes, pairs).T)) == EXPECTED


def test_fields_are_found_by_name_whatever_their_order(through):
    array = np.empty((1, 1), dtype=[("boxes", object), ("video", object), ("im", object)])
    array[0, 0] = (np.array([A]), 3.0, "cat00000012")
    assert frames(through(array)) == [(12, [A])]


def test_a_struct_of_cells_a_cell_and_a_matrix(through, archives):
    names = np.empty((2, 1), object)
    names[:, 0] = ["car00001139", "car00000007"]
    both = archives.cell([[A, B], np.zeros((0, 4))])
    assert frames(through({"im": names, "boxes": both})) == EXPECTED
    assert frames(through(np.concatenate([names, both], axis=1))) == EXPECTED
    assert frames(through(np.array([[1139, *A], [1139, *B]]))) == [(1139, [A]), (1139, [B])]


def test_nothing_labelled(through):
    assert frames(through(np.zeros((0, 0)))) == []
    assert frames(through(np.empty((1, 0), dtype=[("im", object), ("boxes", object)]))) == []


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.ones((3, 7)), "expected a struct array"),
        (np.array(["cat"]), "expected a struct array"),
        ({"alpha": 1.0, "beta": 2.0, "gamma": 3.0}, "it has alpha, beta, gamma"),
        ({"im": "cat", "boxes": np.array([A])}, "names no frame"),
        ({"im": 1.5, "boxes": np.array([A])}, "names no frame"),
        ({"im": "cat01", "boxes": "none"}, "boxes must be rows"),
    ],
)
def test_other_structures_are_named(through, value, told):
    with pytest.raises(ColocamError, match=f"^here: .*{told}"):
        frames(through(value))


def test_a_single_variable_of_another_name(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"other": np.ones(3)})
    assert read_variable(path, "x").tolist() == [[1, 1, 1]]
    savemat(path, {"other": np.ones(3), "more": 1})
    with pytest.raises(ColocamError, match="no variable 'x'; it has other, more"):
        read_variable(path, "x")


@pytest.mark.parametrize("content", [b"", b"not a mat file at all" * 20, b"\0" * 200])
def test_broken_files(tmp_path, content):
    path = tmp_path / "x.mat"
    path.write_bytes(content)
    with pytest.raises(ColocamError, match=r"x\.mat: (not a MATLAB file, or a broken one|no variable)") as raised:
        read_variable(path, "x")
    assert "\n" not in str(raised.value)


def test_half_a_file(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(100.0)})
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(ColocamError, match="not a MATLAB file, or a broken one"):
        read_variable(path, "x")


def test_matlab_7_3(tmp_path):
    path = tmp_path / "x.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    for content in (header + b"\0" * 384 + b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + b"\0" * 100):
        path.write_bytes(content)
        with pytest.raises(ColocamError, match=r"saved by MATLAB 7\.3 \(HDF5\).*'-v7'"):
            read_variable(path, "x")


def test_without_scipy(tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ColocamError, match=r"needs scipy: pip install 'colocam\[youtube-objects\]'"):
        read_variable(tmp_path / "x.mat", "x")
    monkeypatch.undo()
    with pytest.raises(ColocamError, match="there is no such file"):
        read_variable(tmp_path / "x.mat", "x")

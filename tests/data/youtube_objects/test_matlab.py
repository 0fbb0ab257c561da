"""Structures of .mat files, each written by scipy and read back."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from colocam.data.youtube_objects.mat_file import labelled_frames, read_variable
from colocam.errors import ColocamError

A, B = [1.0, 2, 3, 4], [5.5, 6, 7, 8]


@pytest.fixture
def through(tmp_path):
    """``through(value)``: the value as it comes out of a .mat file."""

    def write_and_read(value):
        savemat(tmp_path / "x.mat", {"x": value})
        return read_variable(tmp_path / "x.mat", "x")

    return write_and_read


def frames(value):
    return [(number, boxes.tolist()) for number, boxes in labelled_frames(value, "here")]


@pytest.mark.parametrize("names", [("car00001139", "car00000007"), ("car/00001139.jpg", "00000007.jpg")])
def test_a_struct_array(through, archives, names):
    array = archives.struct({names[0]: [A, B], names[1]: []})
    expected = [(1139, [A, B]), (7, [])]
    assert frames(through(array)) == expected
    assert frames(through(array.T)) == expected


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (np.ones((3, 5)), "expected a struct array with the fields im and boxes"),
        (np.array(["cat"]), "expected a struct array with the fields im and boxes"),
        ({"name": "cat1", "bb": np.array([A])}, "expected a struct array with the fields im and boxes"),
        ({"im": "cat", "boxes": np.array([A])}, "im 'cat' must end in the frame's number"),
        ({"im": "cat01", "boxes": "none"}, "boxes must be rows"),
    ],
)
def test_other_structures_are_named(through, value, told):
    with pytest.raises(ColocamError, match=f"^here: .*{told}"):
        frames(through(value))


def test_a_missing_variable(tmp_path):
    path = tmp_path / "x.mat"
    savemat(path, {"other": np.ones(3), "more": 1})
    with pytest.raises(ColocamError, match="no variable 'x'; its variables are other, more"):
        read_variable(path, "x")


@pytest.mark.parametrize("content", [b"", b"not a mat file at all" * 20, b"\0" * 200, None])
def test_broken_files(tmp_path, content):
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(100.0)})
    path.write_bytes(path.read_bytes()[:-300] if content is None else content)
    with pytest.raises(ColocamError, match=r"x\.mat: (not a MATLAB file, or a broken one|no variable)") as raised:
        read_variable(path, "x")
    assert "\n" not in str(raised.value)


def test_matlab_7_3(tmp_path):
    path = tmp_path / "x.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    for content in (header + b"\0" * 384 + b"\x89HDF\r\n\x1a\n", b"\x89HDF\r\n\x1a\n" + b"\0" * 100):
        path.write_bytes(content)
        with pytest.raises(ColocamError, match=r"saved by MATLAB 7\.3 \(HDF5\).*'-v7'"):
            read_variable(path, "x")


def plain(value):
    """Lists, dictionaries and texts in place of arrays."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, str) or value.dtype.kind == "U":
        return str(np.squeeze(value))
    if value.dtype.names:
        return [{name: plain(record[name]) for name in value.dtype.names} for record in value.flat]
    return [plain(one) for one in value.flat] if value.dtype == object else (value.dtype.str, value.tolist())


@pytest.mark.parametrize("compressed", [False, True])
def test_values_are_those_of_scipy(tmp_path, archives, compressed):
    """Every kind of number, texts, cells, structs, as scipy reads them."""
    kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    written = {f"n_{kind}": np.arange(6).reshape(2, 3).astype(kind) for kind in kinds}
    written |= {
        "text": "cät",
        "cell": archives.cell([A, "x", np.zeros((0, 4))]),
        "one": 3.5,
        "cube": np.ones((2, 3, 4)),
    }
    written |= {"struct": archives.struct({"a1": [A, B], "b2": []}), "long_name_of_a_variable": np.array([[1]])}
    path = tmp_path / "x.mat"
    savemat(path, written, do_compression=compressed)
    for name, expected in loadmat(path).items():
        if not name.startswith("__"):
            assert str(plain(read_variable(path, name))) == str(plain(expected))


@pytest.mark.parametrize("kind", [0, 20, 0x8009, 0xFFFF])
def test_an_unknown_type_of_numbers(tmp_path, kind):
    """scipy's reader took such a type as an index into a table of C."""
    path = tmp_path / "x.mat"
    savemat(path, {"x": np.arange(8.0)})
    data = path.read_bytes()
    place = data.index((9).to_bytes(4, "little") + (64).to_bytes(4, "little"))
    path.write_bytes(data[:place] + kind.to_bytes(4, "little") + data[place + 4 :])
    with pytest.raises(ColocamError, match="not a MATLAB file, or a broken one"):
        read_variable(path, "x")


@settings(max_examples=30)
@given(st.data())
def test_changed_bytes_give_values_or_an_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("mat") / "x.mat"
    savemat(path, {"x": np.array([[{"a": 1.0}]]), "y": "text"}, do_compression=data.draw(st.booleans()))
    content = bytearray(path.read_bytes())
    for _ in range(3):
        content[data.draw(st.integers(124, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress(ColocamError):
        read_variable(path, "x")

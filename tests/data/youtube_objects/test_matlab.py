"""Structures of .mat files, each written by scipy and read back."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat

from colocam.data.youtube_objects.mat_file import labeled_frames, read_variable
from colocam.errors import ColocamError

A = [1.0, 2, 3, 4]


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
def test_other_structures_are_named(tmp_path, value, told):
    savemat(tmp_path / "x.mat", {"x": value})
    with pytest.raises(ColocamError, match=f"^here: .*{told}"):
        list(labeled_frames(read_variable(tmp_path / "x.mat", "x"), "here"))


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


@pytest.mark.parametrize("compressed", [False, True])
def test_values_are_those_of_scipy(tmp_path, compressed):
    """Every kind of number; tests of archives read cells and structs."""
    kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    written = {f"n_{kind}": np.arange(6).reshape(2, 3).astype(kind) for kind in kinds}
    written |= {"cube": np.arange(24.0).reshape(2, 3, 4), "one": 3.5, "long_name_of_a_variable": np.array([[1]])}
    path = tmp_path / "x.mat"
    savemat(path, written | {"text": "cät"}, do_compression=compressed)
    expected = loadmat(path)
    for name in written:
        assert read_variable(path, name).dtype == expected[name].dtype
        np.testing.assert_array_equal(read_variable(path, name), expected[name])
    assert read_variable(path, "text") == "cät"


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

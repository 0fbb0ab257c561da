"""Read MATLAB files of level 5 (``-v6`` and ``-v7``): numbers, texts, cells and structs, and the boxes inside them.

``scipy.io.loadmat`` (1.17 too) indexes a table of C with a type number from the file, so that a broken file can end the
process; scipy would also make the light installation a third larger.

Format: a header of 128 bytes, then elements: a tag (type, length in bytes), data, zeros up to a multiple of 8 bytes.
The elements of a matrix (type 14) are its flags, dimensions, name and content.

Tests: tests/data/youtube_objects/test_matlab.py.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError, first_line

Corners = npt.NDArray[np.float64]
"""(k, 4) x0, y0, x1, y1 as the archive has them."""
LARGEST = 1 << 28
"""Bytes of a decompressed variable at most."""
DEEPEST = 20
"""Cells and structs within each other at most."""
MATRIX, COMPRESSED = 14, 15
CELL, STRUCT, CHAR = 1, 2, 4
# Types of stored numbers and of matrices; those of integers and floats.
STORED = {1: "<i1", 2: "<u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
TEXTS = {1: "latin-1", 2: "latin-1", 4: "utf-16-le", 16: "utf-8", 17: "utf-16-le", 18: "utf-32-le"}


def read_mat(data: bytes) -> dict[str, Any]:
    """The variables of a file by name: arrays, texts, lists for cells, lists of dictionaries for struct arrays.

    Raises:
        ValueError: it is no such file, or a broken one.
    """
    if data[126:128] != b"IM":
        raise ValueError("it has no header of level 5")
    found: dict[str, Any] = {}
    for kind, content in _elements(data[128:]):
        inner = _elements(_decompressed(content)) if kind == COMPRESSED else [(kind, content)]
        found.update(_matrix(one, 0) for what, one in inner if what == MATRIX)
    return found


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, content) of the elements that follow each other in ``data``."""
    start = 0
    while start + 8 <= len(data):
        kind, length = struct.unpack_from("<II", data, start)
        if kind >> 16:  # length, type and up to 4 bytes of content in 8 bytes
            kind, length, begin = kind & 0xFFFF, kind >> 16, start + 4
            end = begin + min(length, 4)
            start += 8
        else:
            begin, end = start + 8, start + 8 + length
            start = end if kind == COMPRESSED else end + -end % 8
        if end > len(data):
            raise ValueError(f"an element of {length} bytes ends after the file")
        yield kind, data[begin:end]


def _decompressed(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(data, LARGEST)
    except zlib.error as error:
        raise ValueError("a compressed variable is broken") from error
    if stream.unconsumed_tail:
        raise ValueError(f"a variable has more than {LARGEST} bytes")
    return content


def _matrix(data: bytes, depth: int) -> tuple[str, Any]:
    """Name and value of a matrix."""
    if not data:
        return "", np.zeros((0, 0))
    parts = _elements(data)
    flags, dimensions, name = _numbers(parts), _numbers(parts), _numbers(parts)
    shape = tuple(map(int, dimensions))
    kind = int(flags[0]) & 0xFF if len(flags) else 0
    if depth > DEEPEST or len(shape) < 2 or min(shape) < 0 or prod(shape) > LARGEST:
        raise ValueError(f"a matrix of shape {shape} at depth {depth}")
    called = _text(name)
    if kind in {CELL, STRUCT}:
        fields = _field_names(parts) if kind == STRUCT else [""]
        values = [_matrix(content, depth + 1)[1] for _, content in parts]
        if len(values) != prod(shape) * len(fields):
            raise ValueError(f"{len(values)} cells, not {prod(shape) * len(fields)}")
        if kind == CELL:
            return called, values
        rows = (values[start : start + len(fields)] for start in range(0, len(values), len(fields)))
        return called, [dict(zip(fields, row, strict=True)) for row in rows]
    stored, content = next(parts, (0, b""))
    if kind == CHAR and stored in TEXTS:
        return called, content.decode(TEXTS[stored], "replace")
    if kind not in CLASSES or stored not in STORED:
        raise ValueError(f"a matrix of class {kind} with data of type {stored}, which is not read")
    return called, np.frombuffer(content, STORED[stored]).astype(CLASSES[kind]).reshape(shape, order="F")


def _numbers(parts: Iterator[tuple[int, bytes]]) -> npt.NDArray[Any]:
    kind, content = next(parts, (0, b""))
    if kind not in STORED:
        raise ValueError(f"flags, dimensions or name of type {kind}")
    return np.frombuffer(content, STORED[kind])


def _text(codes: npt.NDArray[Any]) -> str:
    return bytes(codes.astype(np.uint8)).decode("latin-1")


def _field_names(parts: Iterator[tuple[int, bytes]]) -> list[str]:
    width, text = _numbers(parts), _text(_numbers(parts))
    longest = int(width[0]) if len(width) else 0
    if longest < 1 or not text or len(text) % longest:
        raise ValueError("the names of a struct's fields are broken")
    return [text[start : start + longest].partition("\0")[0] for start in range(0, len(text), longest)]


def read_variable(path: Path, name: str) -> Any:  # noqa: ANN401 - see read_mat
    """Read one variable of a file, see :func:`read_mat`."""
    if not path.is_file():
        raise ColocamError(f"cannot read {path}: there is no such file")
    data = path.read_bytes()
    if data.startswith(b"\x89HDF\r\n\x1a\n") or data[124:128] in {b"\x00\x02IM", b"\x02\x00MI"}:
        raise ColocamError(f"{path}: saved by MATLAB 7.3 (HDF5), which colocam cannot read: save it again with '-v7'")
    try:
        content = read_mat(data)
    except ValueError as error:
        raise ColocamError(f"{path}: not a MATLAB file, or a broken one ({first_line(error)})") from error
    if name not in content:
        others = ", ".join(content) or "none"
        raise ColocamError(f"{path}: no variable {name!r}; its variables are {others}")
    return content[name]


def corners_of(value: Any, where: str) -> Corners:  # noqa: ANN401
    """Boxes (k, 4) of a matrix with four columns, of one vector of four, or of a cell of such; k may be 0."""
    if isinstance(value, list):
        return np.concatenate([np.zeros((0, 4)), *(corners_of(cell, where) for cell in value)])
    if isinstance(value, np.ndarray) and value.size == 0:
        return np.zeros((0, 4))
    if not isinstance(value, np.ndarray) or (value.size != 4 and value.shape[-1] != 4):
        described = f"shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise ColocamError(f"{where}: boxes must be rows of x0, y0, x1, y1, not {described}")
    return value.reshape(-1, 4).astype(np.float64)


def labeled_frames(value: Any, where: str) -> Iterator[tuple[int, Corners]]:  # noqa: ANN401
    """Yield frame number and boxes of each entry of a ground-truth variable.

    It is a struct array with the fields ``im``, a name that ends in the frame's number (``car00001139``), and
    ``boxes``, a matrix with rows x0, y0, x1, y1.
    """
    for record in value:
        if not isinstance(record, dict) or not {"im", "boxes"} <= record.keys():
            raise ColocamError(f"{where}: expected a struct array with the fields im and boxes")
        name = str(record["im"]).strip()
        number = re.search(r"(\d+)(?:\.[A-Za-z]+)?$", name)
        if number is None:
            raise ColocamError(f"{where}: im {name!r} must end in the frame's number, such as car00001139")
        yield int(number[1]), corners_of(record["boxes"], where)

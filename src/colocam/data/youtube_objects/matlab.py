"""Read MATLAB files of the archives: a named variable, and the boxes inside it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.data.youtube_objects.mat_file import read_mat
from colocam.errors import ColocamError, first_line

Values = npt.NDArray[Any]
Corners = npt.NDArray[np.float64]
"""(k, 4) x0, y0, x1, y1 as the archive has them."""


def read_variable(path: Path, name: str) -> Values:
    """Read one variable of a file."""
    if not path.is_file():
        raise ColocamError(f"cannot read {path}: there is no such file")
    data = path.read_bytes()
    if data.startswith(b"\x89HDF\r\n\x1a\n") or data[124:128] in {b"\x00\x02IM", b"\x02\x00MI"}:
        raise ColocamError(f"{path}: saved by MATLAB 7.3 (HDF5), which is not read: save it again with '-v7'")
    try:
        content = read_mat(data)
    except ValueError as error:
        raise ColocamError(f"{path}: not a MATLAB file, or a broken one ({first_line(error)})") from error
    if name not in content:
        others = ", ".join(content) or "none"
        raise ColocamError(f"{path}: no variable {name!r}; its variables are {others}")
    return content[name]


def corners_of(value: Values, where: str) -> Corners:
    """Boxes (k, 4) of a matrix with four columns, of one vector of four, or of a cell of such; k may be 0."""
    if value.dtype == object:
        return np.concatenate([np.zeros((0, 4)), *(corners_of(np.asarray(cell), where) for cell in value.flat)])
    if value.size == 0:
        return np.zeros((0, 4))
    if value.dtype.kind not in "iuf" or (value.size != 4 and value.shape[-1] != 4):
        raise ColocamError(f"{where}: boxes must be rows of x0, y0, x1, y1, not {value.dtype} of shape {value.shape}")
    return value.reshape(-1, 4).astype(np.float64)


def labelled_frames(value: Values, where: str) -> Iterator[tuple[int, Corners]]:
    """Yield frame number and boxes of each entry of a ground-truth variable.

    It is a struct array with the fields ``im``, a name that ends in the frame's number (``car00001139``), and
    ``boxes``, a matrix with rows x0, y0, x1, y1.
    """
    if not value.size:
        return
    if not {"im", "boxes"} <= set(value.dtype.names or ()):
        raise ColocamError(f"{where}: expected a struct array with the fields im and boxes, not {value.dtype}")
    for record in value.flat:
        name = str(np.squeeze(record["im"])).strip()
        number = re.search(r"(\d+)(?:\.[A-Za-z]+)?$", name)
        if number is None:
            raise ColocamError(f"{where}: im {name!r} must end in the frame's number, such as car00001139")
        yield int(number[1]), corners_of(np.asarray(record["boxes"]), where)

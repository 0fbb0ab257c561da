"""MATLAB files of the archives: a named variable, and boxes inside cells and structs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError

Values = npt.NDArray[Any]
Corners = npt.NDArray[np.float64]
"""(k, 4) x0, y0, x1, y1 as the archive has them."""

FRAME_FIELDS = ("im", "name", "image", "frame")
BOX_FIELDS = ("boxes", "bb", "bbs", "bbox", "box", "coor")


def read_variable(path: Path, name: str) -> Values:
    """Read one variable; a file whose only variable has another name is understood, too."""
    try:
        from scipy.io import loadmat  # noqa: PLC0415 - only those who index an archive need it
    except ImportError as error:
        raise ColocamError("reading .mat files needs scipy: pip install 'colocam[youtube-objects]'") from error
    if not path.is_file():
        raise ColocamError(f"cannot read {path}: there is no such file")
    if path.open("rb").read(8) == b"\x89HDF\r\n\x1a\n":
        raise _is_hdf5(path)
    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise _is_hdf5(path) from error
    except Exception as error:  # scipy's parser fails in many ways on a broken file
        raise ColocamError(f"{path}: not a MATLAB file, or a broken one ({_one_line(error)})") from error
    variables = {key: value for key, value in content.items() if not key.startswith("__")}
    value = variables.get(name, next(iter(variables.values())) if len(variables) == 1 else None)
    if value is None:
        raise ColocamError(f"{path}: no variable {name!r}; it has {', '.join(variables) or 'none'}")
    return np.asarray(value)


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

    It may be a struct array with a field for the frame (a name that ends in its number, such as ``car00001139``, or the
    number itself) and one for its boxes; a struct whose two fields are cells of equal length; a cell of two columns
    (frame, boxes); or a matrix of five (frame, x0, y0, x1, y1).
    """
    if value.dtype.names:
        for record in value.flat:
            frame, boxes = _two_fields(record, where)
            if frame.dtype == object:
                pairs = zip(frame.flat, [boxes] if boxes.dtype != object else boxes.flat, strict=False)
                if frame.size != (boxes.size if boxes.dtype == object else 1):
                    raise ColocamError(f"{where}: {frame.size} frames but boxes of another number of frames")
                yield from ((_frame_number(np.asarray(f), where), corners_of(np.asarray(b), where)) for f, b in pairs)
            else:
                yield _frame_number(frame, where), corners_of(boxes, where)
    elif value.dtype == object and value.ndim == 2 and 2 in value.shape:
        for frame, boxes in value if value.shape[1] == 2 else value.T:
            yield _frame_number(np.asarray(frame), where), corners_of(np.asarray(boxes), where)
    elif value.dtype.kind in "iuf" and value.ndim == 2 and value.shape[1] == 5:
        for row in value:
            yield _frame_number(row[:1], where), corners_of(row[1:], where)
    elif value.size:
        raise ColocamError(
            f"{where}: expected a struct array with a frame and its boxes, a cell of two columns or a matrix of five, "
            f"not {value.dtype} of shape {value.shape}"
        )


def _two_fields(record: Any, where: str) -> tuple[Values, Values]:  # noqa: ANN401 - numpy's void scalar
    names: tuple[str, ...] = record.dtype.names
    lower = {name.lower(): name for name in names}
    frame = next((lower[name] for name in FRAME_FIELDS if name in lower), None)
    boxes = next((lower[name] for name in BOX_FIELDS if name in lower), None)
    if (frame is None or boxes is None) and len(names) == 2:  # the order of the archive: frame, then boxes
        frame, boxes = names
    if frame is None or boxes is None:
        raise ColocamError(
            f"{where}: a struct needs a field for the frame ({', '.join(FRAME_FIELDS)}) and one for its boxes "
            f"({', '.join(BOX_FIELDS)}); it has {', '.join(names)}"
        )
    return np.asarray(record[frame]), np.asarray(record[boxes])


def _frame_number(value: Values, where: str) -> int:
    """Number of a frame that is named by text or by the number itself."""
    only = value.flat[0] if value.size == 1 else None
    if isinstance(only, np.ndarray):  # a cell in a cell
        return _frame_number(only, where)
    if isinstance(only, str) and (found := re.search(r"(\d+)(?:\.[A-Za-z]+)?$", only.strip())):
        return int(found[1])
    if value.dtype.kind in "iuf" and only is not None and only == int(only):
        return int(only)
    raise ColocamError(f"{where}: {value.tolist()!r} names no frame: it must end in the frame's number")


def _is_hdf5(path: Path) -> ColocamError:
    return ColocamError(f"{path}: saved by MATLAB 7.3 (HDF5), which is not read: save it again with '-v7'")


def _one_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

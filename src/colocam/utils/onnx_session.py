"""Open ONNX files with onnxruntime on the CPU."""

from pathlib import Path
from typing import TYPE_CHECKING

from colocam.errors import ColocamError, first_line
from colocam.utils.device import threads

if TYPE_CHECKING:
    import onnxruntime

_FATAL_ONLY = 4
"""Other messages come as exceptions, which become one line of ours."""


def open_session(
    path: Path, what: str, remedy: str | None = None, share: int | None = None
) -> "onnxruntime.InferenceSession":
    """Open ``path``; errors call it ``what`` and end with the ``remedy``, if there is one.

    ``share`` is the number of threads of one pass; None: all.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - loads slowly
    except ImportError as error:
        raise ColocamError(f"onnxruntime, which {path} needs, is not installed: pip install onnxruntime") from error
    onnxruntime.set_default_logger_severity(_FATAL_ONLY)  # its allocator has no other
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.intra_op_num_threads = share or threads()
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base
        reason = f": {first_line(error)}" if remedy is None else f" ({first_line(error)}): {remedy}"
        raise ColocamError(f"onnxruntime cannot open {what}{reason}") from error

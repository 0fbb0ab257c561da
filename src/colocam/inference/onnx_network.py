"""A model in an ONNX file, run by onnxruntime on the CPU: no torch is imported (extra ``onnx``)."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from colocam.config.card import Card, parse_card
from colocam.errors import ColocamError, first_line
from colocam.types import Float32Array
from colocam.utils.device import cores

if TYPE_CHECKING:
    import onnxruntime

FRAMES = "frames"
"""The file's input: (B, S, S, 3) uint8 RGB, any B."""
OUTPUTS = ("logits", "probabilities", "maps", "peaks", "activations", "threshold")
"""Its outputs: class logits and their softmax (B, K), foreground probabilities (B, h, w), peaks of the classes'
activation maps (B, K), LayerCAMs of the classes (B, K, h', w'), τ as a scalar."""
CARD = "colocam.card"
"""Key of the model card among the file's metadata."""
INSTALL = "pip install 'colocam[onnx]'"

_ERRORS_ONLY = 3


class OnnxNetwork:
    """The network as a file's graph, on the CPU."""

    def __init__(self, session: "onnxruntime.InferenceSession") -> None:
        self.session = session

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[Float32Array, ...]:
        """See :class:`colocam.inference.network.Network`."""
        return tuple(self.session.run(["logits", "maps", "peaks", "activations"], {FRAMES: pictures}))


def open_onnx(path: Path, device: str | None = None) -> tuple[OnnxNetwork, Card]:
    """Open a file of ``colocam export-model``."""
    again = f"make it with 'colocam export-model RUN -o {path.name}'"
    if device not in {None, "cpu"}:
        raise ColocamError(f"--device {device}: {path} runs on the CPU: leave --device out, or give the run folder")
    if not path.is_file():
        raise ColocamError(f"no model at {path}: {again}")
    try:
        import onnxruntime  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ColocamError(f"onnxruntime, which {path} needs, is not installed: {INSTALL}") from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = _threads()
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common base
        raise ColocamError(f"onnxruntime cannot open {path} ({first_line(error)}): {again}") from error
    text = session.get_modelmeta().custom_metadata_map.get(CARD)
    if text is None:
        raise ColocamError(f"{path} is not a model of colocam (it holds no model card): {again}")
    card = parse_card(text, str(path), again)
    _check(session, card, path, again)
    return OnnxNetwork(session), card


def _threads() -> int:
    """As many as torch would take; left to itself, onnxruntime counts cores that this process may not use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return cores()


def _check(session: "onnxruntime.InferenceSession", card: Card, path: Path, remedy: str) -> None:
    """Refuse a graph that does not take and give what its card promises."""
    given = {one.name: (one.type, tuple(one.shape[1:])) for one in (*session.get_inputs(), *session.get_outputs())}
    logits, classes = given.get("logits", (None, None))
    wanted = given.get(FRAMES) == ("tensor(uint8)", (card.size, card.size, 3))
    if not wanted or (logits, classes) != ("tensor(float)", (len(card.tags),)) or not given.keys() >= set(OUTPUTS):
        raise ColocamError(f"{path} does not compute what its model card says: {remedy}")

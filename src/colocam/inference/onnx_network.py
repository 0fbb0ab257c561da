"""A model in an ONNX file, run by onnxruntime on the CPU; torch is not imported."""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from colocam.config.card import Card, parse_card
from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.inference.network import SIDE_BY_SIDE, Ids, NetworkOutput, joined
from colocam.types import Levels
from colocam.utils.device import open_session, threads
from colocam.utils.files import stored
from colocam.utils.progress import long_work

if TYPE_CHECKING:
    import onnxruntime

FRAMES = "frames"
"""The file's input: (B, S, S, 3) uint8 RGB, any B."""
OUTPUTS = ("logits", "probabilities", "maps", "peaks", "activations", "threshold")
"""Its outputs: class logits and their softmax (B, K), foreground probabilities (B, h, w), peaks of the classes'
activation maps (B, K), LayerCAMs of the classes (B, K, h', w'), τ as a scalar."""
CARD = "colocam.card"
"""Key of the model card among the file's metadata."""
PIXELS, ROWS = 2 * 256**2, 16
"""Pixels of one pass for each of its threads, and frames of one pass, at most. More frames make onnxruntime no faster,
and the last pass of a video costs as much as a full one."""


class OnnxNetwork:
    """The graph of an ONNX file, run on the CPU; see :class:`colocam.inference.network.Network`."""

    def __init__(self, session: "onnxruntime.InferenceSession", size: int, share: int) -> None:
        self.session = session
        self.rows = max(1, min(ROWS, share * PIXELS // size**2))
        self.on_gpu = False

    def submit(self, images: Sequence[Levels], ids: Ids, /) -> "Future[NetworkOutput]":
        """Start a pass, beside another one."""
        return long_work(_side_by_side().submit(self._run, joined(images, len(ids)), ids))

    def settle(self) -> None:
        """Do nothing: a pass ends when its future does."""

    def _run(self, images: Levels, ids: Ids) -> NetworkOutput:
        try:
            parts = self.session.run(["logits", "maps", "peaks", "activations"], {FRAMES: images})
        except Exception as error:  # its errors have no common base
            raise ColocamError(f"onnxruntime cannot run the model: {first_line(error)}") from error
        if not all(isinstance(part, np.ndarray) for part in parts):
            raise ColocamError("the outputs of the ONNX file must be arrays of numbers")
        logits, maps, peaks, activations = parts
        return NetworkOutput(logits, maps, peaks, activations, images, ids)


@cache
def _side_by_side() -> ThreadPoolExecutor:
    """Threads that compute one pass each, shared by all networks; each has its share of onnxruntime's own threads."""
    return ThreadPoolExecutor(min(SIDE_BY_SIDE, threads()), "network")


def open_onnx(path: Path, device: str | None = None) -> tuple[OnnxNetwork, Card]:
    """Open a file written by ``colocam export-model``."""
    again = f"make it with 'colocam export-model RUN -o {path.name}'"
    if device not in {None, "cpu"}:
        raise ArgumentError("device", f"{device}: {path} runs on the CPU only: use cpu, or give the run folder")
    if not stored(path).is_file():
        raise ColocamError(f"no model at {path}: {again}")
    share = -(-threads() // SIDE_BY_SIDE)
    session = open_session(path, str(path), again, share)
    text = session.get_modelmeta().custom_metadata_map.get(CARD)
    if text is None:
        raise ColocamError(f"{path} is not a model of colocam (it holds no model card): {again}")
    card = parse_card(text, str(path), again)
    _check(session, card, path, again)
    return OnnxNetwork(session, card.size, share), card


def _check(session: "onnxruntime.InferenceSession", card: Card, path: Path, remedy: str) -> None:
    """Refuse a graph whose inputs or outputs differ from what its model card says."""
    given = {one.name: (one.type, tuple(one.shape[1:])) for one in (*session.get_inputs(), *session.get_outputs())}
    logits, classes = given.get("logits", (None, None))
    wanted = given.get(FRAMES) == ("tensor(uint8)", (card.size, card.size, 3))
    if not wanted or (logits, classes) != ("tensor(float)", (len(card.tags),)) or not given.keys() >= set(OUTPUTS):
        raise ColocamError(f"{path} does not compute what its model card says: {remedy}")

"""What a network computes, what is done to its maps, the checks of both, and the network in an ONNX file."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from colocam.boxes.quantize import to_8bit
from colocam.config.card import Card, parse_card
from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.maps.foreground import array_foreground_of, foreground_of
from colocam.maps.postprocess import array_classes_of, arrays_postprocess, classes_of, of_classes, postprocess
from colocam.types import Float32Array, Levels
from colocam.utils.device import open_session, threads
from colocam.utils.files import stored
from colocam.utils.progress import long_work

if TYPE_CHECKING:
    import onnxruntime
    from torch import Tensor

Array: TypeAlias = "Float32Array | Levels | Tensor"

TYPES = {"maps": ("float32", "uint8"), "frames": ("uint8",), "ids": ("int64",)}
"""Types of the outputs that are not float32 alone."""
Ids = npt.NDArray[np.int64]
"""(B, 2) which frame each row is: number of the stream, index of the frame; −1 for a row of padding."""
SIDE_BY_SIDE = 2
"""Passes that a CPU computes at the same time, each with its share of the threads: threads that share one pass wait for
each other after every layer."""
ROUNDING = 1e-4
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


class NetworkOutput(NamedTuple):
    """What a network computes for B frames: NumPy arrays, or tensors that stay on the network's device.

    Attributes:
        logits: (B, K) class scores before the softmax.
        maps: (B, M, M) foreground probabilities in 0–1, or their 8-bit levels; M is the card's map_size, or size.
        peaks: (B, K) maxima of the classes' activation maps.
        activations: (B, K, h, w) LayerCAMs of all classes.
        frames: the frames, where the maps are: arrays (B, S, S, 3), tensors (B, 3, S, S).
        ids: (B, 2) which frames these are. They went the way of the frames, through every buffer, so that rows of
            another video would show.
    """

    logits: Array
    maps: Array
    peaks: Array
    activations: Array
    frames: Array
    ids: "Ids | Tensor"


class Network(Protocol):
    """A model that is run by PyTorch or onnxruntime; :class:`colocam.inference.passes.Passes` alone calls it."""

    @property
    def rows(self) -> int:
        """Frames of one pass that suit the runtime and its device."""
        ...

    @property
    def on_gpu(self) -> bool:
        """Whether passes leave the cores to others, and belong to one thread."""
        ...

    def submit(self, images: Sequence[Levels], ids: Ids, /) -> "Future[NetworkOutput]":
        """Start a pass over B frames, (b, S, S, 3) RGB in each of ``images``; ids (B, 2), B ≥ the sum of b.

        The images are read before this returns, or with a CPU before the future is done.
        """
        ...

    def settle(self) -> None:
        """Wait until at most one pass is under way, where ``submit`` does not wait; the next one is filled then."""
        ...


class CropNetwork(Network, Protocol):
    """A network that can also read the class of a crop; :class:`Passes` alone calls it."""

    @property
    def crop_rows(self) -> int:
        """Crops of one pass; 0 where the model has no head for crops."""
        ...

    def classify(self, images: Levels, boxes: Float32Array, /) -> Float32Array:
        """Logits (B, K) of what lies in boxes (B, 4) in 0–1 of images (B, S, S, 3), one box in each."""
        ...


def softmax(logits: Float32Array) -> Float32Array:
    """Probabilities (B, K) of logits (B, K)."""
    odds = np.exp(logits - logits.max(1, keepdims=True))
    probabilities: Float32Array = odds / odds.sum(1, keepdims=True)
    return probabilities


class PostProcessing(NamedTuple):
    """What is done to the maps of B frames before boxes are read from them.

    Attributes:
        colors: (B,) ids of frames that complete each other's maps by color (:mod:`colocam.maps.postprocess`); None: no
            color mean.
        windows: (B,) ids of frames that are focused on one class (:mod:`colocam.maps.postprocess`); None: no focus.
        tag: index of that class; None: the class that the classifier finds in each window.
        power: of the focus.
    """

    colors: npt.NDArray[np.int64] | None = None
    windows: npt.NDArray[np.int64] | None = None
    tag: int | None = None
    power: float = 1.0


class HostOutput(NamedTuple):
    """What is known of B frames, in host memory.

    Attributes:
        logits: (B, K).
        maps: (B, h, w), post-processed.
        peaks: (B, K).
        foreground: (B,) mean of the highest pixels of each map before that (:mod:`colocam.maps.foreground`).
        ids: (B, 2).
    """

    logits: Float32Array
    maps: Float32Array | Levels
    peaks: Float32Array
    foreground: Float32Array
    ids: Ids


def completed(output: NetworkOutput) -> "Future[NetworkOutput]":
    """A finished pass, for engines that compute at once."""
    future: Future[NetworkOutput] = Future()
    future.set_result(output)
    return future


def rows_of(output: NetworkOutput, rows: slice) -> NetworkOutput:
    """Some rows of an output."""
    return NetworkOutput(*(part[rows] for part in output))  # type: ignore[arg-type]


class OutputShape(NamedTuple):
    """What the card of a model says of its outputs.

    Attributes:
        classes: K.
        size: S, side of the frames.
        map_size: side of the maps.
    """

    classes: int
    size: int
    map_size: int


def checked(output: NetworkOutput, rows: int, shape: OutputShape) -> NetworkOutput:
    """The output, if it is what the card says: compiled code reads it without checking bounds.

    Values of tensors on a GPU are not read here, since the host would wait; see :func:`require_numbers`.

    Raises:
        ColocamError: names the field, what it is and what it must be.
    """
    side = shape.map_size
    expected: dict[str, tuple[int | None, ...]] = {
        "logits": (rows, shape.classes),
        "maps": (rows, side, side),
        "peaks": (rows, shape.classes),
        "activations": (rows, shape.classes, None, None),
        "frames": (rows, shape.size, shape.size, 3),
        "ids": (rows, 2),
    }
    if not isinstance(output.frames, np.ndarray):
        expected["frames"] = (rows, 3, shape.size, shape.size)
    for name, wanted in expected.items():
        part = getattr(output, name)
        shape_of_part, kind = tuple(part.shape), str(part.dtype).removeprefix("torch.")
        fits = [
            1 <= got <= shape.size if want is None else got == want
            for want, got in zip(wanted, shape_of_part, strict=False)
        ]
        if len(shape_of_part) != len(wanted) or not all(fits):
            text = ", ".join(f"1–{shape.size}" if want is None else str(want) for want in wanted)
            raise ColocamError(f"the network's {name} must have the shape ({text}), got {shape_of_part}")
        if kind not in (allowed := TYPES.get(name, ("float32",))):
            raise ColocamError(f"the network's {name} must be {' or '.join(allowed)}, got {kind}")
        if kind == "float32" and (isinstance(part, np.ndarray) or part.is_cpu):
            _require_range(name, float(part.min()), float(part.max()))
    return output


def require_numbers(output: HostOutput) -> HostOutput:
    """The output, if all of its values are numbers, for outputs that were computed on a GPU."""
    for name, part in output._asdict().items():
        if part.size and part.dtype == np.float32:
            _require_range(name, float(part.min()), float(part.max()))
    return output


def _require_range(name: str, low: float, high: float) -> None:
    """Refuse NaN and infinity, and maps outside 0–1 by more than rounding."""
    if not (isfinite(low) and isfinite(high)):
        raise ColocamError(f"the network's {name} have NaN or infinite values: its weights are damaged: train again")
    if name == "maps" and not (low >= -ROUNDING and high <= 1 + ROUNDING):
        raise ColocamError(f"the network's maps must be in 0–1, got {low:g} to {high:g}")


def postprocess_arrays(parts: Sequence[NetworkOutput], how: PostProcessing) -> HostOutput:
    """Post-process the maps of B frames whose outputs come in ``parts`` of NumPy arrays."""
    logits, maps, peaks, activations, frames, ids = (np.concatenate(part) for part in zip(*parts, strict=True))
    of_class = None
    if how.windows is not None:
        classes = array_classes_of(logits, how.windows, how.tag)
        of_class = activations[np.arange(len(classes)), classes]
    finished = arrays_postprocess(frames, maps, how.colors, of_class, how.power)
    return HostOutput(logits, finished, peaks, array_foreground_of(maps), ids)


def postprocess_tensors(parts: Sequence[NetworkOutput], how: PostProcessing) -> Callable[[], HostOutput]:
    """Start :func:`postprocess_arrays` for tensors; maps in 8 bits stay in 8 bits."""
    import torch  # noqa: PLC0415 - tensors bring torch along, arrays need not

    from colocam.utils.tensors import download  # noqa: PLC0415

    with torch.no_grad():
        logits, maps, peaks, activations, frames, ids = (torch.cat(part) for part in zip(*parts, strict=True))
        # In host memory a histogram takes a quarter of the time of a selection.
        sure = torch.from_numpy(array_foreground_of(maps.numpy())) if maps.is_cpu else foreground_of(maps)
        if how.colors is not None or how.windows is not None:
            # Ids stay on the host: their number is read from them, which would make the host wait for a GPU.
            colors = None if how.colors is None else torch.from_numpy(how.colors)
            activation = None
            if how.windows is not None:
                windows = torch.from_numpy(how.windows)
                activation = of_classes(activations, classes_of(logits, windows, how.tag))
            levels = maps.dtype == torch.uint8
            finished = postprocess(frames, maps.float() / 255 if levels else maps, colors, activation, how.power)
            maps = to_8bit(finished) if levels else finished
        wait = download(logits, maps, peaks, sure, ids)
    return lambda: HostOutput(*wait())


def joined(images: Sequence[Levels], rows: int) -> Levels:
    """(rows, S, S, 3) images of a pass; without a copy where they are one array of so many rows."""
    if len(images) == 1 and len(images[0]) == rows:
        return images[0]
    whole: Levels = np.zeros((rows, *images[0].shape[1:]), np.uint8)
    np.concatenate(images, out=whole[: sum(map(len, images))])
    return whole


class OnnxNetwork:
    """The graph of an ONNX file, run by onnxruntime on the CPU without torch; see :class:`Network`."""

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
        raise ColocamError(f"{path} is not a model of colocam (it contains no model card): {again}")
    card = parse_card(text, str(path), again)
    _check(session, card, path, again)
    return OnnxNetwork(session, card.size, share), card


def _check(session: "onnxruntime.InferenceSession", card: Card, path: Path, remedy: str) -> None:
    """Refuse a graph whose inputs or outputs differ from what its model card says."""
    described = {one.name: (one.type, tuple(one.shape[1:])) for one in (*session.get_inputs(), *session.get_outputs())}
    logits, classes = described.get("logits", (None, None))
    wanted = described.get(FRAMES) == ("tensor(uint8)", (card.size, card.size, 3))
    if not wanted or (logits, classes) != ("tensor(float)", (len(card.tags),)) or not described.keys() >= set(OUTPUTS):
        raise ColocamError(f"{path} does not return what its model card promises: {remedy}")

"""The interface between a :class:`Localizer` and the engine that runs its model."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError
from colocam.maps.focus import array_classes_of
from colocam.maps.postprocess import arrays_postprocess
from colocam.types import Float32Array, Levels

if TYPE_CHECKING:
    from torch import Tensor

Array: TypeAlias = "Float32Array | Levels | Tensor"


class NetworkOutput(NamedTuple):
    """What a network computes for B frames: NumPy arrays, or tensors that stay on the network's device.

    Attributes:
        logits: (B, K) class scores before the softmax.
        maps: (B, h, w) foreground probabilities in 0–1, or their 8-bit levels.
        peaks: (B, K) maxima of the classes' activation maps.
        activations: (B, K, h', w') LayerCAMs of all classes.
        frames: the frames, where the maps are: arrays (B, S, S, 3), tensors (B, 3, S, S).
    """

    logits: Array
    maps: Array
    peaks: Array
    activations: Array
    frames: Array


class Network(Protocol):
    """A model that is run by some engine."""

    @property
    def rows(self) -> int:
        """Frames of one pass that suit the engine and its device."""
        ...

    def submit(self, images: Levels, /) -> "Future[NetworkOutput]":
        """Start a pass over images (B, S, S, 3), RGB; B is the same for all passes of a video."""
        ...


class PostProcessing(NamedTuple):
    """What is done to the maps of B frames before boxes are read from them.

    Attributes:
        colors: (B,) ids of frames that complete each other's maps by colour (:mod:`colocam.maps.color_mean`); None: no
            colour mean.
        windows: (B,) ids of frames that are focused on one class (:mod:`colocam.maps.focus`); None: no focus.
        tag: index of that class; None: the class that the classifier finds in each window.
    """

    colors: npt.NDArray[np.int64] | None = None
    windows: npt.NDArray[np.int64] | None = None
    tag: int | None = None


class HostOutput(NamedTuple):
    """Logits (B, K), post-processed maps (B, h, w) and peaks (B, K) in host memory."""

    logits: Float32Array
    maps: Float32Array | Levels
    peaks: Float32Array


def completed(output: NetworkOutput) -> "Future[NetworkOutput]":
    """A finished pass, for engines that compute at once."""
    future: Future[NetworkOutput] = Future()
    future.set_result(output)
    return future


def checked(output: NetworkOutput, rows: int, classes: int) -> NetworkOutput:
    """The output, if its shapes fit ``rows`` frames and ``classes`` classes.

    Raises:
        ColocamError: names the field, the shape it has and the shape it must have.
    """
    expected: dict[str, tuple[int | None, ...]] = {
        "logits": (rows, classes),
        "maps": (rows, None, None),
        "peaks": (rows, classes),
        "activations": (rows, classes, None, None),
        "frames": (rows, None, None, None),
    }
    for name, shape in expected.items():
        found = tuple(getattr(output, name).shape)
        if len(found) != len(shape) or any(want not in (None, got) for want, got in zip(shape, found, strict=True)):
            wanted = ", ".join("any" if side is None else str(side) for side in shape)
            raise ColocamError(f"the network's {name} must have the shape ({wanted}), got {found}")
    return output


def postprocess_arrays(parts: Sequence[NetworkOutput], how: PostProcessing) -> HostOutput:
    """Post-process the maps of B frames whose outputs come in ``parts`` of NumPy arrays."""
    logits, maps, peaks, activations, frames = (np.concatenate(part) for part in zip(*parts, strict=True))
    own = None
    if how.windows is not None:
        classes = array_classes_of(logits, how.windows, how.tag)
        own = activations[np.arange(len(classes)), classes]
    return HostOutput(logits, arrays_postprocess(frames, maps, how.colors, own), peaks)

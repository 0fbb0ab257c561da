"""From pictures to logits, maps and peaks: the one thing a :class:`Localizer` asks of a model, whatever runs it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from colocam.maps.focus import array_classes_of
from colocam.maps.postprocess import arrays_finish
from colocam.types import Float32Array, Levels

Answers = tuple[Float32Array, Float32Array | Levels, Float32Array]
Ids = npt.NDArray[np.int64]


class Finish(NamedTuple):
    """What is done to the maps of a batch before boxes are read from them.

    Attributes:
        colors: (B,) ids of frames that complete each other's maps by colour (:mod:`colocam.maps.color_mean`).
        shots: (B,) ids of frames that show one thing, where maps are drawn towards it (:mod:`colocam.maps.focus`); else
            None.
        tag: what they show; None: what the classifier sees in each shot.
    """

    colors: Ids | None = None
    shots: Ids | None = None
    tag: int | None = None


AS_THEY_ARE = Finish()


class Network(Protocol):
    """Frames (B, S, S, 3), uint8 RGB → class logits (B, K), foreground (B, h, w), peaks (B, K), and what is below."""

    def __call__(self, pictures: npt.NDArray[np.uint8], /) -> tuple[npt.NDArray[Any], ...]:
        """Logits before the softmax; maps in 0–1 or their 8-bit levels, h × w being the model's own; peaks of CAMs.

        A network whose maps can be focused gives LayerCAMs of all classes, too: (B, K, h', w').
        """
        ...


def begin(network: Network, pictures: Levels, finish: Finish = AS_THEY_ARE) -> Callable[[], Answers]:
    """Begin with a batch; what is returned waits for the answers.

    A network that can work on several batches at a time says so by a method ``begin`` of its own; others are done here.
    """
    own: Callable[..., Callable[[], Answers]] | None = getattr(network, "begin", None)
    if own is not None:
        return own(pictures, finish)
    logits, maps, peaks, *more = network(pictures)
    own_activations = None
    if finish.shots is not None:
        classes = array_classes_of(logits, finish.shots, finish.tag)
        own_activations = more[0][np.arange(len(classes)), classes]
    drawn = arrays_finish(pictures, maps, finish.colors, own_activations)
    return lambda: (logits, drawn, peaks)

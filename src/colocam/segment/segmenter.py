"""The interface between :mod:`colocam.segment.refine` and a promptable segmenter.

Tests: tests/segment/test_refine.py, tests/segment/test_objects.py.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from colocam.types import Float32Array, Levels

if TYPE_CHECKING:
    from torch import Tensor

Array: TypeAlias = "npt.NDArray[Any] | Tensor"

BACKGROUND, POINT, UPPER_LEFT, LOWER_RIGHT, PADDING = 0, 1, 2, 3, -1
"""SAM's labels of points: outside the object, inside it, the corners of a box, and no point at all."""
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
"""Of RGB in 0–255; SAM takes images that are normalized by them."""
BATCH = 8
"""Frames that are prepared together, and of one pass on a GPU."""


class Prompts(NamedTuple):
    """P prompts for each of B frames; a prompt is two labeled points, as SAM's own exporters have it.

    A box is its two corners; a point is followed by one of padding.

    Attributes:
        points: (B, P, 2, 2) x, y in pixels of the segmenter's square input.
        labels: (B, P, 2) of the points, see :data:`POINT`.
    """

    points: Float32Array
    labels: npt.NDArray[np.int64]


class Masks(NamedTuple):
    """k masks (SAM: 3) for each of P prompts in B frames: arrays, or tensors that stay on the segmenter's device.

    Attributes:
        logits: (B, P, k, h, w) positive on the object; they cover the segmenter's square input.
        quality: (B, P, k) the IoU with the true mask that the segmenter expects.
    """

    logits: Array
    quality: Array


class Segmenter(Protocol):
    """Gives masks for prompts. Frames are independent of each other and of their number in a call."""

    @property
    def name(self) -> str:
        """Its name in tables, e.g. ``MobileSAM``."""
        ...

    @property
    def side(self) -> int:
        """Width and height of its input in pixels."""
        ...

    def embed(self, images: Levels, /) -> Any:  # noqa: ANN401 - only the segmenter itself reads it
        """Features of images (B, side, side, 3), RGB: all that :meth:`masks` needs."""
        ...

    def masks(self, embedded: Any, prompts: Prompts, /) -> Masks:  # noqa: ANN401 - what embed returned
        """The masks for the prompts of the B frames."""
        ...

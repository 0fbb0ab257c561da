"""Maps of many frames, in the 8 bits that thresholds and boxes read."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.boxes.quantize import to_8bit
from colocam.cams import full_size
from colocam.cams.source import CamSource
from colocam.colormean import with_color_mean
from colocam.config import ColorMean
from colocam.data.samples import Samples
from colocam.models import LocalizerNet, foreground

Levels = npt.NDArray[np.uint8]
"""(N, S, S) maps in 8 bits: 255 · map, truncated, as the published protocol reads them."""


class Mapper(NamedTuple):
    """What draws the maps of a method.

    Attributes:
        maps: frames (B, 3, S, S) in 0–255, classes (B,) → maps (B, S, S) in 0–1.
        color_mean: whose colours complete them.
    """

    maps: Callable[[Tensor, Tensor], Tensor]
    color_mean: ColorMean = "off"


def cam_mapper(source: CamSource, size: int) -> Mapper:
    """Class activation maps at full size."""
    return Mapper(lambda frames, classes: full_size(source.maps(frames, classes), size))


def decoder_mapper(net: LocalizerNet, color_mean: ColorMean) -> Mapper:
    """The foreground of a decoder."""
    return Mapper(lambda frames, _: foreground(net(frames).map_logits), color_mean)


@torch.inference_mode()
def map_batches(mapper: Mapper, samples: Samples, size: int, device: torch.device) -> Iterator[Levels]:
    """Maps of all samples in order, batch by batch, a clip's frames together."""
    for frames, classes, clips in samples.clips_together(size, device):
        maps = mapper.maps(frames, classes)
        if mapper.color_mean != "off":
            alone = torch.arange(len(maps))
            maps = with_color_mean(frames, maps, clips if mapper.color_mean == "clip" else alone)
        yield to_8bit(maps).cpu().numpy()

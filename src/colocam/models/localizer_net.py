"""The localizer: the frozen classifier and a decoder f on its features, S = softmax(f(X)).

The class may be read from a crop around the object that the decoder found (docs/method/classifier.md). With S the map
and A the LayerCAM of the frame's class, smoothed and scaled to 0–1, the crop's box encloses the connected region of
S ⊙ A² above :data:`THRESHOLD` of its maximum that holds the maximum.

Tests: tests/models/test_networks.py, tests/models/test_object_crop.py, tests/models/test_class_in_map.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.errors import ColocamError, first_line
from colocam.models.cam_formulas import cam, layercam, min_max
from colocam.models.classifier import LEAST_WEIGHT, Classifier
from colocam.models.decoder import make_decoder
from colocam.models.imagenet_names import ImagenetNames
from colocam.models.prior_decoder import weighed
from colocam.types import ReadInMap

SIDE = 56
"""Side of the grid on which the region is found, in cells."""
THRESHOLD = 0.2
"""Share of the maximum; boxes of the preset ``resnet50`` are read at the same."""
EXPANSION = 1.2
"""Sides of a crop, relative to those of the box."""
LEAST_SIDE = 0.16
"""Of a crop, relative to the frame: a smaller one would show blurred pixels."""
REACH = 2
"""Cells that the region grows in one step, so a gap of one cell does not end it."""


class MapsAndLogits(NamedTuple):
    """Output of the localizer.

    Attributes:
        class_logits: (B, K).
        map_logits: (B, 2, M, M) of background and foreground, or (B, 1, M, M), their difference; M is the side of the
            maps.
        peaks: (B, K), the maximum of each class's CAM, for presence.
        activations: (B, K, h, w), LayerCAM of each class at the resolution of the features, up to a positive factor
            of each frame, for focus.
    """

    class_logits: Tensor
    map_logits: Tensor
    peaks: Tensor
    activations: Tensor


class Place(NamedTuple):
    """Where in a frame the class is read.

    Attributes:
        cells: (B, 1, h, w), the map, pooled to the cells of the last feature map.
        side: (B,), side of the object in 0–1; None: the whole frame does not count.
    """

    cells: Tensor
    side: Tensor | None


class LocalizerNet(nn.Module):
    """Frames → class logits and map logits in one pass; only the decoder is trained.

    Args:
        classifier: g, with the encoder.
        channels: of the decoder's blocks, deepest first.
        map_size: side of the maps in pixels; it divides the side of the frames. None: that of the frames.
        crop_head: read the class from a crop around the object, by a head of its own, instead of from the whole frame
            (:func:`object_boxes`).
        class_in_map: read the class from features that are weighted by the map, instead of from the whole frame;
            ``large``: from both (docs/method/classifier.md).
        prior: channels of a second decoder, whose maps weigh those of the first (:mod:`colocam.models.prior_decoder`);
            None: there is none.
        names: reads the class also by the names of ImageNet's classes; None: nothing does. There is no crop head then.
    """

    def __init__(
        self,
        classifier: Classifier,
        channels: tuple[int, ...],
        *,
        map_size: int | None = None,
        crop_head: bool = False,
        class_in_map: ReadInMap = False,
        prior: tuple[int, ...] | None = None,
        names: ImagenetNames | None = None,
    ) -> None:
        super().__init__()
        self.names = names
        self.map_size = map_size
        self.class_in_map = class_in_map
        self.classifier = classifier.requires_grad_(requires_grad=False).eval()
        self.decoder = make_decoder(classifier.encoder, channels)
        self.prior = None if prior is None else make_decoder(classifier.encoder, prior).eval()
        self.crop_head = None
        if crop_head:
            head = classifier.head
            self.crop_head = nn.Linear(head.in_features, head.out_features).requires_grad_(requires_grad=False)

    def train(self, mode: bool = True) -> "LocalizerNet":  # noqa: FBT001, FBT002 - torch's own signature
        """Set the mode of the decoder alone: what is frozen also keeps its batch-norm statistics."""
        super().train(mode)
        self.classifier.eval()
        if self.prior is not None:
            self.prior.eval()
        return self

    def forward(self, frames: Tensor) -> MapsAndLogits:
        """(B, 3, H, W) RGB in 0–255 → class logits, map logits, and the CAMs of every class."""
        with torch.no_grad():
            features = self.classifier.encoder(frames)
            last, every_class = features[-1], self.classifier.head.weight[None]
            peaks = self.classifier.scaled(cam(last, every_class).amax(dim=(2, 3)), last)
            activations = layercam(last, every_class)
        map_logits = self.decode(frames, features)
        if self.crop_head is not None:
            boxes = self.boxes(map_logits, activations, self.classifier.read(last).argmax(1))
            logits = self.crop_head(self.crop_features(frames, expanded(boxes)))
        else:
            last = self.classifier.last(frames, features)
            place = self._place(last, map_logits)
            logits = self.classifier.head(self._pooled(last, place))
            if self.names is not None:
                logits = self.names(logits, last, self._weights(last, place))
        return MapsAndLogits(logits, map_logits, peaks, activations)

    def boxes(self, map_logits: Tensor, activations: Tensor, classes: Tensor) -> Tensor:
        """Boxes (B, 4) in 0–1 of the objects of ``classes`` (B,), for the other outputs of :meth:`forward`."""
        with torch.no_grad():
            # gather, not an index made of the number of frames: that would fix their number in an ONNX file
            chosen = activations.gather(1, classes[:, None, None, None].expand(-1, 1, *activations.shape[2:]))[:, 0]
            return object_boxes(foreground(map_logits), chosen)

    def class_features(self, frames: Tensor) -> Tensor:
        """Input of ``classifier.head``, (B, C), when it reads the class of frames (B, 3, H, W) without crops."""
        with torch.no_grad():
            if not self.class_in_map:
                return self.classifier.pooled(self.classifier.last(frames))
            return self._pooled(*self._last_and_place(frames))

    def evidence(self, frames: Tensor) -> Tensor:
        """What the names of ImageNet's classes say of frames (B, 3, H, W): (B, K), :meth:`ImagenetNames.evidence`."""
        assert self.names is not None
        with torch.no_grad():
            last, place = self._last_and_place(frames)
            return self.names.evidence(last, self._weights(last, place))

    def _last_and_place(self, frames: Tensor) -> tuple[Tensor, Place | None]:
        features = self.classifier.encoder(frames)
        last = self.classifier.last(frames, features)
        return last, self._place(last, self.decode(frames, features))

    def _place(self, last: Tensor, map_logits: Tensor) -> Place | None:
        """Where the class is read in the last feature map (B, C, h, w); None: everywhere."""
        if not self.class_in_map:
            return None
        with torch.no_grad():
            maps = foreground(map_logits)
            return Place(_like(last, maps), _side(maps) if self.class_in_map == "large" else None)

    def _pooled(self, last: Tensor, place: Place | None) -> Tensor:
        """Input of the head, (B, C), from the last feature map (B, C, h, w).

        With ``class_in_map``, the features f weighted by S (docs/method/classifier.md). With ``large``, k f + (1 − k) g
        with the features g of the whole frame and the side k of the object.
        """
        with torch.no_grad():
            if place is None:
                return self.classifier.pooled(last)
            inside = self.classifier.pooled(last, place.cells)
            if place.side is None:
                return inside
            side = place.side[:, None]
            mixed = side * inside + (1 - side) * self.classifier.pooled(last)
            return F.normalize(mixed, dim=1) if self.classifier.normalize else mixed

    @staticmethod
    def _weights(last: Tensor, place: Place | None) -> Tensor:
        """Weights (B, 1, h, w) of sum 1 of the cells that the class is read from, as :meth:`_pooled` weights them."""
        everywhere = torch.ones_like(last[:, :1]) / (last.shape[2] * last.shape[3])
        if place is None:
            return everywhere
        inside = place.cells / place.cells.sum((2, 3), keepdim=True).clamp(min=LEAST_WEIGHT)
        if place.side is None:
            return inside
        side = place.side[:, None, None, None]
        return side * inside + (1 - side) * everywhere

    def crop_features(self, frames: Tensor, boxes: Tensor) -> Tensor:
        """Input of the crop head, (B, C): pooled features, of norm 1, of frames (B, 3, H, W) cut to boxes (B, 4)."""
        with torch.no_grad():
            crops = crop_boxes(frames, boxes, self.classifier.size or frames.shape[-1])
            return F.normalize(self.classifier.encoder(crops)[-1].mean(dim=(2, 3)), dim=1)

    def decode(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Map logits of frames (B, 3, H, W), of which only the size is read, and their features.

        They are (B, 2, M, M) of background and foreground; where a prior weighs them (B, 1, M, M), their difference.
        """
        step = 1 if self.map_size is None else frames.shape[-1] // self.map_size
        small = frames[:, :, ::step, ::step]
        map_logits: Tensor = self.decoder(small, features)
        return map_logits if self.prior is None else weighed(map_logits, self.prior(small, features))

    @contextmanager
    def unweighed(self) -> Iterator[None]:
        """Give the maps of the decoder alone inside this block."""
        prior, self.prior = self.prior, None
        try:
            yield
        finally:
            self.prior = prior

    def maps(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Map logits and activations alone, which saves the pass that reads the class at another size."""
        with torch.no_grad():
            features = self.classifier.encoder(frames)
            activations = layercam(features[-1], self.classifier.head.weight[None])
        return self.decode(frames, features), activations


def check_frames(net: Classifier | LocalizerNet, side: int) -> None:
    """Raise an error if the network cannot take square frames of ``side`` pixels; some accept one size only."""
    classifier = net if isinstance(net, Classifier) else net.classifier
    try:
        with torch.inference_mode():
            net.eval()(torch.zeros(1, 3, side, side))
    except (AssertionError, RuntimeError, ValueError) as error:
        name = classifier.encoder.backbone.name
        also = "" if classifier.size is None else ", classifier.size"
        raise ColocamError(
            f"'{name}' cannot take frames of {side}×{side} pixels (frames.crop{also}): {first_line(error)}"
        ) from error


def foreground(map_logits: Tensor) -> Tensor:
    """(B, 2, M, M) logits → (B, M, M) foreground probability S¹: a softmax of two is a sigmoid of the difference.

    Networks for inference, and those with a prior decoder, give the difference itself, (B, 1, M, M).
    """
    if map_logits.shape[1] == 1:
        return torch.sigmoid(map_logits[:, 0].float())
    return torch.sigmoid(map_logits[:, 1].float() - map_logits[:, 0].float())


def _like(last: Tensor, maps: Tensor) -> Tensor:
    """Maps (B, M, M) as (B, 1, h, w), the cells of a last feature map."""
    return F.adaptive_avg_pool2d(maps[:, None], last.shape[-1]).to(last.dtype)


def _side(maps: Tensor) -> Tensor:
    """Larger side (B,) of the object in 0–1, max(mean over x of max over y of S, mean over y of max over x of S)."""
    return torch.maximum(maps.amax(1).mean(1), maps.amax(2).mean(1))


def object_boxes(maps: Tensor, activations: Tensor) -> Tensor:
    """Boxes (B, 4) x1, y1, x2, y2 in 0–1 of frames; the whole frame where nothing is found.

    Args:
        maps: S, (B, M, M) in 0–1.
        activations: (B, h, w) LayerCAM of each frame's class, of any scale.
    """
    smooth = min_max(activations.float())[:, None]
    for _ in range(2):
        smooth = F.avg_pool2d(smooth, 3, stride=1, padding=1, count_include_pad=False)
    weight = F.interpolate(smooth, size=(SIDE, SIDE), mode="bilinear", align_corners=False).square()
    small = F.adaptive_avg_pool2d(maps[:, None].float(), SIDE) * weight
    region = _region_of_peak(small)[:, 0]
    columns, rows = region.amax(1), region.amax(2)
    starts = torch.stack([columns.argmax(1), rows.argmax(1)], 1)
    ends = SIDE - torch.stack([columns.flip(1).argmax(1), rows.flip(1).argmax(1)], 1)
    return torch.cat([starts, ends], 1).to(small.dtype) / SIDE


def expanded(boxes: Tensor, factor: Tensor | float = EXPANSION) -> Tensor:
    """Boxes (B, 4) with sides multiplied by ``factor``, a number or (B, 1), moved into the frame, at most the frame."""
    sides = ((boxes[:, 2:] - boxes[:, :2]) * factor).clamp(min=LEAST_SIDE).clamp(max=1.0)
    start = (boxes[:, :2] + boxes[:, 2:] - sides) / 2
    start = torch.minimum(start.clamp(min=0.0), 1 - sides)
    return torch.cat([start, start + sides], 1)


def crop_boxes(frames: Tensor, boxes: Tensor, size: int) -> Tensor:
    """Cut (B, 3, H, W) frames to boxes (B, 4) in 0–1: (B, 3, size, size) floats; x2 < x1 mirrors a crop."""
    steps = (torch.arange(2 * size, device=frames.device, dtype=torch.float32) + 0.5) / size - 1  # −1 … 1 of the box
    center, half = boxes[:, :2] + boxes[:, 2:] - 1, boxes[:, 2:] - boxes[:, :2]
    x, y = (center[:, axis, None] + half[:, axis, None] * steps for axis in (0, 1))
    grid = torch.stack([x[:, None, :].expand(-1, 2 * size, -1), y[:, :, None].expand(-1, -1, 2 * size)], 3)
    sampled = F.grid_sample(frames.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)
    return F.avg_pool2d(sampled, 2)  # a mean of four samples: a large crop is sampled too thinly by one


def _region_of_peak(weights: Tensor) -> Tensor:
    """(B, 1, h, w) → 1 in the region above :data:`THRESHOLD` of the maximum that holds the maximum, else 0.

    Grown step by step, as morphological reconstruction does, since a connected region has no closed form. A frame
    without a positive weight is 1 everywhere.
    """
    peak = weights.amax(dim=(2, 3), keepdim=True)
    allowed = (weights >= THRESHOLD * peak).to(weights.dtype)  # all of it where the peak is 0
    region = (weights >= peak).to(weights.dtype)
    for _ in range(SIDE // REACH):
        region = F.max_pool2d(region, 2 * REACH + 1, stride=1, padding=REACH) * allowed
    return region

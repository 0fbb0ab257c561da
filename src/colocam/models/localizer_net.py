"""The localizer: the frozen classifier and a decoder f on its features, S = softmax(f(X))."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.cams import cam, layercam
from colocam.errors import ColocamError, first_line
from colocam.models.classifier import Classifier
from colocam.models.decoder import make_decoder
from colocam.models.object_crop import crop_boxes, expanded, object_boxes


class MapsAndLogits(NamedTuple):
    """Output of the localizer.

    Attributes:
        class_logits: (B, K).
        map_logits: (B, 2, M, M) of background and foreground; M is the side of the maps.
        peaks: (B, K), the maximum of each class's CAM, for presence.
        activations: (B, K, h, w), LayerCAM of each class at the resolution of the features, up to a positive factor
            of each frame, for focus.
    """

    class_logits: Tensor
    map_logits: Tensor
    peaks: Tensor
    activations: Tensor


class LocalizerNet(nn.Module):
    """Frames → class logits and map logits in one pass; only the decoder is trained.

    Args:
        classifier: g, with the encoder.
        channels: of the decoder's blocks, deepest first.
        map_size: side of the maps in pixels; it divides the side of the frames. None: that of the frames.
        crop_head: read the class from a crop around the object, by a head of its own, instead of from the whole frame
            (:mod:`colocam.models.object_crop`).
    """

    def __init__(
        self,
        classifier: Classifier,
        channels: tuple[int, ...],
        *,
        map_size: int | None = None,
        crop_head: bool = False,
    ) -> None:
        super().__init__()
        self.map_size = map_size
        self.classifier = classifier.requires_grad_(requires_grad=False).eval()
        self.decoder = make_decoder(classifier.encoder, channels)
        self.crop_head = None
        if crop_head:
            head = classifier.head
            self.crop_head = nn.Linear(head.in_features, head.out_features).requires_grad_(requires_grad=False)

    def train(self, mode: bool = True) -> "LocalizerNet":  # noqa: FBT001, FBT002 - torch's own signature
        """Set the mode of the decoder alone: a frozen classifier also keeps its batch-norm statistics."""
        super().train(mode)
        self.classifier.eval()
        return self

    def forward(self, frames: Tensor) -> MapsAndLogits:
        """(B, 3, H, W) RGB in 0–255 → class logits, map logits, and the CAMs of every class."""
        with torch.no_grad():
            features = self.classifier.encoder(frames)
            last, every_class = features[-1], self.classifier.head.weight[None]
            peaks = self.classifier.scaled(cam(last, every_class).amax(dim=(2, 3)), last)
            activations = layercam(last, every_class)
        map_logits = self.decode(frames, features)
        if self.crop_head is None:
            logits = self.classifier.logits(frames, features)
        else:
            boxes = self.boxes(map_logits, activations, self.classifier.read(last).argmax(1))
            logits = self.crop_head(self.crop_features(frames, expanded(boxes)))
        return MapsAndLogits(logits, map_logits, peaks, activations)

    def boxes(self, map_logits: Tensor, activations: Tensor, classes: Tensor) -> Tensor:
        """Boxes (B, 4) in 0–1 of the objects of ``classes`` (B,), for the other outputs of :meth:`forward`."""
        with torch.no_grad():
            # gather, not an index made of the number of frames: that would fix their number in an ONNX file
            chosen = activations.gather(1, classes[:, None, None, None].expand(-1, 1, *activations.shape[2:]))[:, 0]
            return object_boxes(foreground(map_logits), chosen)

    def crop_features(self, frames: Tensor, boxes: Tensor) -> Tensor:
        """Input of the crop head, (B, C): pooled features, of norm 1, of frames (B, 3, H, W) cut to boxes (B, 4)."""
        with torch.no_grad():
            crops = crop_boxes(frames, boxes, self.classifier.size or frames.shape[-1])
            return F.normalize(self.classifier.encoder(crops)[-1].mean(dim=(2, 3)), dim=1)

    def decode(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Map logits (B, 2, M, M) of frames (B, 3, H, W), of which only the size is read, and their features."""
        step = 1 if self.map_size is None else frames.shape[-1] // self.map_size
        map_logits: Tensor = self.decoder(frames[:, :, ::step, ::step], features)
        return map_logits

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
        name, also = classifier.encoder.backbone.name, "" if classifier.size is None else ", classifier.size"
        raise ColocamError(
            f"'{name}' cannot take frames of {side}×{side} pixels (frames.crop{also}): {first_line(error)}"
        ) from error


def foreground(map_logits: Tensor) -> Tensor:
    """(B, 2, M, M) logits → (B, M, M) foreground probability S¹: a softmax of two is a sigmoid of the difference.

    Networks for inference give the difference itself, (B, 1, M, M).
    """
    if map_logits.shape[1] == 1:
        return torch.sigmoid(map_logits[:, 0].float())
    return torch.sigmoid(map_logits[:, 1].float() - map_logits[:, 0].float())

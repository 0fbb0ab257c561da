"""Localizer: the frozen classifier with a decoder f on its features, S = softmax(f(X))."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from colocam.cams import cam, layercam
from colocam.errors import ColocamError, first_line
from colocam.models.classifier import Classifier
from colocam.models.decoder import make_decoder


class MapsAndLogits(NamedTuple):
    """What one pass of the localizer yields.

    Attributes:
        class_logits: (B, K).
        map_logits: (B, 2, H, W): background and foreground at the frame's resolution, before the softmax.
        peaks: (B, K), the largest value of each class's activation map; presence is read from it.
        activations: (B, K, h, w), LayerCAM of each class at the resolution of the features; maps are focused by it.
    """

    class_logits: Tensor
    map_logits: Tensor
    peaks: Tensor
    activations: Tensor


class LocalizerNet(nn.Module):
    """Frames → class logits and map logits in one pass; only the decoder learns."""

    def __init__(self, classifier: Classifier, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.classifier = classifier.requires_grad_(requires_grad=False).eval()
        self.decoder = make_decoder(classifier.encoder, channels)

    def train(self, mode: bool = True) -> "LocalizerNet":  # noqa: FBT001, FBT002 - torch's own signature
        """Switch the decoder alone: a frozen classifier keeps its batch-norm statistics, too."""
        super().train(mode)
        self.classifier.eval()
        return self

    def forward(self, frames: Tensor) -> MapsAndLogits:
        """(B, 3, H, W) RGB in 0–255 → class logits (B, K), map logits (B, 2, H, W), and what the CAMs say."""
        with torch.no_grad():
            logits, features = self.classifier(frames)
            last, weights = features[-1][:, None], self.classifier.head.weight  # broadcast to every class
            peaks, activations = cam(last, weights).amax(dim=(2, 3)), layercam(last, weights)
        return MapsAndLogits(logits, self.decoder(frames, features), peaks, activations)


def check_frames(net: Classifier | LocalizerNet, side: int) -> None:
    """Raise an error if the network cannot take square frames of ``side`` pixels; some accept one size only."""
    classifier = net if isinstance(net, Classifier) else net.classifier
    try:
        with torch.inference_mode():
            net.eval()(torch.zeros(1, 3, side, side))
    except (AssertionError, RuntimeError, ValueError) as error:
        name = classifier.encoder.backbone.name
        raise ColocamError(
            f"'{name}' cannot take frames of {side}×{side} pixels (frames.crop): {first_line(error)}"
        ) from error


def foreground(map_logits: Tensor) -> Tensor:
    """S¹ of (B, 2, H, W) logits: softmax over two maps, which is a sigmoid of their difference. (B, H, W)."""
    return torch.sigmoid(map_logits[:, 1].float() - map_logits[:, 0].float())

"""The localizer: the frozen classifier and a decoder f on its features, S = softmax(f(X))."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from colocam.cams import cam, layercam
from colocam.errors import ColocamError, first_line
from colocam.models.classifier import Classifier
from colocam.models.decoder import make_decoder
from colocam.models.own_encoder import OwnEncoder


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
        own_encoder: the decoder reads features of an encoder that is trained with it and begins as a copy of the
            classifier's. The classifier then reads the frames at its own size alone.
    """

    def __init__(
        self,
        classifier: Classifier,
        channels: tuple[int, ...],
        *,
        map_size: int | None = None,
        own_encoder: bool = False,
    ) -> None:
        super().__init__()
        self.map_size = map_size
        self.classifier = classifier.requires_grad_(requires_grad=False).eval()
        self.decoder = make_decoder(classifier.encoder, channels)
        if own_encoder:
            self.decoder.own = OwnEncoder(classifier.encoder)

    def train(self, mode: bool = True) -> "LocalizerNet":  # noqa: FBT001, FBT002 - torch's own signature
        """Set the mode of the decoder alone: a frozen classifier also keeps its batch-norm statistics."""
        super().train(mode)
        self.classifier.eval()
        return self

    def forward(self, frames: Tensor) -> MapsAndLogits:
        """(B, 3, H, W) RGB in 0–255 → class logits, map logits, and the CAMs of every class."""
        with torch.no_grad():
            logits, seen = self.classifier(self._classified(frames))
            last, every_class = seen[-1], self.classifier.head.weight[None]
            peaks = self.classifier.scaled(cam(last, every_class).amax(dim=(2, 3)), last)
            activations = layercam(last, every_class)
        features = seen if self.decoder.own is None else self.decoder.own(frames)
        return MapsAndLogits(logits, self.decode(frames, features), peaks, activations)

    def features(self, frames: Tensor) -> list[Tensor]:
        """The feature maps that the decoder reads, [(B, C_i, h_i, w_i)], of frames (B, 3, H, W)."""
        features: list[Tensor] = (self.decoder.own or self.classifier.encoder)(frames)
        return features

    def _classified(self, frames: Tensor) -> Tensor:
        """The frames as the classifier reads them: at its own size, where nothing else needs its features."""
        return frames if self.decoder.own is None else self.classifier.class_frames(frames)

    def decode(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Map logits (B, 2, M, M) of frames (B, 3, H, W), of which only the size is read, and their features."""
        step = 1 if self.map_size is None else frames.shape[-1] // self.map_size
        map_logits: Tensor = self.decoder(frames[:, :, ::step, ::step], features)
        return map_logits

    def maps(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Map logits and activations alone, which saves the pass that reads the class at another size."""
        with torch.no_grad():
            seen = self.classifier.encoder(self._classified(frames))
            activations = layercam(seen[-1], self.classifier.head.weight[None])
        features = seen if self.decoder.own is None else self.decoder.own(frames)
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
    """(B, 2, M, M) logits → (B, M, M) foreground probability S¹: a softmax of two is a sigmoid of the difference."""
    return torch.sigmoid(map_logits[:, 1].float() - map_logits[:, 0].float())

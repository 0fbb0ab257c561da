"""Localizer: the frozen classifier with a U-Net decoder f on its features, S = softmax(f(X))."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoder
from torch import Tensor, nn

from colocam.errors import ColocamError
from colocam.models.classifier import Classifier


class MapsAndLogits(NamedTuple):
    """What one pass of the localizer yields.

    Attributes:
        class_logits: (B, K).
        map_logits: (B, 2, H, W): background and foreground at the frame's resolution, before the softmax.
    """

    class_logits: Tensor
    map_logits: Tensor


class MapDecoder(nn.Module):
    """The decoder f: a U-Net's expanding half with a 3×3 head of two maps.

    With one block fewer than there are feature maps it ends at the finest of them, and its maps are resized: half the
    time of a step on a CPU.
    """

    def __init__(self, encoder_channels: list[int], channels: tuple[int, ...]) -> None:
        super().__init__()
        depth = len(encoder_channels)
        if len(channels) not in {depth, depth - 1}:
            raise ColocamError(
                f"localizer.decoder has {len(channels)} channel numbers, but the backbone gives {depth} feature maps: "
                f"name one for each, or one fewer for maps at the resolution of the finest"
            )
        # smp's decoder expects the frame itself (3 channels) in front of the features
        self.unet = UnetDecoder([3, *encoder_channels], list(channels), n_blocks=len(channels))
        self.head = nn.Conv2d(channels[-1], 2, kernel_size=3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Frames (B, 3, H, W), for their size alone, and features, finest first → (B, 2, H, W)."""
        logits: Tensor = self.head(self.unet([frames, *features]))
        return F.interpolate(logits, size=frames.shape[2:], mode="bilinear", align_corners=False)


class LocalizerNet(nn.Module):
    """Frames → class logits and map logits in one pass; only the decoder learns."""

    def __init__(self, classifier: Classifier, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.classifier = classifier.requires_grad_(requires_grad=False).eval()
        self.decoder = MapDecoder(classifier.encoder.channels, channels)

    def train(self, mode: bool = True) -> "LocalizerNet":  # noqa: FBT001, FBT002 - torch's own signature
        """Switch the decoder alone: a frozen classifier keeps its batch-norm statistics, too."""
        super().train(mode)
        self.classifier.eval()
        return self

    def forward(self, frames: Tensor) -> MapsAndLogits:
        """(B, 3, H, W) RGB in 0–255 → class logits (B, K), map logits (B, 2, H, W)."""
        with torch.no_grad():
            logits, features = self.classifier(frames)
        return MapsAndLogits(logits, self.decoder(frames, features))


def foreground(map_logits: Tensor) -> Tensor:
    """S¹ of (B, 2, H, W) logits: softmax over two maps, which is a sigmoid of their difference. (B, H, W)."""
    return torch.sigmoid(map_logits[:, 1].float() - map_logits[:, 0].float())

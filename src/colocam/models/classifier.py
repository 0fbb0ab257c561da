"""The classifier g: encoder, global average pooling and a linear layer. Pr(k | X) = softmax(g(X))_k."""

from typing import NamedTuple

from torch import Tensor, nn

from colocam.config import Backbone
from colocam.models.encoder import Encoder


class Classification(NamedTuple):
    """Output of the classifier.

    Attributes:
        logits: (B, K).
        features: the encoder's feature maps [(B, C_i, h_i, w_i)], finest first.
    """

    logits: Tensor
    features: list[Tensor]


class Classifier(nn.Module):
    """Frames → logits of the tags, and the encoder's features."""

    def __init__(self, backbone: Backbone, classes: int) -> None:
        super().__init__()
        self.encoder = Encoder(backbone)
        self.head = nn.Linear(self.encoder.channels[-1], classes)

    def forward(self, frames: Tensor) -> Classification:
        """(B, 3, H, W) RGB in 0–255 → logits (B, K) and features."""
        features = self.encoder(frames)
        return Classification(self.head(features[-1].mean(dim=(2, 3))), features)

"""Classifier g: encoder, global average pooling and a linear layer. Pr(k | X) = softmax(g(X))_k."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.models.encoder import Encoder


class Classification(NamedTuple):
    """What one pass of the classifier yields.

    Attributes:
        logits: (B, K).
        features: the encoder's maps, finest first; the last is what the CAM is read from.
    """

    logits: Tensor
    features: list[Tensor]


class Classifier(nn.Module):
    """Frames → logits of the tags, and the features behind them."""

    def __init__(self, backbone: Backbone, classes: int) -> None:
        super().__init__()
        self.encoder = Encoder(backbone)
        self.head = nn.Linear(self.encoder.channels[-1], classes)

    def forward(self, frames: Tensor) -> Classification:
        """(B, 3, H, W) RGB in 0–255 → logits (B, K) and features."""
        features = self.encoder(frames)
        return Classification(self.head(features[-1].mean(dim=(2, 3))), features)

    def peaks(self, features: Tensor) -> Tensor:
        """Largest value of each class's activation map Σ_k w_k A_k: last features (B, C, h, w) → (B, K)."""
        return torch.einsum("bchw,kc->bkhw", features, self.head.weight).amax(dim=(2, 3))

    def activations(self, features: Tensor) -> Tensor:
        """LayerCAM of every class, Σ_k ReLU(w_k) A_k: last features (B, C, h, w) → (B, K, h, w), of any scale."""
        return torch.einsum("bchw,kc->bkhw", features, self.head.weight.clamp(min=0)).clamp(min=0)

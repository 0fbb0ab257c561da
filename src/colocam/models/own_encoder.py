"""An encoder that belongs to a decoder: it is trained for the maps, while the classifier keeps its own as it is."""

from copy import deepcopy

from torch import Tensor, nn

from colocam.models.encoder import Encoder


class OwnEncoder(nn.Module):
    """A trainable copy of an encoder. Its batch norms keep their statistics: steps have few, similar frames."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = deepcopy(encoder).requires_grad_(requires_grad=True).eval()

    def train(self, mode: bool = True) -> "OwnEncoder":  # noqa: FBT001, FBT002, ARG002 - torch's own signature
        """Stay in evaluation mode."""
        return super().train(mode=False)

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) RGB in 0–255 → features [(B, C_i, H_i, W_i)], finest first."""
        features: list[Tensor] = self.encoder(frames)
        return features

"""The encoder: frames → feature maps of the configured backbone."""

import torch
from torch import Tensor, nn

from colocam.config import Backbone
from colocam.models import vit
from colocam.models.cnn import build_cnn, move_strides
from colocam.models.inception import build_inception
from colocam.models.timm_networks import Trunk, family, normalisation
from colocam.models.vgg import build_vgg
from colocam.models.vit import build_vit


class Encoder(nn.Module):
    """Frames → feature maps, finest first.

    Attributes:
        channels: channels of each feature map, finest first.
        backbone: settings that rebuild this network without initial weights, independent of timm's defaults.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        network, self.channels, self._last_stage = _build(backbone)
        if backbone.stride_in_1x1:
            move_strides(network, backbone.name)
        self.network = network.to(memory_format=torch.channels_last)
        mean, std = normalisation(backbone)
        self.backbone = backbone.model_copy(update={"pretrained": False, "weights": None, "mean": mean, "std": std})
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1) * 255, persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1) * 255, persistent=False)

    def forward(self, frames: Tensor) -> list[Tensor]:
        """(B, 3, H, W) RGB in 0–255, any dtype → features [(B, C_i, H_i, W_i)], finest first."""
        assert isinstance(self.mean, Tensor)
        assert isinstance(self.std, Tensor)
        normalised = (frames.to(self.mean.dtype) - self.mean) / self.std
        features: list[Tensor] = self.network(normalised.contiguous(memory_format=torch.channels_last))
        return features

    def last_stage(self) -> list[nn.Parameter]:
        """Parameters after the last but one feature map."""
        return [p for name, p in self.network.named_parameters() if name.startswith(self._last_stage)]


def _build(backbone: Backbone) -> Trunk:
    match family(backbone.name):
        case "vgg":
            return build_vgg(backbone)
        case "inception_v3":
            return build_inception(backbone)
        case kind if kind in vit.FAMILIES:
            return build_vit(backbone)
        case _:
            return build_cnn(backbone)

"""The decoder f: feature maps → logits of background and foreground at the resolution of the maps.

Tests: tests/models/test_networks.py.
"""

from contextlib import nullcontext
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.errors import ColocamError
from colocam.models.classifier import Encoder


def make_decoder(encoder: Encoder, channels: tuple[int, ...]) -> "UNet | TokenHead":
    """Build the decoder that fits the encoder's backbone; ``channels`` are those of its blocks, deepest first."""
    if encoder.decoder == "tokens":
        return TokenHead(encoder.channels[-1], channels)
    return UNet(encoder.channels, channels, center=encoder.decoder == "unet with center")


class UNet(nn.Module):
    """The expanding half of a U-Net on convolutional features, with a 3×3 convolution to two maps.

    Args:
        encoder_channels: of the feature maps, finest first.
        channels: of the blocks, deepest first: one per feature map, or one fewer. With one fewer, the decoder ends at
            the resolution of the finest feature map and its output is resized, which halves the time of a step on a
            CPU.
        center: the deepest features first pass two more convolutions, as in the published decoder of VGG.
    """

    def __init__(self, encoder_channels: list[int], channels: tuple[int, ...], *, center: bool = False) -> None:
        super().__init__()
        depth = len(encoder_channels)
        if len(channels) not in {depth, depth - 1}:
            raise ColocamError(
                f"localizer.decoder has {len(channels)} channel numbers, but the backbone has {depth} feature maps: "
                f"name one for each, or one fewer for maps at the resolution of the finest"
            )
        self.unet = ExpandingPath(encoder_channels, channels, center=center)
        self.head = nn.Conv2d(channels[-1], 2, kernel_size=3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Frames (B, 3, H, W), of which only the size is used, and features, finest first → (B, 2, H, W)."""
        logits: Tensor = self.head(self.unet([frames, *features]))
        return F.interpolate(logits, size=frames.shape[2:], mode="bilinear", align_corners=False)


class ExpandingPath(nn.Module):
    """The blocks of a U-Net, named as in segmentation_models_pytorch, with whose decoder models were stored before."""

    def __init__(self, encoder_channels: list[int], channels: tuple[int, ...], *, center: bool) -> None:
        super().__init__()
        deepest, *skips = reversed(encoder_channels)
        self.center = nn.Sequential(*(_convolved(deepest, deepest) for _ in range(2 if center else 0)))
        between = zip((deepest, *channels[:-1]), (*skips, 0), channels, strict=False)
        self.blocks = nn.ModuleList(Block(into + skip, out) for into, skip, out in between)

    def forward(self, maps: list[Tensor]) -> Tensor:
        """Frames and features, finest first → (B, C, h, w) of the last block, at the size of one of them."""
        deepest, *finer = reversed(maps)
        x: Tensor = self.center(deepest)
        for index, (block, fine) in enumerate(zip(self.blocks, finer, strict=False)):
            x = block(x, fine.shape[2:], None if index == len(finer) - 1 else fine)
        return x


class Block(nn.Module):
    """Enlarge, concatenate the encoder's features of that size, and convolve twice.

    With mixed precision, PyTorch would convert what is enlarged to float32, and with it what is concatenated: it keeps
    its type here, which gives the same result with half of the bytes.
    """

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = _convolved(into, out), _convolved(out, out)

    def forward(self, x: Tensor, size: torch.Size, skip: Tensor | None) -> Tensor:
        """(B, C, h, w) and, at ``size`` (H, W), the encoder's features → (B, C', H, W)."""
        kind = x.device.type
        mixed = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
        with torch.autocast(kind, enabled=False) if mixed else nullcontext():
            x = F.interpolate(x, size=size, mode="nearest")
            if skip is not None:
                x = torch.cat([x, skip.to(x.dtype)], dim=1)
        result: Tensor = self.conv2(self.conv1(x))
        return result


def _convolved(into: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True))


class TokenHead(nn.Module):
    """Localization head of a transformer: bilinear upsampling and a 3×3 convolution, block by block.

    The last block works at the frame's resolution, the one before it at half of it, and so on, but not below the
    tokens' own grid: with patches of 14 or 16 pixels, four blocks double the resolution each.
    """

    def __init__(self, tokens: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_convolved(into, out) for into, out in pairwise((tokens, *channels)))
        self.head = nn.Conv2d(channels[-1], 2, kernel_size=3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Frames (B, 3, H, W), of which only the size is used, and tokens [(B, C, h, w)] → (B, 2, H, W)."""
        x = features[-1]
        for halvings, block in zip(reversed(range(len(self.blocks))), self.blocks, strict=True):
            size = [max(now, side >> halvings) for now, side in zip(x.shape[2:], frames.shape[2:], strict=True)]
            x = block(F.interpolate(x, size=size, mode="bilinear", align_corners=False))
        maps: Tensor = self.head(x)
        return maps

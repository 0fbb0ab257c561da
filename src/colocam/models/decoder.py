"""The decoder f: feature maps → logits of background and foreground at the resolution of the maps."""

from contextlib import nullcontext
from itertools import pairwise

import torch
import torch.nn.functional as F
from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoder, UnetDecoderBlock
from torch import Tensor, nn

from colocam.errors import ColocamError
from colocam.models.classifier import Encoder
from colocam.models.networks import Vgg, Vit


def make_decoder(encoder: Encoder, channels: tuple[int, ...]) -> "UNet | TokenHead":
    """Build the decoder that fits the encoder's backbone; ``channels`` are those of its blocks, deepest first."""
    match encoder.network:
        case Vit():
            return TokenHead(encoder.channels[-1], channels)
        case Vgg():  # the published number of parameters includes a centre block, which smp adds to VGG alone
            return UNet(encoder.channels, channels, centre=True)
        case _:
            return UNet(encoder.channels, channels)


class UNet(nn.Module):
    """The expanding half of a U-Net on convolutional features, with a 3×3 convolution to two maps.

    Args:
        encoder_channels: of the feature maps, finest first.
        channels: of the blocks, deepest first: one per feature map, or one fewer. With one fewer, the decoder ends at
            the resolution of the finest feature map and its output is resized, which halves the time of a step on a
            CPU.
        centre: the deepest features first pass two more convolutions.
    """

    def __init__(self, encoder_channels: list[int], channels: tuple[int, ...], *, centre: bool = False) -> None:
        super().__init__()
        depth = len(encoder_channels)
        if len(channels) not in {depth, depth - 1}:
            raise ColocamError(
                f"localizer.decoder has {len(channels)} channel numbers, but the backbone gives {depth} feature maps: "
                f"name one for each, or one fewer for maps at the resolution of the finest"
            )
        # smp's decoder expects the frame itself (3 channels) in front of the features
        self.unet = UnetDecoder([3, *encoder_channels], list(channels), len(channels), add_center_block=centre)
        self.unet.blocks = nn.ModuleList(map(Block, self.unet.blocks))
        self.head = nn.Conv2d(channels[-1], 2, kernel_size=3, padding=1)
        self.to(memory_format=torch.channels_last)

    def forward(self, frames: Tensor, features: list[Tensor]) -> Tensor:
        """Frames (B, 3, H, W), of which only the size is used, and features, finest first → (B, 2, H, W)."""
        logits: Tensor = self.head(self.unet([frames, *features]))
        return F.interpolate(logits, size=frames.shape[2:], mode="bilinear", align_corners=False)


class Block(nn.Module):
    """A block of smp's decoder that enlarges its input in the type that it has: the same result, half of the bytes.

    With mixed precision, PyTorch converts what is enlarged to float32, and with it what is concatenated.
    """

    def __init__(self, block: UnetDecoderBlock) -> None:
        super().__init__()
        self.conv1, self.conv2 = block.conv1, block.conv2

    def forward(self, x: Tensor, height: int, width: int, skip_connection: Tensor | None = None) -> Tensor:
        """(B, C, h, w) and, at (height, width), the encoder's features → (B, C', height, width)."""
        kind = x.device.type
        mixed = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
        with torch.autocast(kind, enabled=False) if mixed else nullcontext():
            x = F.interpolate(x, size=(height, width), mode="nearest")
            if skip_connection is not None:
                x = torch.cat([x, skip_connection.to(x.dtype)], dim=1)
        result: Tensor = self.conv2(self.conv1(x))
        return result


class TokenHead(nn.Module):
    """Localisation head of a transformer: bilinear upsampling and a 3×3 convolution, block by block.

    The last block works at the frame's resolution, the one before it at half of it, and so on, but not below the
    tokens' own grid: with patches of 14 or 16 pixels, four blocks double the resolution each.
    """

    def __init__(self, tokens: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True))
            for into, out in pairwise((tokens, *channels))
        )
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

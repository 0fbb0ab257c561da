"""MobileSAM (Zhang et al., 2023) run by PyTorch: timm's TinyViT as image encoder, and SAM's decoder."""

import re
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from colocam.errors import ColocamError, first_line
from colocam.segment.sam_decoder import WIDTH, LayerNorm2d, MaskDecoder, PromptEncoder
from colocam.segment.segmenter import Masks, Prompts
from colocam.types import Levels

SIDE = 1024
"""Width and height of the input that the published weights were trained with."""
ROWS = {"cpu": 1, "cuda": 8}
"""Frames of one pass."""
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)

_RENAMED = (
    (
        re.compile(r"^image_encoder\.layers\.(\d)\.downsample\."),
        lambda m: f"encoder.stages.{int(m[1]) + 1}.downsample.",
    ),
    (re.compile(r"^image_encoder\.layers\."), "encoder.stages."),
    (re.compile(r"^image_encoder\.patch_embed\.seq\.0\."), "encoder.patch_embed.conv1."),
    (re.compile(r"^image_encoder\.patch_embed\.seq\.2\."), "encoder.patch_embed.conv2."),
    (re.compile(r"^image_encoder\.neck\."), "neck."),
    (re.compile(r"(?<=^encoder\.)(.*)\.c\.weight$"), r"\1.conv.weight"),
)
_UNUSED = re.compile(r"^image_encoder\.(head|norm_head)\.|^prompt_encoder\.mask_downscaling\.")


class MobileSamNet(nn.Module):
    """The network: image encoder with its neck, prompt encoder and mask decoder."""

    encoder: Any
    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.encoder = timm.create_model("tiny_vit_5m_224", num_classes=0)
        self.encoder.head = nn.Identity()
        # The last stage keeps the resolution: an embedding has a cell for 16 × 16 pixels.
        self.encoder.stages[-1].downsample.conv2.conv.stride = (1, 1)
        self.neck = nn.Sequential(
            nn.Conv2d(self.encoder.num_features, WIDTH, 1, bias=False),
            LayerNorm2d(WIDTH),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False),
            LayerNorm2d(WIDTH),
        )
        self.prompt_encoder = PromptEncoder()
        self.mask_decoder = MaskDecoder()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None], persistent=False)
        self.register_buffer("std", torch.tensor(STD)[:, None, None], persistent=False)

    def embed(self, images: Tensor) -> Tensor:
        """Features (B, C, S/16, S/16) of images (B, 3, S, S) in 0–255."""
        features: Tensor = self.neck(self.encoder.forward_features((images - self.mean) / self.std))
        return features

    def masks(self, features: Tensor, points: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (B, P, 3, S/4, S/4) and qualities (B, P, 3); see :class:`colocam.segment.segmenter.Prompts`."""
        side, (frames, prompts) = 16 * features.shape[-1], points.shape[:2]
        tokens = self.prompt_encoder(points, labels, side).flatten(0, 1)
        images = (features + self.prompt_encoder.no_mask_embed.weight[..., None, None]).repeat_interleave(prompts, 0)
        positions = self.prompt_encoder.pe_layer.grid(*features.shape[2:])
        logits, quality = self.mask_decoder(images, positions, tokens)
        return logits.unflatten(0, (frames, prompts)), quality.unflatten(0, (frames, prompts))


class MobileSam:
    """MobileSAM on a device, see :class:`colocam.segment.segmenter.Segmenter`.

    Every pass has the same number of rows, so that the kernels, and with them the rounding, do not depend on the number
    of frames. On a GPU the network computes in bfloat16 where autocast allows it.
    """

    name = "MobileSAM"

    def __init__(self, net: MobileSamNet, device: torch.device, *, side: int = SIDE) -> None:
        """``net`` is changed: batch norms are folded, and it moves to ``device``."""
        self.device = device
        self.side = side
        self.rows = ROWS[device.type]
        self.net = _folded(net.eval()).to(device).to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def embed(self, images: Levels, /) -> Tensor:
        """Features (B, C, S/16, S/16), float32."""
        frames = torch.from_numpy(images)
        if self.device.type == "cuda":
            frames = frames.pin_memory().to(self.device, non_blocking=True)
        with self._precision():
            parts = [self.net.embed(part).float() for part in self._passes(frames.permute(0, 3, 1, 2))]
        return torch.cat(parts)[: len(images)]

    @torch.inference_mode()
    def masks(self, embedded: Tensor, prompts: Prompts, /) -> Masks:
        """Masks with float32 logits."""
        given = (embedded, *(torch.from_numpy(part).to(self.device) for part in prompts))
        with self._precision():
            parts = [self.net.masks(*part) for part in zip(*map(self._passes, given), strict=True)]
        logits, quality = (torch.cat(part)[: len(embedded)].float() for part in zip(*parts, strict=True))
        return Masks(logits, quality)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def _passes(self, rows: Tensor) -> list[Tensor]:
        """Parts of ``self.rows`` rows; the last is filled with its last row."""
        missing = -len(rows) % self.rows
        filled = torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])])
        return [filled[start : start + self.rows] for start in range(0, len(filled), self.rows)]


def open_mobile_sam(path: Path, device: torch.device) -> MobileSam:
    """Open a .safetensors file with the tensors of MobileSAM's checkpoint, named as there."""
    try:
        tensors = load_file(path)
    except Exception as error:
        raise ColocamError(f"cannot read the segmenter {path}: {first_line(error)}") from error
    net = MobileSamNet()
    try:
        net.load_state_dict({renamed(name): tensor for name, tensor in tensors.items() if not _UNUSED.match(name)})
    except RuntimeError as error:
        raise ColocamError(f"{path} does not hold the weights of MobileSAM: {first_line(error)}") from error
    return MobileSam(net, device)


def renamed(name: str) -> str:
    """The name of a tensor of the checkpoint in :class:`MobileSamNet`."""
    for pattern, new in _RENAMED:
        name = pattern.sub(new, name)
    return name


def _folded(net: MobileSamNet) -> MobileSamNet:
    """Fold each batch norm of the encoder into the convolution before it."""
    for name, module in list(net.encoder.named_modules()):
        if hasattr(module, "fuse"):
            net.encoder.set_submodule(name, module.fuse())
    return net

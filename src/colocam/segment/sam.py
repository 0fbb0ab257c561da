"""MobileSAM (Zhang et al., 2023) run by PyTorch: timm's TinyViT as image encoder, and SAM's decoder.

SAM's prompt encoder and mask decoder (Kirillov et al., Segment Anything, 2023) take prompts of labeled points. Module
names are those of the published checkpoints (Apache-2.0).

Tests: tests/segment/test_onnx_segmenter.py, tests/segment/test_mobile_sam.py.
"""

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import timm
import torch
from safetensors.torch import load_file
from timm.layers.norm import LayerNorm2d
from torch import Tensor, nn
from torch.nn import functional as F

from colocam.errors import ColocamError, first_line
from colocam.segment.segmenter import BATCH, MEAN, STD, Masks, Prompts
from colocam.types import Levels
from colocam.utils.cuda_graphs import Recorded, Tensors
from colocam.utils.tensors import upload

WIDTH = 256
"""C, channels of an image's features and of a token."""
HEADS = 8
HIDDEN = 2048
MASK_TOKENS = 4
"""The first gives a single mask, the others three masks for an ambiguous prompt."""
SIDE = 1024
"""Width and height of the input that the published weights were trained with."""
ROWS = {"cpu": 1, "cuda": BATCH}
"""Frames of one pass."""


class PositionEncoding(nn.Module):
    """Random Fourier features of positions: sin and cos of 2π (2x − 1) · G, with x in 0–1."""

    positional_encoding_gaussian_matrix: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positional_encoding_gaussian_matrix", torch.zeros(2, WIDTH // 2))

    def forward(self, positions: Tensor) -> Tensor:
        """(…, 2) x, y in 0–1 → (…, C)."""
        # a product and a sum, since autocast would round the phases of a matrix product to 8 bits
        turns = ((2 * positions[..., None] - 1) * self.positional_encoding_gaussian_matrix).sum(-2)
        phases = 2 * math.pi * turns
        return torch.cat([phases.sin(), phases.cos()], dim=-1)

    def grid(self, height: int, width: int) -> Tensor:
        """(height · width, C) encodings of the centers of a grid's cells."""
        device = self.positional_encoding_gaussian_matrix.device
        y = (torch.arange(height, device=device) + 0.5) / height
        x = (torch.arange(width, device=device) + 0.5) / width
        encoded: Tensor = self(torch.cartesian_prod(y, x).flip(-1))
        return encoded


class PromptEncoder(nn.Module):
    """Labeled points → tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.pe_layer = PositionEncoding()
        self.point_embeddings = nn.ModuleList(nn.Embedding(1, WIDTH) for _ in range(4))
        self.not_a_point_embed = nn.Embedding(1, WIDTH)
        self.no_mask_embed = nn.Embedding(1, WIDTH)

    def forward(self, points: Tensor, labels: Tensor, side: int) -> Tensor:
        """Tokens (…, C).

        Args:
            points: (…, 2) x, y in pixels of the square input.
            labels: (…) −1 (padding) to 3, see :data:`colocam.segment.segmenter.POINT`.
            side: width and height of that input in pixels.
        """
        embeddings: list[Any] = [self.not_a_point_embed, *self.point_embeddings]
        kinds = torch.cat([one.weight for one in embeddings])
        positions: Tensor = self.pe_layer((points + 0.5) / side)
        return positions * (labels >= 0)[..., None] + kinds[labels + 1]


class Attention(nn.Module):
    """Multi-head attention whose queries, keys and values may have fewer channels than the tokens."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, inner)
        self.k_proj = nn.Linear(WIDTH, inner)
        self.v_proj = nn.Linear(WIDTH, inner)
        self.out_proj = nn.Linear(inner, WIDTH)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """(B, n, C), (B, m, C), (B, m, C) → (B, n, C)."""
        parts = (self.q_proj(q), self.k_proj(k), self.v_proj(v))
        heads = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        return self.out_proj(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(-2))  # type: ignore[no-any-return]


class TwoWayLayer(nn.Module):
    """Tokens attend to each other and to the image; then the image attends to the tokens."""

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.first = first
        self.self_attn = Attention(WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.cross_attn_token_to_image = Attention(WIDTH // 2)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            OrderedDict(lin1=nn.Linear(WIDTH, HIDDEN), relu=nn.ReLU(), lin2=nn.Linear(HIDDEN, WIDTH))
        )
        self.norm3 = nn.LayerNorm(WIDTH)
        self.cross_attn_image_to_token = Attention(WIDTH // 2)
        self.norm4 = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor, image: Tensor, prompts: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (B, n, C) and image (B, h·w, C); ``prompts`` and ``positions`` are what was there at the beginning."""
        if self.first:
            tokens = self.self_attn(tokens, tokens, tokens)
        else:
            asked = tokens + prompts
            tokens = tokens + self.self_attn(asked, asked, tokens)
        tokens = self.norm1(tokens)
        tokens = self.norm2(tokens + self.cross_attn_token_to_image(tokens + prompts, image + positions, image))
        tokens = self.norm3(tokens + self.mlp(tokens))
        image = self.norm4(image + self.cross_attn_image_to_token(image + positions, tokens + prompts, tokens))
        return tokens, image


class TwoWayTransformer(nn.Module):
    """Two layers, and the tokens' last look at the image."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TwoWayLayer(first=index == 0) for index in range(2))
        self.final_attn_token_to_image = Attention(WIDTH // 2)
        self.norm_final_attn = nn.LayerNorm(WIDTH)

    def forward(self, prompts: Tensor, image: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Prompts (B, n, C), image (B, h·w, C), positions (1, h·w, C) → tokens (B, n, C), image (B, h·w, C)."""
        tokens = prompts
        for layer in self.layers:
            tokens, image = layer(tokens, image, prompts, positions)
        last = self.final_attn_token_to_image(tokens + prompts, image + positions, image)
        return self.norm_final_attn(tokens + last), image


class Head(nn.Module):
    """Three linear layers with ReLUs between them."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, width) for width in (WIDTH, WIDTH, out))

    def forward(self, x: Tensor) -> Tensor:
        """(…, C) → (…, out)."""
        first, second, last = self.layers
        return last(F.relu(second(F.relu(first(x)))))  # type: ignore[no-any-return]


class MaskDecoder(nn.Module):
    """Image features and prompt tokens → mask logits and their expected quality."""

    def __init__(self) -> None:
        super().__init__()
        self.transformer = TwoWayTransformer()
        self.iou_token = nn.Embedding(1, WIDTH)
        self.mask_tokens = nn.Embedding(MASK_TOKENS, WIDTH)
        self.output_upscaling = nn.Sequential(
            nn.ConvTranspose2d(WIDTH, WIDTH // 4, 2, 2),
            LayerNorm2d(WIDTH // 4),
            nn.GELU(),
            nn.ConvTranspose2d(WIDTH // 4, WIDTH // 8, 2, 2),
            nn.GELU(),
        )
        self.output_hypernetworks_mlps = nn.ModuleList(Head(WIDTH // 8) for _ in range(MASK_TOKENS))
        self.iou_prediction_head = Head(MASK_TOKENS)

    def forward(self, features: Tensor, positions: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (N, 3, 4h, 4w) and qualities (N, 3) of the three masks of each prompt.

        Args:
            features: (N, C, h, w) of the images, the embedding of "no mask" added.
            positions: (h · w, C) encodings of the positions.
            prompts: (N, n, C) tokens.
        """
        own = torch.cat([self.iou_token.weight, self.mask_tokens.weight]).expand(len(prompts), -1, -1)
        image = features.flatten(2).transpose(1, 2)
        tokens, image = self.transformer(torch.cat([own, prompts], dim=1), image, positions[None])
        fine = self.output_upscaling(image.transpose(1, 2).unflatten(2, features.shape[2:]))
        heads = list(self.output_hypernetworks_mlps)[1:]
        filters = torch.stack([head(tokens[:, 2 + index]) for index, head in enumerate(heads)], dim=1)
        logits = (filters @ fine.flatten(2)).unflatten(2, fine.shape[2:])
        return logits, self.iou_prediction_head(tokens[:, 0])[:, 1:]


_RENAMED: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"^image_encoder\.layers\.(\d)\.downsample\.": lambda m: f"encoder.stages.{int(m[1]) + 1}.downsample.",
    r"^image_encoder\.layers\.": "encoder.stages.",
    r"^image_encoder\.patch_embed\.seq\.0\.": "encoder.patch_embed.conv1.",
    r"^image_encoder\.patch_embed\.seq\.2\.": "encoder.patch_embed.conv2.",
    r"^image_encoder\.neck\.": "neck.",
    r"(?<=^encoder\.)(.*)\.c\.weight$": r"\1.conv.weight",
}
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
        images = features + self.prompt_encoder.no_mask_embed.weight[..., None, None]
        images = images[:, None].expand(-1, prompts, -1, -1, -1).flatten(0, 1)
        positions = self.prompt_encoder.pe_layer.grid(*features.shape[2:])
        logits, quality = self.mask_decoder(images, positions, tokens)
        return logits.unflatten(0, (frames, prompts)), quality.unflatten(0, (frames, prompts))


class MobileSam:
    """MobileSAM on a device, see :class:`colocam.segment.segmenter.Segmenter`.

    Every pass has the same number of rows, so that the kernels, and with them the rounding, do not depend on the number
    of frames. On a GPU a pass is a CUDA graph, and the network computes in bfloat16 where autocast allows it; weights
    are stored so, since autocast would convert them in every pass. Any thread may use it.
    """

    name = "MobileSAM"

    def __init__(self, net: MobileSamNet, device: torch.device, *, side: int = SIDE) -> None:
        """``net`` is changed: batch norms are folded, and it moves to ``device``."""
        self.device = device
        self.side = side
        self.rows = ROWS[device.type]
        self.net = _folded(net.eval()).to(device).to(memory_format=torch.channels_last)
        if device.type == "cuda":
            in_bfloat16(self.net)
        self._lock = Lock()
        self._embed = Recorded(self._compute_embedding, self.rows, device)
        self._masks: dict[int, Recorded] = {}  # by the number of prompts

    @torch.inference_mode()
    def embed(self, images: Levels, /) -> Tensor:
        """Features (B, C, S/16, S/16), float32."""
        (features,) = self._run(self._embed, len(images), frames=upload(images, self.device).permute(0, 3, 1, 2))
        return features

    @torch.inference_mode()
    def masks(self, embedded: Tensor, prompts: Prompts, /) -> Masks:
        """Masks with float32 logits."""
        given = {name: upload(part, self.device) for name, part in prompts._asdict().items()}
        count = prompts.points.shape[1]
        with self._lock:
            if count not in self._masks:
                self._masks[count] = Recorded(self._compute_masks, self.rows, self.device)
        return Masks(*self._run(self._masks[count], len(embedded), features=embedded, **given))

    def _compute_embedding(self, tensors: Tensors) -> tuple[Tensor, ...]:
        with self._precision():
            return (self.net.embed(tensors["frames"]).float(),)

    def _compute_masks(self, tensors: Tensors) -> tuple[Tensor, ...]:
        with self._precision():
            logits, quality = self.net.masks(tensors["features"], tensors["points"], tensors["labels"])
        return logits.float(), quality.float()

    def _run(self, compute: Recorded, rows: int, **tensors: Tensor) -> list[Tensor]:
        """The outputs of so many rows, in passes."""
        parts = []
        for part in zip(*map(self._passes, tensors.values()), strict=True):
            with self._lock:  # the next pass, maybe of another thread, overwrites what a recorded one gave
                parts.append([output.clone() for output in compute(dict(zip(tensors, part, strict=True)))])
        return [torch.cat(same)[:rows] if len(same) > 1 else same[0][:rows] for same in zip(*parts, strict=True)]

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
    for pattern, new in _RENAMED.items():
        name = re.sub(pattern, new, name)
    return name


def _folded(net: MobileSamNet) -> MobileSamNet:
    """Fold each batch norm of the encoder into the convolution before it."""
    for name, module in list(net.encoder.named_modules()):
        if hasattr(module, "fuse"):
            net.encoder.set_submodule(name, module.fuse())
    return net


def in_bfloat16(net: nn.Module) -> None:
    """Store the weights that autocast rounds to bfloat16 in that precision; the results are the same."""
    for module in net.modules():
        if isinstance(module, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            module.to(torch.bfloat16)

"""SAM's prompt encoder and mask decoder (Kirillov et al., Segment Anything, 2023), for prompts of labelled points.

Module names are those of the published checkpoints (Apache-2.0).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH = 256
"""C, channels of an image's features and of a token."""
HEADS = 8
HIDDEN = 2048
MASK_TOKENS = 4
"""The first gives a single mask, the others three masks for an ambiguous prompt."""


class PositionEncoding(nn.Module):
    """Random Fourier features of positions: sin and cos of 2π (2x − 1) · G, with x in 0–1."""

    positional_encoding_gaussian_matrix: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("positional_encoding_gaussian_matrix", torch.zeros(2, WIDTH // 2))

    def forward(self, positions: Tensor) -> Tensor:
        """(…, 2) x, y in 0–1 → (…, C)."""
        phases = 2 * math.pi * ((2 * positions - 1) @ self.positional_encoding_gaussian_matrix)
        return torch.cat([phases.sin(), phases.cos()], dim=-1)

    def grid(self, height: int, width: int) -> Tensor:
        """(height · width, C) encodings of the centres of a grid's cells."""
        device = self.positional_encoding_gaussian_matrix.device
        y = (torch.arange(height, device=device) + 0.5) / height
        x = (torch.arange(width, device=device) + 0.5) / width
        encoded: Tensor = self(torch.cartesian_prod(y, x).flip(-1))
        return encoded


class PromptEncoder(nn.Module):
    """Labelled points → tokens."""

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


class Mlp(nn.Module):
    """Two linear layers with a ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.lin1 = nn.Linear(WIDTH, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """(…, C) → (…, C)."""
        return self.lin2(F.relu(self.lin1(x)))  # type: ignore[no-any-return]


class TwoWayLayer(nn.Module):
    """Tokens attend to each other and to the image; then the image attends to the tokens."""

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.first = first
        self.self_attn = Attention(WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.cross_attn_token_to_image = Attention(WIDTH // 2)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = Mlp()
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


class LayerNorm2d(nn.LayerNorm):
    """Layer norm over the channels of (B, C, h, w)."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Same shape."""
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


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

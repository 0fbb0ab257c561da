"""The public products ``W·v`` with colour and bilateral affinities: any shape, differentiable in v."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from colocam.affinity import engine
from colocam.affinity.engine import Gaussian
from colocam.errors import ColocamError
from colocam.utils.tensors import require_finite


def color_product(
    rgb: Tensor, values: Tensor, sigma: float = 15.0, tol: float = 5e-3, *, sequences: Tensor | None = None
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ²) between all pixels of a sequence, W_ii = 1 included.

    NaN or infinity raises a ColocamError on the CPU. On CUDA the values are not checked, since that would make the
    host wait; there it makes the result NaN.

    Args:
        rgb: (…, N, 3) colours in 0–255, floating or integer; slightly outside is allowed. Not differentiated.
        values: (…, N, C) floating. Differentiable: W is symmetric, so the gradient is one more product.
        sigma: width of the Gaussian in colour levels.
        tol: relative L2 error to aim at.
        sequences: which pixels form a sequence; by default, those of one leading index. Either integer indices of
            shape (…,), one for each leading index: frames with the same index are joined. Or of shape (…, N), one for
            each pixel: sequences of different lengths in one call.

    Returns:
        (…, N, C) float32, or float64 if ``values`` are: sums over many pixels exceed the range of float16.
    """
    if values.dim() < 2 or rgb.shape[-1:] != (3,) or rgb.shape[:-1] != values.shape[:-1]:
        raise ColocamError(
            f"color_product: needs rgb (…, N, 3) and values (…, N, C), got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    require_finite("color_product", rgb=rgb, values=values)
    gaussian = Gaussian(float(sigma), float(tol))
    if sequences is not None:
        _require_indices(sequences)
    if sequences is not None and sequences.shape == values.shape[:-1]:
        return _ragged(rgb, values, gaussian, sequences)
    frames = values.shape[:-2].numel()
    group = torch.arange(frames) if sequences is None else sequences.reshape(-1)
    if len(group) != frames:
        raise ColocamError(
            f"color_product: sequences must have shape {tuple(values.shape[:-2])} (one index a frame) or "
            f"{tuple(values.shape[:-1])} (one index a pixel), got {tuple(group.shape)}"
        )
    groups = frames if sequences is None or frames == 0 else int(group.max()) + 1
    flat = values.reshape(frames, *values.shape[-2:]).transpose(1, 2)
    colors = rgb.reshape(frames, *rgb.shape[-2:]).transpose(1, 2)
    return _product("color_product", colors, flat, group.long(), groups, gaussian).transpose(1, 2).reshape(values.shape)


def bilateral_product(
    rgb: Tensor, values: Tensor, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, tol: float = 1e-2
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²) in each frame, W_ii = 1 included.

    NaN or infinity raises a ColocamError on the CPU; on CUDA it makes the result NaN (see :func:`color_product`).

    Args:
        rgb: (B, 3, H, W) colours in 0–255, floating or integer; slightly outside is allowed. Not differentiated.
        values: (B, C, H, W) floating, differentiable.
        sigma_rgb: width of the Gaussian in colour levels.
        sigma_xy: width of the Gaussian in pixels; a large share of the frame, or a few pixels, is computed fastest.
        tol: relative L2 error to aim at.

    Returns:
        (B, C, H, W) float32, or float64 if ``values`` are.
    """
    mismatch = rgb.dim() != 4 or values.dim() != 4 or rgb.shape[1] != 3 or len(rgb) != len(values)
    if mismatch or rgb.shape[2:] != values.shape[2:]:
        raise ColocamError(
            "bilateral_product: needs rgb (B, 3, H, W) and values (B, C, H, W), "
            f"got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    require_finite("bilateral_product", rgb=rgb, values=values)
    frames, (height, width) = len(rgb), rgb.shape[-2:]
    gaussian = Gaussian(float(sigma_rgb), float(tol), float(sigma_xy), (height, width))
    colors, flat, group = rgb.flatten(2), values.flatten(2), torch.arange(frames)
    return _product("bilateral_product", colors, flat, group, frames, gaussian).view(values.shape)


def _require_indices(sequences: Tensor) -> None:
    if sequences.is_floating_point() or sequences.is_complex() or sequences.dtype == torch.bool:
        raise ColocamError(f"color_product: sequences must be integers, got {sequences.dtype}")
    if sequences.numel() and int(sequences.min()) < 0:
        raise ColocamError(f"color_product: sequences must be 0 or larger, got {int(sequences.min())}")


def _ragged(rgb: Tensor, values: Tensor, gaussian: Gaussian, sequences: Tensor) -> Tensor:
    """Sequences of any lengths, padded with pixels of value 0, which change no other pixel's sum."""
    index = sequences.reshape(-1)
    if len(index) == 0:
        return values.clone()
    order = index.argsort(stable=True)
    lengths = index.unique(return_counts=True)[1].tolist()  # type: ignore[no-untyped-call]
    colors, v = (torch.split(x.reshape(len(index), x.shape[-1])[order], lengths) for x in (rgb, values))
    padded = [pad_sequence(list(x), batch_first=True).transpose(1, 2) for x in (colors, v)]
    group = torch.arange(len(lengths))
    out = _product("color_product", padded[0], padded[1], group, len(lengths), gaussian)
    flat = torch.cat([o[:, :n].T for o, n in zip(out, lengths, strict=True)])
    return torch.empty_like(flat).index_copy(0, order, flat).view(values.shape)


def _product(name: str, rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> Tensor:
    """``engine.product``, differentiable in the values, in at least float32."""
    if not values.is_floating_point():
        raise ColocamError(f"{name}: values must be floating, got {values.dtype}")
    if rgb.requires_grad:
        raise ColocamError(f"{name}: rgb must not require a gradient; pass rgb.detach()")
    wide = values if values.dtype == torch.float64 else values.float()
    out: Tensor = _Product.apply(rgb, wide, group.to(values.device), groups, gaussian)
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rgb: Tensor, values: Tensor, *affinity: Any) -> Tensor:  # noqa: ANN401
        ctx.rgb, ctx.affinity = rgb, affinity
        with torch.autocast(values.device.type, enabled=False):
            return engine.product(rgb, values, *affinity)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        return None, _Product.apply(ctx.rgb, gradient, *ctx.affinity), None, None, None

"""``W·v`` for colour affinities over any number of pixels."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from colocam.affinity import engine
from colocam.affinity.engine import Gaussian
from colocam.errors import ColocamError


def color_product(
    rgb: Tensor, values: Tensor, sigma: float = 15.0, tol: float = 5e-3, *, sequences: Tensor | None = None
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ²) between all pixels of a sequence, self-affinity included.

    Args:
        rgb: (…, N, 3) colours in 0–255, floating or integer; an overshoot of either end is no harm. Not
            differentiated.
        values: (…, N, C) floating. Differentiable: W is symmetric, so the gradient is one more product.
        sigma: width of the Gaussian in colour levels.
        tol: relative L2 error to aim at.
        sequences: what forms a sequence; by default, each leading index does. Either one id for each leading index,
            shape (…,): frames with one id are joined. Or one id for each pixel, shape (…, N): sequences of different
            lengths in one call. Ids count from 0.

    Returns:
        (…, N, C), the type of ``values``.
    """
    if values.dim() < 2 or rgb.shape[-1:] != (3,) or rgb.shape[:-1] != values.shape[:-1]:
        raise ColocamError(
            f"color_product: needs rgb (…, N, 3) and values (…, N, C), got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    gaussian = Gaussian(float(sigma), float(tol))
    if sequences is not None:
        _require_ids(sequences)
    if sequences is not None and sequences.shape == values.shape[:-1]:
        return _ragged(rgb, values, gaussian, sequences)
    frames = values.shape[:-2].numel()
    group = torch.arange(frames) if sequences is None else sequences.reshape(-1)
    if len(group) != frames:
        raise ColocamError(
            f"color_product: sequences must have shape {tuple(values.shape[:-2])} (one id a frame) or "
            f"{tuple(values.shape[:-1])} (one id a pixel), got {tuple(group.shape)}"
        )
    groups = frames if sequences is None or frames == 0 else int(group.max()) + 1
    flat = values.reshape(frames, *values.shape[-2:]).transpose(1, 2)
    colors = rgb.reshape(frames, *rgb.shape[-2:]).transpose(1, 2)
    return multiply(colors, flat, group.long(), groups, gaussian).transpose(1, 2).reshape(values.shape)


def _require_ids(sequences: Tensor) -> None:
    if sequences.is_floating_point() or sequences.is_complex() or sequences.dtype == torch.bool:
        raise ColocamError(f"color_product: sequences must be integer ids, got {sequences.dtype}")
    if sequences.numel() and int(sequences.min()) < 0:
        raise ColocamError(f"color_product: ids of sequences count from 0, got {int(sequences.min())}")


def _ragged(rgb: Tensor, values: Tensor, gaussian: Gaussian, sequences: Tensor) -> Tensor:
    """Sequences of any lengths, padded with pixels of value 0, which add nothing to the others."""
    ids = sequences.reshape(-1)
    if len(ids) == 0:
        return values.clone()
    order = ids.argsort(stable=True)
    lengths = ids.unique(return_counts=True)[1].tolist()  # type: ignore[no-untyped-call]
    colors, v = (torch.split(x.reshape(len(ids), x.shape[-1])[order], lengths) for x in (rgb, values))
    padded = pad_sequence(list(v), batch_first=True).transpose(1, 2)
    group = torch.arange(len(lengths))
    out = multiply(pad_sequence(list(colors), batch_first=True).transpose(1, 2), padded, group, len(lengths), gaussian)
    flat = torch.cat([o[:, :n].T for o, n in zip(out, lengths, strict=True)])
    return torch.empty_like(flat).index_copy(0, order, flat).view(values.shape)


def multiply(rgb: Tensor, values: Tensor, group: Tensor, groups: int, gaussian: Gaussian) -> Tensor:
    """``engine.product``, differentiable in the values and of their type."""
    if not values.is_floating_point():
        raise ColocamError(f"affinity: values must be floating, got {values.dtype}")
    if rgb.requires_grad:
        raise ColocamError("affinity: no gradient flows to rgb; pass rgb.detach()")
    out: Tensor = _Product.apply(rgb, values, group.to(values.device), groups, gaussian)
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rgb: Tensor, values: Tensor, *affinity: Any) -> Tensor:  # noqa: ANN401
        ctx.rgb, ctx.affinity = rgb, affinity
        with torch.autocast(values.device.type, enabled=False):
            wide = values if values.dtype == torch.float64 else values.float()
            return engine.product(rgb, wide, *affinity).to(values.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        return None, _Product.apply(ctx.rgb, gradient, *ctx.affinity), None, None, None

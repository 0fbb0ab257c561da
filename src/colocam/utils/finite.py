"""Naming the input that is wrong."""

import torch
from torch import Tensor

from colocam.errors import ColocamError


def require_finite(where: str, **inputs: Tensor) -> None:
    """Raise a ColocamError naming the first of ``inputs`` that holds NaN or Inf, its first bad index and their count.

    On CUDA this waits for the device, so the losses call it for CPU tensors only; there a bad input makes the loss NaN,
    and a training loop that skips non-finite steps calls this to say why.
    """
    for name, tensor in inputs.items():
        if not tensor.is_floating_point():
            continue
        bad = ~torch.isfinite(tensor)
        if bad.any():
            count, index = int(bad.sum()), tuple(bad.nonzero()[0].tolist())
            raise ColocamError(
                f"{where}: {name} holds {count} NaN or Inf, the first at {index}; "
                f"look at what produced {name}, or lower the learning rate"
            )


def require_finite_on_cpu(where: str, **inputs: Tensor) -> None:
    """``require_finite`` where it costs no synchronisation."""
    require_finite(where, **{name: tensor for name, tensor in inputs.items() if tensor.is_cpu})


def require_shapes(where: str, frames: Tensor, maps: Tensor) -> None:
    """Raise a ColocamError unless frames are (B, 3, H, W), constants, and maps (B, H, W)."""
    shape = frames.shape  # once: the device waits for the host meanwhile
    if len(shape) != 4 or shape[1] != 3 or maps.shape != (shape[0], shape[2], shape[3]):
        raise ColocamError(
            f"{where}: needs frames (B, 3, H, W) and maps (B, H, W), got {tuple(frames.shape)} and {tuple(maps.shape)}"
        )
    if frames.requires_grad:
        raise ColocamError(f"{where}: no gradient flows to the frames; pass frames.detach()")


def require_sequences(where: str, sequences: Tensor, maps: Tensor, count: int | None) -> tuple[Tensor, int]:
    """Ids of the frames' sequences (B,) as int64 on the maps' device, and their number, read off them if None."""
    if sequences.shape != maps.shape[:1]:
        raise ColocamError(f"{where}: sequences must hold {len(maps)} ids, got shape {tuple(sequences.shape)}")
    groups = int(sequences.max()) + 1 if count is None else count
    return sequences.to(maps.device, torch.int64), groups

"""Errors that name the tensor with NaN or infinity."""

import torch
from torch import Tensor

from colocam.errors import ColocamError


def require_finite(where: str, **tensors: Tensor) -> None:
    """Raise a ColocamError if a tensor has NaN or infinity: its name, how many values, and the index of the first.

    On CUDA this makes the host wait for the device. Losses and products call it for CPU tensors only; on CUDA, NaN or
    infinity in their inputs makes the result non-finite.
    """
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            continue
        bad = ~torch.isfinite(tensor)
        if bad.any():
            count, index = int(bad.sum()), tuple(bad.nonzero()[0].tolist())
            raise ColocamError(
                f"{where}: {name} has {count} NaN or infinite values, the first at index {index}; "
                f"check how {name} was computed, or lower the learning rate"
            )


def require_finite_on_cpu(where: str, **tensors: Tensor) -> None:
    """:func:`require_finite` for the tensors in host memory, where it needs no synchronisation."""
    require_finite(where, **{name: tensor for name, tensor in tensors.items() if tensor.is_cpu})

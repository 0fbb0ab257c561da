"""Errors that name the tensor with NaN or infinity."""

import torch
from torch import Tensor

from colocam.errors import ColocamError


def require_finite(where: str, **tensors: Tensor) -> None:
    """Raise a ColocamError if a tensor has NaN or infinity: its name, how many values, and the index of the first.

    Only tensors in host memory are checked: on CUDA this would make the host wait for the device. There, NaN or
    infinity in the input of a loss or product makes the result non-finite.
    """
    for name, tensor in tensors.items():
        if not tensor.is_cpu or not tensor.is_floating_point():
            continue
        bad = ~torch.isfinite(tensor)
        if bad.any():
            count, index = int(bad.sum()), tuple(bad.nonzero()[0].tolist())
            raise ColocamError(
                f"{where}: {name} has {count} NaN or infinite values, the first at index {index}; "
                f"check how {name} was computed, or lower the learning rate"
            )

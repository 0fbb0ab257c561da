"""``W·v`` for colour × space affinities, frame by frame."""

import torch
from torch import Tensor

from colocam.affinity.engine import Gaussian
from colocam.affinity.products import multiply
from colocam.errors import ColocamError


def bilateral_product(
    rgb: Tensor, values: Tensor, sigma_rgb: float = 15.0, sigma_xy: float = 100.0, tol: float = 1e-2
) -> Tensor:
    """W·v with W_ij = exp(-|c_i - c_j|² / 2σ_rgb² - |p_i - p_j|² / 2σ_xy²) in each frame, self-affinity included.

    Args:
        rgb: (B, 3, H, W) colours in 0–255, floating or integer; an overshoot of either end is no harm. Not
            differentiated.
        values: (B, C, H, W) floating, differentiable.
        sigma_rgb: width of the Gaussian in colour levels.
        sigma_xy: width of the Gaussian in pixels. Wide beside the frame is cheap, a few pixels are, too.
        tol: relative L2 error to aim at.

    Returns:
        (B, C, H, W), the type of ``values``.
    """
    mismatch = rgb.dim() != 4 or values.dim() != 4 or rgb.shape[1] != 3 or len(rgb) != len(values)
    if mismatch or rgb.shape[2:] != values.shape[2:]:
        raise ColocamError(
            "bilateral_product: needs rgb (B, 3, H, W) and values (B, C, H, W), "
            f"got {tuple(rgb.shape)} and {tuple(values.shape)}"
        )
    frames, (height, width) = len(rgb), rgb.shape[-2:]
    gaussian = Gaussian(float(sigma_rgb), float(tol), float(sigma_xy), (height, width))
    return multiply(rgb.flatten(2), values.flatten(2), torch.arange(frames), frames, gaussian).view(values.shape)

"""LayerCAM (Jiang et al., "Exploring Hierarchical Class Activation Maps for Localization", IEEE TIP 2021)."""

import torch
from torch import Tensor


def layercam(features: Tensor, weights: Tensor) -> Tensor:
    """``M = ReLU( Σ_k ReLU(∂y/∂A_k) ⊙ A_k )``; with ``y = w·mean(A) + b`` the gradient is ``w_k / (h·w)`` everywhere.

    Args:
        features: A (B, K, h, w), the last feature map.
        weights: w (B, K), the linear head's row of each frame's class.

    Returns:
        (B, h, w), ≥ 0.
    """
    gradient = weights / features.shape[2:].numel()
    return torch.einsum("bkhw,bk->bhw", features, gradient.clamp(min=0)).clamp(min=0)

"""Grad-CAM (Selvaraju et al., "Visual Explanations from Deep Networks via Gradient-based Localization", ICCV 2017)."""

import torch
from torch import Tensor


def gradcam(features: Tensor, weights: Tensor) -> Tensor:
    """``M = ReLU( Σ_k ω_k A_k )``, ``ω_k = 1/(h·w) Σ_ij ∂y/∂A_k,ij``.

    With ``y = w·mean(A) + b`` the gradient is ``w_k / (h·w)`` everywhere, and so is its mean: the positive part of CAM,
    divided by h·w.

    Args:
        features: A (B, K, h, w), the last feature map.
        weights: w (B, K), the linear head's row of each frame's class.

    Returns:
        (B, h, w), ≥ 0.
    """
    gradient = weights / features.shape[2:].numel()
    return torch.einsum("bkhw,bk->bhw", features, gradient).clamp(min=0)

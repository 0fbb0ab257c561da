"""Grad-CAM++ (Chattopadhyay et al., "Improved Visual Explanations for Deep Convolutional Networks", WACV 2018)."""

import torch
from torch import Tensor


def gradcam_pp(features: Tensor, weights: Tensor) -> Tensor:
    """``M = ReLU( Σ_k ω_k A_k )``, ``ω_k = Σ_ij α_k,ij ReLU(g_k,ij)``, ``α = g² / (2g² + g³ Σ_ab A_k,ab)``.

    Here ``g = ∂y/∂A``. The paper's score is exp(y), whose n-th derivative is ``exp(y) gⁿ`` where y is linear in A; ω's
    common factor exp(y) is left out, since it falls out of a normalised map. With ``y = w·mean(A) + b``,
    ``g_k = w_k / (h·w)``, and so ``α_k = 1 / (2 + w_k mean(A_k))`` and ``ω_k = ReLU(w_k) / (2 + w_k mean(A_k))``.

    A channel with much evidence on the whole frame counts less than in LayerCAM. For features that are not negative the
    denominator is at least 2; where signed ones make it 0, the channel is left out.

    Args:
        features: A (B, K, h, w), the last feature map.
        weights: w (B, K), the linear head's row of each frame's class.

    Returns:
        (B, h, w), ≥ 0.
    """
    denominator = 2 + weights * features.mean(dim=(2, 3))
    importance = weights.clamp(min=0) / denominator.masked_fill(denominator == 0, torch.inf)
    return torch.einsum("bkhw,bk->bhw", features, importance).clamp(min=0)

"""CAM (Zhou et al., "Learning Deep Features for Discriminative Localization", CVPR 2016)."""

import torch
from torch import Tensor


def cam(features: Tensor, weights: Tensor) -> Tensor:
    """``M = Σ_k w_k A_k``: how much each place adds to the logit ``y = w·mean(A) + b`` of the class, times h·w.

    Signed: places that speak against the class are negative.

    Args:
        features: A (B, K, h, w), the last feature map.
        weights: w (B, K), the linear head's row of each frame's class.

    Returns:
        (B, h, w).
    """
    return torch.einsum("bkhw,bk->bhw", features, weights)

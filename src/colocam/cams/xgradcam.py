"""XGrad-CAM (Fu et al., "Axiom-based Grad-CAM: Towards Accurate Visualization and Explanation of CNNs", BMVC 2020)."""

from torch import Tensor

from colocam.cams.gradcam import gradcam


def xgradcam(features: Tensor, weights: Tensor) -> Tensor:
    """``M = ReLU( Σ_k ω_k A_k )``, ``ω_k = Σ_ij A_k,ij · ∂y/∂A_k,ij / Σ_ij A_k,ij``.

    With ``y = w·mean(A) + b`` the gradient ``w_k / (h·w)`` leaves both sums and ``ω_k`` is the gradient itself, as in
    Grad-CAM: after average pooling and a linear head the two are one map.

    Args:
        features: A (B, K, h, w), the last feature map.
        weights: w (B, K), the linear head's row of each frame's class.

    Returns:
        (B, h, w), ≥ 0.
    """
    return gradcam(features, weights)

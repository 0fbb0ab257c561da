"""Smooth Grad-CAM++ (Omeiza et al., "An Enhanced Inference Level Visualization Technique", CoRR 1908.01224, 2019)."""

from torch import Tensor

from colocam.cams.gradcam_pp import gradcam_pp


def smooth_gradcam_pp(features: Tensor, weights: Tensor) -> Tensor:
    """Grad-CAM++ with the mean of each derivative over n noisy copies of the frame, on the frame's own features.

    ``M = ReLU( Σ_k ω_k A_k )``, ``ω_k = Σ_ij α_k,ij ReLU(D¹_k,ij)``, ``α = D² / (2D² + D³ Σ_ab A_k,ab)``,
    ``Dᵖ = 1/n Σ_m ∂ᵖY/∂A_kᵖ`` at frame + N(0, σ²). (The paper prints D¹ for the numerator of α; D² is Grad-CAM++'s.)

    With ``Y = exp(y)``, ``y = w·mean(A) + b``, the derivatives at copy m are ``exp(y_m) (w_k/(h·w))ᵖ``: noise changes
    nothing but their common factor, which falls out of α and of a normalised map. So the map is that of Grad-CAM++ for
    any n and σ, and no copy is ever made.

    Args:
        features: A (B, K, h, w), the last feature map.
        weights: w (B, K), the linear head's row of each frame's class.

    Returns:
        (B, h, w), ≥ 0.
    """
    return gradcam_pp(features, weights)

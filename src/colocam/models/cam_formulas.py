"""CAM, Grad-CAM, Grad-CAM++ and LayerCAM of a classifier with average pooling and a linear head, in closed form.

The classifier's logit of a class is ``y = Σ_k w_k mean(A_k) + b`` with the last feature map A, (C, h, w), and the
class's row w of the head. The gradient ``∂y/∂A_k = w_k / (h·w)`` is therefore known without a backward pass, and each
map is one sum over channels.

The formulas take features (B, C, h, w) and the channels' weights or gradient, (B, C), of one class per frame, and
return (B, h, w). All but ``gradcam_pp`` also take (1, M, C), the same M classes in every frame, and return
(B, M, h, w): ``cam(features, classifier.head.weight[None])`` is the CAM of every class. ``min_max`` and ``full_size``
scale maps to 0–1 and to the size of the frame.

Tests: tests/cams/test_methods.py, tests/cams/test_public_implementation.py.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def min_max(maps: Tensor) -> Tensor:
    """Scale each map linearly so that its minimum is 0 and its maximum 1: ``(M − min M) / (max M − min M)``.

    Args:
        maps: (B, h, w).

    Returns:
        (B, h, w) in 0–1; a constant map becomes 0 everywhere.
    """
    low = maps.amin(dim=(1, 2), keepdim=True)
    spread = maps.amax(dim=(1, 2), keepdim=True) - low
    return torch.where(spread > 0, (maps - low) / torch.where(spread > 0, spread, 1.0), 0.0)


def full_size(maps: Tensor, size: int) -> Tensor:
    """Scale (B, h, w) to 0–1, then resize bilinearly to (B, size, size), in this order, as published."""
    return F.interpolate(min_max(maps)[:, None], size=(size, size), mode="bilinear", align_corners=False)[:, 0]


def cam(features: Tensor, weights: Tensor) -> Tensor:
    """CAM (Zhou et al., CVPR 2016): ``M = Σ_k w_k A_k``, how much each position adds to ``h·w · (y − b)``.

    Signed: positions that speak against the class are negative.

    Args:
        features: A (B, C, h, w).
        weights: w (B, C) or (1, M, C), rows of the head.
    """
    if weights.dim() == 3:
        return torch.einsum("bchw,mc->bmhw", features, weights[0])
    return torch.einsum("bchw,bc->bhw", features, weights)


def gradcam(features: Tensor, gradient: Tensor) -> Tensor:
    """Grad-CAM (Selvaraju et al., ICCV 2017): ``M = ReLU( Σ_k ω_k A_k )``, ``ω_k = 1/(h·w) Σ_ij ∂y/∂A_k,ij``.

    The gradient is the same at all positions, so ω is the gradient itself. XGrad-CAM (Fu et al., BMVC 2020),
    ``ω_k = Σ_ij A_k,ij · ∂y/∂A_k,ij / Σ_ij A_k,ij``, has the same ω and hence the same map.

    Args:
        features: A (B, C, h, w).
        gradient: ∂y/∂A (B, C) or (1, M, C), up to a positive factor, which scales the map.
    """
    return cam(features, gradient).clamp(min=0)


def layercam(features: Tensor, gradient: Tensor) -> Tensor:
    """LayerCAM (Jiang et al., IEEE TIP 2021): ``M = ReLU( Σ_k ReLU(∂y/∂A_k) ⊙ A_k )``.

    Args:
        features: A (B, C, h, w).
        gradient: ∂y/∂A (B, C) or (1, M, C), up to a positive factor, which scales the map.
    """
    return cam(features, gradient.clamp(min=0)).clamp(min=0)


def gradcam_pp(features: Tensor, weights: Tensor) -> Tensor:
    """Grad-CAM++ (Chattopadhyay et al., WACV 2018): ``M = ReLU( Σ_k ω_k A_k )``, ``ω_k = Σ_ij α_k,ij ReLU(g_k,ij)``.

    ``α = g² / (2g² + g³ Σ_ab A_k,ab)`` with ``g = ∂y/∂A``. The paper's score is exp(y), whose n-th derivative is
    ``exp(y) gⁿ``; the common factor exp(y) of ω is left out, since min–max removes it. With ``g_k = w_k / (h·w)``,
    ``α_k = 1 / (2 + w_k mean(A_k))`` and ``ω_k = ReLU(w_k) / (2 + w_k mean(A_k))``. For features ≥ 0 the denominator is
    at least 2; where signed features make it 0, the channel is left out.

    Smooth Grad-CAM++ (Omeiza et al., 2019) averages the derivatives over noisy copies of the frame. Noise only changes
    their common factor exp(y), so its map is the same for any number of copies and any noise. (That paper prints the
    first derivative in the numerator of α; the second is Grad-CAM++'s.)

    Args:
        features: A (B, C, h, w).
        weights: w (B, C), rows of the head.
    """
    denominator = 2 + weights * features.mean(dim=(2, 3))
    importance = weights.clamp(min=0) / denominator.masked_fill(denominator == 0, torch.inf)
    return cam(features, importance).clamp(min=0)

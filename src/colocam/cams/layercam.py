"""LayerCAM (Jiang et al., IEEE TIP 2021) in closed form for average pooling and a linear head."""

import torch
from torch import Tensor

from colocam.models import Classifier


@torch.no_grad()
def layercam(classifier: Classifier, frames: Tensor, classes: Tensor) -> Tensor:
    """LayerCAM at the last feature map A of the logit y_c, before normalisation.

    ``M = ReLU( Σ_k ReLU(∂y_c/∂A_k) ⊙ A_k )``. With ``y = w·mean(A) + b`` the gradient is the constant ``w_ck / (h·w)``,
    so one forward pass is enough.

    Args:
        classifier: in evaluation mode.
        frames: (B, 3, H, W) RGB in 0–255.
        classes: (B,) int64, the class whose evidence is mapped.

    Returns:
        (B, h, w) at the resolution of the features, ≥ 0.
    """
    features = classifier(frames).features[-1]
    weights = classifier.head.weight[classes].clamp(min=0) / (features.shape[2] * features.shape[3])
    return torch.einsum("bkhw,bk->bhw", features, weights.to(features.dtype)).clamp(min=0).float()

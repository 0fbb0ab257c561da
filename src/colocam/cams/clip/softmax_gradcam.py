"""Softmax-GradCAM (Lin et al., CVPR 2023): Grad-CAM of a class's probability instead of its logit."""

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.cams.clip.clip_encoder import ClipEncoder, View


def softmax_gradcam(encoder: ClipEncoder, view: View, texts: Tensor, classes: Tensor) -> Tensor:
    """Maps of what raises the probability of a class, not normalised.

    With activations A before the last attention, logits ``y = scale · cos(frame, text)`` and ``p = softmax(y)``:
    ``w_k = mean over patches of ∂p_c/∂A_k``, ``M = ReLU(Σ_k w_k A_k)``.

    ``p_c = σ(z_c)`` with the log-odds ``z_c = y_c − log Σ_{j≠c} exp y_j``, so ``∂p_c = σ(z_c) σ(−z_c) ∂z_c``. z
    is differentiated: where CLIP is certain, ``1 − p_c`` rounds to 0, and ∂p_c with it.

    Args:
        encoder: the frozen CLIP.
        view: of B frames.
        texts: (T, D) unit vectors that the softmax runs over.
        classes: (M, B) int64, M choices of a text per frame; each costs one backward pass through one block.

    Returns:
        (M, B, h, w) float32, ≥ 0.
    """
    with torch.enable_grad():
        activations = view.activations.detach().requires_grad_()
        logits = encoder.scale * encoder.embed(activations, view.class_token) @ texts.T
        maps = []
        for index, chosen in enumerate(classes):
            odds = log_odds(logits, chosen)
            (gradient,) = torch.autograd.grad(odds.sum(), activations, retain_graph=index + 1 < len(classes))
            slope = (odds.sigmoid() * (-odds).sigmoid()).detach()
            weights = gradient[:, 1:].mean(1) * slope[:, None]
            maps.append(torch.einsum("bnc,bc->bn", activations.detach()[:, 1:], weights).clamp(min=0))
    return torch.stack(maps).view(*classes.shape, *view.grid)


def log_odds(logits: Tensor, classes: Tensor) -> Tensor:
    """(B, T), (B,) → (B,) ``log p_c/(1 − p_c)`` of the softmax, exact also where p_c rounds to 1."""
    own = F.one_hot(classes, logits.shape[1]).bool()
    others = logits.masked_fill(own, -torch.inf).logsumexp(1)
    return logits.gather(1, classes[:, None])[:, 0] - others

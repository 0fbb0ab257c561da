"""Partial cross-entropy on pixel seeds (eq. 1)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from colocam.errors import ColocamError
from colocam.utils.tensors import require_finite

IGNORE = 255


class PartialCrossEntropy(nn.Module):
    """Mean of -(1 - Y) log S⁰ - Y log S¹ over the labelled pixels of the batch; 0 if no pixel is labelled.

    >>> loss = PartialCrossEntropy()
    >>> logits = torch.randn(1, 2, 8, 8, requires_grad=True)
    >>> labels = torch.full((1, 8, 8), 255)        # 255: unlabelled
    >>> labels[0, 0, 0], labels[0, 4, 4] = 0, 1    # one background and one foreground seed
    >>> loss(logits, labels).backward()
    """

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Logits (B, 2, H, W), labels (B, H, W) int64 (0 background, 1 foreground, 255 unlabelled) → scalar."""
        require_finite("PartialCrossEntropy", logits=logits)
        if labels.is_cpu and not bool(((labels == 0) | (labels == 1) | (labels == IGNORE)).all()):
            raise ColocamError(
                f"PartialCrossEntropy: labels must be 0 (background), 1 (foreground) or {IGNORE} (unlabelled), "
                f"got {sorted(set(labels.flatten().tolist()) - {0, 1, IGNORE})[:4]}"
            )
        wide = logits if logits.dtype == torch.float64 else logits.float()
        total = functional.cross_entropy(wide, labels, ignore_index=IGNORE, reduction="sum")
        return total / (labels != IGNORE).sum().clamp(min=1)

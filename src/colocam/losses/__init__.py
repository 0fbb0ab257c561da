"""The terms of the training loss: eq. 1 pixel seeds, eq. 2 CRF, eq. 3 size, eq. 4 and 5 co-localization.

Maps S are foreground probabilities S¹ in 0–1, (B, H, W); the background is S⁰ = 1 - S¹. Frames are RGB in 0–255,
(B, 3, H, W). The weights λ of eq. 5 belong to the training configuration and are not applied here. ``terms`` has the
registry ``LOSSES`` and shows how to add a loss.
"""

from typing import TYPE_CHECKING

from colocam.utils.extras import lazy_names

if TYPE_CHECKING:
    from colocam.losses.pairwise import CoLocLoss, CRFLoss
    from colocam.losses.terms import LOSSES, Loss, PartialCrossEntropy, SizeConstraint, StepTensors, Term

__all__ = [
    "LOSSES",
    "CRFLoss",
    "CoLocLoss",
    "Loss",
    "PartialCrossEntropy",
    "SizeConstraint",
    "StepTensors",
    "Term",
]

__getattr__, __dir__ = lazy_names(  # these import torch, which the color mean of an ONNX model's maps does not need
    __name__, dict.fromkeys(__all__, "colocam.losses.terms")
)

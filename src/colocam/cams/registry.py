"""Class activation maps by the name of their method.

The classifier is an encoder, average pooling and a linear head, so the gradient of a logit with respect to the last
feature map is known beforehand, and every method is a function of that map and of the class's row of the head. A new
one is such a function in a file of its own, a line in ``METHODS`` and its name in :data:`colocam.config.Cam`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from colocam.cams.cam import cam
from colocam.cams.closed_form import layercam
from colocam.cams.gradcam import gradcam
from colocam.cams.gradcam_pp import gradcam_pp
from colocam.cams.smooth_gradcam_pp import smooth_gradcam_pp
from colocam.cams.xgradcam import xgradcam
from colocam.config import Cam
from colocam.errors import ColocamError, suggest
from colocam.models import Classifier

METHODS: dict[Cam, Callable[[Tensor, Tensor], Tensor]] = {
    "cam": cam,
    "gradcam": gradcam,
    "gradcam++": gradcam_pp,
    "smooth-gradcam++": smooth_gradcam_pp,
    "xgradcam": xgradcam,
    "layercam": layercam,
}
"""Name → function of the last feature map (B, K, h, w) and the class's weights (B, K), oldest first."""


def method_name(name: str) -> Cam:
    """``name`` if there is such a method; else an error with the nearest one."""
    for known in METHODS:
        if known == name:
            return known
    raise ColocamError(f"no CAM method '{name}'{suggest(name, list(METHODS))}")


def extract(method: str, classifier: Classifier, frames: Tensor, classes: Tensor) -> Tensor:
    """Where the classifier sees its class: one pass over the batch, without gradients, in evaluation mode.

    The classifier is left as it was, also after an exception.

    Args:
        method: a key of ``METHODS``.
        classifier: on the device of ``frames``.
        frames: (B, 3, H, W) RGB in 0–255.
        classes: (B,) int64, the class whose evidence is mapped.

    Returns:
        (B, h, w) float32 at the resolution of the features, before any normalisation.
    """
    function = METHODS[method_name(method)]
    if classes.shape != frames.shape[:1]:
        raise ColocamError(f"{len(frames)} frames need as many classes, not a tensor of shape {tuple(classes.shape)}")
    with torch.no_grad(), _evaluation_mode(classifier):
        features = classifier(frames).features[-1]
        weights = classifier.head.weight[classes]
        with torch.autocast(features.device.type, enabled=False):  # sums over channels need their digits
            return function(features.float(), weights.float())


@contextmanager
def _evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Switch to evaluation and back again, each part to its own mode: some may be frozen while others train."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training

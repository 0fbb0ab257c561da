"""Class activation maps (CAMs): where a classifier sees its class.

``CAMS`` names them; ``extract`` computes one for a batch of frames; ``cam``, ``gradcam``, ``gradcam_pp`` and
``layercam`` are the formulas; ``min_max`` and ``full_size`` scale maps to 0–1 and to the size of the frame.

A CAM is a function of :class:`CamInputs` that returns one map per frame. Register it under a name, and ``cam: mine`` in
a configuration, ``evaluate(cams=["mine"])`` and the reports know it:

>>> from colocam.cams import CAMS, Cam, CamInputs
>>> def mine(seen: CamInputs):
...     return seen.features[-1].norm(dim=1)          # (B, h, w): how strong the features are, whatever the class
>>> CAMS["mine"] = Cam("My CAM", mine)
>>> del CAMS["mine"]
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from colocam.config import Config
from colocam.errors import ColocamError
from colocam.models import Classifier
from colocam.models.cam_formulas import cam, full_size, gradcam, gradcam_pp, layercam, min_max
from colocam.utils.extensions import REGISTRIES, unknown
from colocam.utils.tensors import content_hash

__all__ = ["CAMS", "Cam", "CamInputs", "CamSource", "ExternalCam", "classifier_cams", "extract", "find_cam", "open_cam"]
__all__ += ["cam", "full_size", "gradcam", "gradcam_pp", "layercam", "min_max"]


class CamInputs(NamedTuple):
    """What a CAM is computed from: one batch of B frames, on one device, without gradients.

    Attributes:
        frames: (B, 3, H, W) RGB in 0–255.
        features: the encoder's feature maps [(B, C_i, h_i, w_i)] in float32, finest first. Where the classifier
            normalizes pooled features, the last map A is divided by the norm of its mean, a positive factor of each
            frame: in any case the head gives A the logit ``w · mean(A) + b``.
        classes: (B,) int64, the class to map in each frame.
        weights: (B, C) the head's row of each frame's class in float32; C is the channels of the last feature map.
        classifier: in evaluation mode, for further passes: ``classifier.logits(frames)``; for gradients with respect to
            feature maps, ``features = classifier.encoder(frames)`` and ``classifier.read(features[-1])`` → logits,
            within ``torch.enable_grad()``.
    """

    frames: Tensor
    features: list[Tensor]
    classes: Tensor
    weights: Tensor
    classifier: Classifier

    @property
    def logits(self) -> Tensor:
        """(B, classes) of the classifier; a further pass where it reads the class at another size."""
        return self.classifier.logits(self.frames, self.features)

    @property
    def gradient(self) -> Tensor:
        """(B, C) gradient of the class's logit with respect to the last feature map, the same at all positions."""
        return self.weights / self.features[-1].shape[2:].numel()


class CamSource(NamedTuple):
    """A CAM that is ready to use.

    Attributes:
        maps: frames (B, 3, H, W) in 0–255, classes (B,) → maps (B, h, w) of any scale.
        describe: returns the ``identity``; it hashes weights, so it is called only where a cache needs it.
    """

    maps: Callable[[Tensor, Tensor], Tensor]
    describe: Callable[[], dict[str, Any]]

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that the maps depend on besides the frames, as JSON values: the key of a cache."""
        return self.describe()


class Cam(NamedTuple):
    """A CAM of the run's classifier.

    Attributes:
        title: what reports print.
        maps: → (B, h, w) of any resolution and scale; each map is scaled to 0–1 afterwards.
    """

    title: str
    maps: Callable[[CamInputs], Tensor]


class ExternalCam(NamedTuple):
    """Maps of another model than the run's classifier, such as CLIP.

    Attributes:
        title: what reports print.
        open: (configuration of the run, its tags, device) → the maps; called on first use.
    """

    title: str
    open: Callable[[Config, Sequence[str], torch.device], CamSource]


def _open_clip_es(config: Config, tags: Sequence[str], device: torch.device) -> CamSource:
    from colocam.cams.clip import BACKGROUND, ClipES, Refinement  # noqa: PLC0415 - an extra

    clip = config.clip
    if clip.model is None:
        raise ColocamError(
            "cam: clip-es needs a checkpoint: set clip.model to a folder or a name (docs/guide/clip-es.md)"
        )
    clip_es = ClipES.load(
        clip.model,
        clip.names or tags,
        background=BACKGROUND if clip.background else (),
        refine=Refinement() if clip.refine else None,
        device=device,
    )
    return CamSource(clip_es, lambda: {"method": "clip-es", **clip_es.identity})


def _gradcam(seen: CamInputs) -> Tensor:
    return gradcam(seen.features[-1], seen.gradient)


def _gradcam_pp(seen: CamInputs) -> Tensor:
    return gradcam_pp(seen.features[-1], seen.weights)


CAMS: dict[str, Cam | ExternalCam] = {
    "cam": Cam("CAM", lambda seen: cam(seen.features[-1], seen.weights)),
    "gradcam": Cam("GradCAM", _gradcam),
    "gradcam++": Cam("GradCAM++", _gradcam_pp),
    "smooth-gradcam++": Cam("Smooth-GradCAM++", _gradcam_pp),
    "xgradcam": Cam("XGradCAM", _gradcam),
    "layercam": Cam("LayerCAM", lambda seen: layercam(seen.features[-1], seen.gradient)),
    "clip-es": ExternalCam("CLIP-ES", _open_clip_es),
}
"""Name in the configuration → CAM, oldest first. Add your own before you load a configuration that names it."""
REGISTRIES["colocam.cams.CAMS"] = CAMS


def find_cam(name: str) -> Cam | ExternalCam:
    """The CAM registered as ``name``; otherwise an error with the nearest name."""
    if name not in CAMS:
        raise ColocamError(f"no CAM method '{name}'{unknown(name, list(CAMS))}")
    return CAMS[name]


def classifier_cams() -> list[str]:
    """Names of the CAMs that need no model besides the run's classifier."""
    return [name for name, entry in CAMS.items() if isinstance(entry, Cam)]


def open_cam(name: str, classifier: Classifier, config: Config, tags: Sequence[str], device: torch.device) -> CamSource:
    """Prepare the CAM ``name`` for frames of videos with ``tags``."""
    entry = find_cam(name)
    if isinstance(entry, ExternalCam):
        return entry.open(config, tags, device)
    return CamSource(partial(extract, name, classifier), partial(_identity, name, entry, classifier))


def extract(name: str, classifier: Classifier, frames: Tensor, classes: Tensor) -> Tensor:
    """Maps of one class per frame by the CAM ``name``, computed in evaluation mode and without gradients.

    The modes of the classifier's modules are restored afterwards, also after an exception.

    Args:
        name: a key of ``CAMS`` whose maps come from the classifier.
        classifier: on the device of ``frames``.
        frames: (B, 3, H, W) RGB in 0–255.
        classes: (B,) int64, the class to map in each frame.

    Returns:
        (B, h, w) float32, not normalized; the methods of the literature give the resolution of the last feature map.
    """
    entry = find_cam(name)
    if isinstance(entry, ExternalCam):
        raise ColocamError(f"the CAM '{name}' does not come from a classifier: use open_cam")
    if classes.shape != frames.shape[:1]:
        raise ColocamError(
            f"classes must hold one class for each of the {len(frames)} frames, got shape {tuple(classes.shape)}"
        )
    # inference mode would forbid gradients to a CAM that needs some
    with torch.inference_mode(mode=False), torch.no_grad(), _evaluation_mode(classifier):
        frames, classes = (x.clone() if x.is_inference() else x for x in (frames, classes))
        features = classifier.encoder(frames)
        with torch.autocast(frames.device.type, enabled=False):  # sums over channels lose digits in half precision
            weights = classifier.head.weight[classes].float()
            *finer, last = (part.float() for part in features)
            seen = CamInputs(frames, [*finer, classifier.scaled(last, last)], classes, weights, classifier)
            maps = entry.maps(seen).detach()
    if maps.dim() != 3 or len(maps) != len(frames):
        raise ColocamError(f"the CAM '{name}' must return ({len(frames)}, h, w) maps, got {tuple(maps.shape)}")
    return maps


def _identity(name: str, entry: Cam, classifier: Classifier) -> dict[str, Any]:
    identity = {"method": name, "classifier": content_hash(classifier)}
    function = f"{entry.maps.__module__}.{getattr(entry.maps, '__qualname__', type(entry.maps).__qualname__)}"
    # caches of built-in CAMs keep the key that earlier versions wrote
    return identity if function.startswith("colocam.") else {**identity, "function": function}


@contextmanager
def _evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode, then restore each submodule's own mode: some may be frozen while others train."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training

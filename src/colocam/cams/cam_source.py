"""Where a run's seeds come from: a CAM of its own classifier, or CLIP-ES."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from colocam.cams.methods import extract, method_name
from colocam.config import ClipModel, Source
from colocam.errors import ColocamError
from colocam.models import Classifier
from colocam.models.identity import content_hash


@dataclass(frozen=True, slots=True)
class CamSource:
    """Maps of a frame's class.

    Attributes:
        maps: frames (B, 3, H, W) in 0–255, classes (B,) → (B, h, w) before normalisation.
        describe: makes the ``identity``; it hashes weights, which only a cache asks for.
    """

    maps: Callable[[Tensor, Tensor], Tensor]
    describe: Callable[[], dict[str, Any]]

    @property
    def identity(self) -> dict[str, Any]:
        """All that the maps depend on besides the frames, as plain JSON: the key of a cache."""
        return self.describe()


def source_name(name: str) -> Source:
    """``name`` if there is such a source; else an error with the nearest one."""
    return "clip-es" if name == "clip-es" else method_name(name)


def open_source(
    name: Source, classifier: Classifier, clip: ClipModel, tags: Sequence[str], device: torch.device
) -> CamSource:
    """The source ``name`` for frames of these tags; CLIP is opened only where it is asked for."""
    if name != "clip-es":
        maps = partial(extract, name, classifier)
        return CamSource(maps, lambda: {"method": name, "classifier": content_hash(classifier)})
    from colocam.cams.clip import BACKGROUND, ClipES, Refinement  # noqa: PLC0415 - an extra

    if clip.model is None:
        raise ColocamError("cam: clip-es needs a checkpoint: set clip.model to a folder or name; docs/guide/clip-es.md")
    clip_es = ClipES.load(
        clip.model,
        clip.names or tags,
        background=BACKGROUND if clip.background else (),
        refine=Refinement() if clip.refine else None,
        device=device,
    )
    return CamSource(clip_es, lambda: {"method": name, **clip_es.identity})

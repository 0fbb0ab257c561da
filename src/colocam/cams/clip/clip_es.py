"""CLIP-ES: where CLIP sees a class that is given by its name; nothing is trained."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from colocam.cams.clip.attention_affinity import Refinement, attention_affinity, refine
from colocam.cams.clip.clip_encoder import ClipEncoder, load_encoder
from colocam.cams.clip.prompts import TEMPLATE, fill, rivals
from colocam.cams.clip.softmax_gradcam import softmax_gradcam
from colocam.cams.normalise import min_max
from colocam.errors import ColocamError
from colocam.utils.tensors import content_hash


class ClipES:
    """CLIP-ES (Lin et al., "CLIP is Also an Efficient Segmenter", CVPR 2023) for a fixed list of tags.

    Softmax-GradCAM of each frame's class against all tags and an optional list of background names, then an optional
    refinement by CLIP's attention. ``clip_es(frames, classes)`` computes the maps.

    Args:
        encoder: the CLIP model.
        tags: names of the classes in the order of their indices, in words that CLIP knows.
        background: names of what surrounds objects, e.g. ``BACKGROUND``; they join the softmax.
        refinement: None: no refinement.
        template: sentence around a name, with ``{}`` in its place.
    """

    def __init__(
        self,
        encoder: ClipEncoder,
        tags: Sequence[str],
        *,
        background: Sequence[str] = (),
        refinement: Refinement | None = None,
        template: str = TEMPLATE,
    ) -> None:
        self.encoder = encoder
        self.tags = tuple(tags)
        self.background = rivals(tags, background)
        self.refinement = refinement
        self.template = template
        if len(self.tags) + len(self.background) < 2 or not self.tags:
            raise ColocamError(
                f"CLIP-ES compares a tag with other names, but got only {[*self.tags, *self.background]}: "
                "give more tags or a list of background names"
            )
        self.texts = encoder.texts(fill(template, [*self.tags, *self.background]))

    @classmethod
    def load(
        cls,
        name_or_path: str | Path,
        tags: Sequence[str],
        *,
        background: Sequence[str] = (),
        refine: Refinement | None = None,
        template: str = TEMPLATE,
        device: torch.device | str = "cpu",
    ) -> "ClipES":
        """Open a CLIP checkpoint and encode the names.

        Args:
            name_or_path: a folder in Hugging Face format, or a name on the hub.
            tags: as for the class.
            background: as for the class.
            refine: ``Refinement()`` to refine the maps; None: no refinement.
            template: as for the class.
            device: where the maps are computed.
        """
        encoder = load_encoder(name_or_path, device)
        return cls(encoder, tags, background=background, refinement=refine, template=template)

    def __call__(self, frames: Tensor, classes: Tensor) -> Tensor:
        """Maps of one class per frame, not normalised.

        Args:
            frames: (B, 3, H, W) RGB in 0–255, any size and dtype.
            classes: (B,) int64, the index of the tag to map in each frame.

        Returns:
            (B, h, w) float32, ≥ 0, one value per patch of CLIP (h = ⌈H / patch⌉).
        """
        if classes.shape != frames.shape[:1]:
            raise ColocamError(
                f"classes must hold one class for each of the {len(frames)} frames, got shape {tuple(classes.shape)}"
            )
        if len(classes) and not 0 <= int(classes.min()) <= int(classes.max()) < len(self.tags):
            raise ColocamError(f"classes must be in 0–{len(self.tags) - 1}, got {classes.tolist()}")
        return self._maps(frames, classes[None])[:, 0]

    def every_class(self, frames: Tensor) -> Tensor:
        """(B, 3, H, W) → (B, K, h, w) raw maps of all K tags: one forward pass, K backward passes of one block."""
        return self._maps(frames, torch.arange(len(self.tags))[:, None].expand(-1, len(frames)))

    def average(self, frames: Tensor) -> Tensor:
        """(B, 3, H, W) → (B, h, w) mean of the normalised maps of all tags; needs no class."""
        maps = self.every_class(frames)
        return min_max(maps.flatten(0, 1)).view(maps.shape).mean(1)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that the maps depend on besides the frames, as JSON values: the key of a cache."""
        return {
            "model": content_hash(self.encoder.model),
            "mean": list(self.encoder.mean),
            "std": list(self.encoder.std),
            "tags": list(self.tags),
            "background": list(self.background),
            "template": self.template,
            "refinement": asdict(self.refinement) if self.refinement else None,
        }

    @torch.inference_mode(mode=False)
    def _maps(self, frames: Tensor, classes: Tensor) -> Tensor:
        """(B, 3, H, W), (M, B) → (B, M, h, w)."""
        # 100 · cosine needs float32, whatever the caller's autocast is
        with torch.autocast(self.encoder.device.type, enabled=False):
            view = self.encoder.view(frames, self.refinement.layers if self.refinement else 0)
            chosen = classes.to(self.encoder.device, copy=True)  # autograd cannot save a tensor from inference mode
            maps = softmax_gradcam(self.encoder, view, self.texts, chosen).transpose(0, 1)
            if self.refinement is None:
                return maps
            assert view.attention is not None
            affinity = attention_affinity(view.attention, self.refinement.rounds)
            return refine(maps, affinity, self.refinement.threshold, self.refinement.times)

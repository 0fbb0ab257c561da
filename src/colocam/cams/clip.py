"""CLIP-ES: class maps from CLIP and the names of the tags; no classifier is trained for them (extra ``clip``).

Softmax-GradCAM (Lin et al., CVPR 2023) is Grad-CAM of a class's probability instead of its logit. Class-aware
attention-based affinity (CAA) then refines the maps by the attention between patches.

Tests: tests/cams/clip/test_clip_es.py, tests/cams/clip/test_softmax_gradcam.py, tests/cams/clip/test_affinity.py.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.cams.clip_encoder import ClipEncoder, View, load_encoder
from colocam.errors import ColocamError
from colocam.models.cam_formulas import min_max
from colocam.utils.tensors import content_hash

TEMPLATE = "a clean origami {}."
"""The sentence that CLIP-ES chose: its scores differ most between classes."""

BACKGROUND = (
    "ground", "land", "grass", "tree", "building", "wall", "sky", "lake", "water", "river", "sea", "railway",
    "railroad", "keyboard", "helmet", "cloud", "house", "mountain", "ocean", "road", "rock", "street", "valley",
    "bridge", "sign",
)  # fmt: skip
"""The background names of CLIP-ES, as quoted in the CoLo-CAM paper."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """Parameters of the refinement.

    Attributes:
        layers: number of last attention maps that are averaged.
        rounds: number of row and column normalizations (Sinkhorn).
        threshold: λ in 0–1; boxes are drawn around the regions of the normalized map that exceed it.
        times: t, how often the affinity is applied.
    """

    layers: int = 8
    rounds: int = 3
    threshold: float = 0.4
    times: int = 2

    def __post_init__(self) -> None:
        if min(self.layers, self.rounds, self.times) < 1:
            raise ColocamError(f"layers, rounds and times of a CLIP-ES refinement must be at least 1, got {self}")
        if not 0 <= self.threshold < 1:
            raise ColocamError(f"threshold of a CLIP-ES refinement must be in 0–1, got {self.threshold}")


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
        """Maps of one class per frame, not normalized.

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
        """(B, 3, H, W) → (B, h, w) mean of the normalized maps of all tags; needs no class."""
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


def rivals(tags: Sequence[str], background: Sequence[str]) -> tuple[str, ...]:
    """The background names that are not also a tag: a class must not compete with its own name."""
    own = {tag.casefold() for tag in tags}
    return tuple(name for name in background if name.casefold() not in own)


def fill(template: str, names: Sequence[str]) -> list[str]:
    """One sentence per name, which replaces ``{}`` in the template."""
    if template.count("{}") != 1:
        raise ColocamError(f"the CLIP template '{template}' must contain '{{}}' once, where the name goes")
    return [template.replace("{}", name) for name in names]


def softmax_gradcam(encoder: ClipEncoder, view: View, texts: Tensor, classes: Tensor) -> Tensor:
    """Maps of what raises the probability of a class, not normalized.

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


def attention_affinity(attention: Tensor, rounds: int) -> Tensor:
    """(B, N, N) attention → symmetric affinity A whose rows and columns sum to 1.

    Sinkhorn's algorithm alternately scales the rows and the columns of D to sum 1; ``A = (D + Dᵀ)/2``.
    """
    balanced = attention
    for _ in range(rounds):
        balanced = balanced / balanced.sum(1, keepdim=True)
        balanced = balanced / balanced.sum(2, keepdim=True)
    return (balanced + balanced.mT) / 2


def refine(maps: Tensor, affinity: Tensor, threshold: float, times: int) -> Tensor:
    """Spread each map along the affinity: ``M' = (B ⊙ Aᵗ) vec(M)``.

    The row vector B is 1 in the boxes around the regions that exceed the threshold: values inside them are spread, to
    any patch; values outside are dropped. M is scaled to 0–1 first.

    Args:
        maps: (B, K, h, w), K maps per frame.
        affinity: (B, N, N), N = h·w, one per frame.
        threshold: λ in 0–1.
        times: t.

    Returns:
        (B, K, h, w), ≥ 0; a constant map becomes zero.
    """
    scaled = min_max(maps.flatten(0, 1))
    inside = region_boxes(scaled > threshold)
    evidence = torch.where(inside, scaled, 0).view(maps.shape).flatten(2)
    for _ in range(times):
        evidence = torch.einsum("bij,bkj->bki", affinity, evidence)
    return evidence.view(maps.shape)


def region_boxes(mask: Tensor) -> Tensor:
    """Fill the bounding box of every 8-connected region of each (B, h, w) bool mask."""
    filled = np.zeros(mask.shape, np.bool_)
    for boxes, regions in zip(filled, mask.cpu().numpy().astype(np.uint8), strict=True):
        for left, top, width, height, _ in cv2.connectedComponentsWithStats(regions, connectivity=8)[2][1:]:
            boxes[top : top + height, left : left + width] = True
    return torch.from_numpy(filled).to(mask.device)

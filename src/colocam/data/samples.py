"""Frames for evaluation: whole frames at the model's size, with their classes and true boxes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.data.augment import whole
from colocam.data.batches import BatchIndices, read_frames
from colocam.data.frame_cache import CachedClip
from colocam.data.truth import Truth
from colocam.video.frame_choice import evenly

Boxes = npt.NDArray[np.float32]
"""(k, 4) boxes of one frame; k = 0 where the object is absent."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Frames of clips.

    Attributes:
        clips: the clips of the frames.
        indices: the frames, clip by clip.
        classes: (N,) int64, index of each frame's tag.
    """

    clips: Sequence[CachedClip]
    indices: BatchIndices
    classes: Tensor

    def __len__(self) -> int:
        return len(self.classes)

    def batches(self, size: int, device: torch.device, batch: int = 64) -> Iterator[tuple[Tensor, Tensor]]:
        """Frames (B, 3, size, size) in 0–255 and classes (B,) on the device, in order."""
        for start in range(0, len(self), batch):
            yield self.read(slice(start, start + batch), size, device)

    def read(self, part: slice, size: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Frames (B, 3, size, size) in 0–255 and classes (B,) of some samples, on the device."""
        frames = read_frames(self.clips, self.indices.part(part)).to(device)
        return whole(frames, size), self.classes[part].to(device)

    def where(self) -> list[tuple[CachedClip, int]]:
        """The clip of each frame and the frame's index in its video."""
        pairs = zip(self.indices.clips.tolist(), self.indices.frames.tolist(), strict=True)
        return [(self.clips[c], int(self.clips[c].index[f])) for c, f in pairs]


def spread_samples(clips: Sequence[CachedClip], tags: Sequence[str], per_clip: int) -> Samples:
    """At most ``per_clip`` frames of each clip, evenly spread."""
    return chosen_samples(clips, tags, [evenly(len(clip), per_clip) for clip in clips])


def labelled_samples(
    clips: Sequence[CachedClip],
    tags: Sequence[str],
    truth: Truth,
    per_clip: int | None = None,
    *,
    present: bool = False,
) -> Samples:
    """The cached frames that have a label (with ``present``: a box), at most ``per_clip`` of a clip, evenly spread."""
    chosen = []
    for clip in clips:
        name = clip.clip.name
        wanted = [frame for frame in truth.labelled(name) if truth.boxes(name, frame) or not present]
        labelled = np.flatnonzero(np.isin(clip.index, wanted)).tolist()
        chosen.append([labelled[i] for i in evenly(len(labelled), per_clip or len(labelled))])
    return chosen_samples(clips, tags, chosen)


def scaled_boxes(samples: Samples, truth: Truth, size: int) -> list[Boxes]:
    """True boxes of each frame in pixels of the (size, size) frame."""
    scaled = []
    for clip, frame in samples.where():
        width, height = clip.sizes[np.searchsorted(clip.index, frame)]
        factor = np.array([size / width, size / height] * 2)
        scaled.append((np.array(truth.boxes(clip.clip.name, frame)).reshape(-1, 4) * factor).astype(np.float32))
    return scaled


def chosen_samples(clips: Sequence[CachedClip], tags: Sequence[str], frames: Sequence[Sequence[int]]) -> Samples:
    """The frames of each clip whose indices in it are given."""
    sizes = torch.tensor([len(chosen) for chosen in frames], dtype=torch.int64)
    clip = torch.arange(len(clips)).repeat_interleave(sizes)
    classes = torch.tensor([tags.index(one.clip.tag) for one in clips], dtype=torch.int64)[clip]
    frame = torch.tensor(list(chain.from_iterable(frames)), dtype=torch.int64)
    return Samples(clips, BatchIndices(clip, frame, clip), classes)

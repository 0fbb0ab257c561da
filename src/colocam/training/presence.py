"""Which training frames show the object? A tag is about the video: frames without the object teach what is not there.

The presence of every training frame (:mod:`colocam.temporal.presence`, offline) weighs its loss or drops it.
Presences are computed once and kept on disk, so that a run that goes on sees what it saw before.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from colocam.cams import extract
from colocam.config import UsePresence
from colocam.data.batches import BatchIndices
from colocam.data.cache_entry import CachedClip
from colocam.data.samples import spread_samples
from colocam.errors import ColocamError
from colocam.models import Classifier
from colocam.temporal.presence import clip_presence
from colocam.training.validation import Validator
from colocam.utils.checkpoint import save_tensors
from colocam.utils.interrupt import raise_if_stopped
from colocam.utils.progress import progress

BOUND = 0.5
"""Frames with a lower presence are dropped, ..."""
KEPT = 0.5
"""... but never more than the other share of a clip: a tag may be wrong about some frames, hardly about most."""


class FramesInUse:
    """The frames of each clip that training draws from, and what each counts.

    Attributes:
        lengths: how many frames of each clip may be drawn.
    """

    def __init__(self, presences: Sequence[Tensor], use: UsePresence) -> None:
        """Take the presences (T,) of each clip's frames."""
        kept = [_kept(one) if use == "drop" else torch.arange(len(one)) for one in presences]
        self.lengths = [len(frames) for frames in kept]
        self._kept, self._first = torch.cat(kept), _starts(self.lengths)
        # relative to the clip's best frame: a video that the classifier misreads keeps its say
        relative = [one / one.max().clamp(min=1e-6) for one in presences]
        self._weights = torch.cat(relative) if use == "weight" else None
        self._start = _starts([len(one) for one in presences])

    def frames_of(self, indices: BatchIndices) -> BatchIndices:
        """BatchIndices among the frames in use → the same as numbers of frames in their clips."""
        return BatchIndices(indices.clips, self._kept[self._first[indices.clips] + indices.frames], indices.sequences)

    def weights(self, indices: BatchIndices) -> dict[str, Tensor]:
        """``weights`` (B,) in 0–1 of the picked frames, numbered as in their clips; nothing where all count alike."""
        return {} if self._weights is None else {"weights": self._weights[self._start[indices.clips] + indices.frames]}


def all_frames(clips: Sequence[CachedClip]) -> FramesInUse:
    """Every frame, whether the object is there or not, as published."""
    return FramesInUse([torch.ones(len(clip)) for clip in clips], "off")


def frames_with_object(
    use: UsePresence, path: Path, classifier: Classifier, clips: Sequence[CachedClip], validator: Validator
) -> FramesInUse:
    """Frames by the presences at ``path``, computed first if they are missing, by the classifier as it is now."""
    if not path.is_file():
        save_tensors(path, {"presence": _measure(classifier, clips, validator)})
    lengths = [len(clip) for clip in clips]
    try:
        presences = torch.split(load_file(path)["presence"], lengths)
    except (OSError, SafetensorError, KeyError, RuntimeError) as error:
        raise ColocamError(f"{path} is damaged ({error}): delete it") from error
    return FramesInUse(presences, use)


def _measure(classifier: Classifier, clips: Sequence[CachedClip], validator: Validator) -> Tensor:
    """(N,) presence of the clip's tag in all frames, clip by clip."""
    lengths = [len(clip) for clip in clips]
    calibration = validator.presence(classifier)
    if calibration is None:
        return torch.ones(sum(lengths))
    samples = spread_samples(clips, validator.tags, max(lengths))
    peaks = []
    with progress("presence", len(samples), unit="frames") as advance:
        for frames, classes in samples.batches(validator.size, validator.device):
            peaks.append(extract("cam", classifier, frames, classes).amax((1, 2)).cpu())
            advance(len(frames))
            raise_if_stopped("presence")
    parts = torch.split(torch.cat(peaks), lengths)
    return torch.cat([torch.from_numpy(clip_presence(part.numpy(), calibration)).float() for part in parts])


def _kept(presences: Tensor) -> Tensor:
    """Sorted numbers of the frames to draw from."""
    likeliest = presences.sort(descending=True, stable=True).indices[: math.ceil(KEPT * len(presences))]
    keep = presences >= BOUND
    keep[likeliest] = True
    return keep.nonzero()[:, 0]


def _starts(lengths: Sequence[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)[:-1]

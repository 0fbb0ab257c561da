"""Frames of training steps and of evaluation: which ones, and how they are read from the cache.

Those of a training step are pure functions of (seed, epoch). Evaluation takes whole frames at the model's size, with
their classes and true boxes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from colocam.data.augment import whole
from colocam.data.frame_cache import CachedClip
from colocam.data.truth import Truth
from colocam.errors import ColocamError
from colocam.utils.tensors import generator
from colocam.video.frame_choice import evenly

Boxes = npt.NDArray[np.float32]
"""(k, 4) boxes of one frame; k = 0 where the object is absent."""

ON_A_CPU, ON_A_GPU = 16, 64
"""Frames of one pass without a gradient: the activations of 64 frames take 2 GB, and a CPU is no quicker with them."""

Sampler = Callable[..., Tensor]
"""``sampler(length, n, generator, window=0.6)`` → (≤ n,) int64 frame indices."""


def adjacent(length: int, n: int, generator: torch.Generator, window: float = 0.6) -> Tensor:
    """A uniform frame t and the n−1 before it, fewer at the start of the window: the least diverse frames."""
    first, last = central(length, window)
    if last - first <= n:
        return torch.arange(first, last)
    t = int(torch.randint(first, last, (), generator=generator))
    return torch.arange(max(first, t - n + 1), t + 1)


def interval(length: int, n: int, generator: torch.Generator, window: float = 0.6) -> Tensor:
    """One uniform frame from each of n equal, disjoint intervals: the most diverse frames."""
    first, last = central(length, window)
    if last - first <= n:
        return torch.arange(first, last)
    edges = first + torch.arange(n + 1) * (last - first) // n
    shares = torch.rand(n, generator=generator, dtype=torch.float64)
    return edges[:-1] + (shares * (edges[1:] - edges[:-1])).long()


def gaussian(length: int, n: int, generator: torch.Generator, window: float = 0.6) -> Tensor:
    """Sample n frames with weights exp(−(i − c)² / 2σ²), c the middle of the clip and σ a quarter of the window."""
    first, last = central(length, window)
    if last - first <= n:
        return torch.arange(first, last)
    frames = torch.arange(first, last)
    sigma = (last - first) / 4
    weights = torch.exp(-((frames - (length - 1) / 2) ** 2) / (2 * sigma**2))
    sampled = torch.multinomial(weights, n, replacement=False, generator=generator)
    return frames[sampled].sort().values


def central(length: int, window: float) -> tuple[int, int]:
    """Half-open range of the central ``window`` (0–1) of a clip; never empty."""
    if length < 1 or not 0 < window <= 1:
        raise ValueError(f"no window of {window} in a clip of {length} frames")
    margin = min(int(length * (1 - window) / 2 + 1e-9), (length - 1) // 2)
    return margin, length - margin


SAMPLERS: dict[str, Sampler] = {"adjacent": adjacent, "interval": interval, "gaussian": gaussian}


@dataclass(frozen=True, slots=True)
class BatchIndices:
    """The frames of one step.

    Attributes:
        clips: (B,) int64, index of the clip in its list.
        frames: (B,) int64, index of the frame in its clip.
        sequences: (B,) int64, index of the frame's sequence within the step, ascending.
        start: where several processes share the step, index of the first of these frames in the whole step.
        total: number of frames of the whole step; None: these are all.
    """

    clips: Tensor
    frames: Tensor
    sequences: Tensor
    start: int = 0
    total: int | None = None

    @property
    def whole(self) -> int:
        """Number of frames of the whole step. Random numbers are sampled for all of them: see :attr:`rows`."""
        return len(self.clips) if self.total is None else self.total

    @property
    def rows(self) -> slice:
        """Rows of these frames in the whole step."""
        return slice(self.start, self.start + len(self.clips))

    @property
    def count(self) -> int:
        """Number of sequences."""
        return int(self.sequences[-1]) + 1

    def part(self, rows: slice | list[int]) -> "BatchIndices":
        """Some of the frames."""
        return BatchIndices(self.clips[rows], self.frames[rows], self.sequences[rows])

    def share(self, index: int, parts: int) -> "BatchIndices":
        """Frames of part ``index`` of ``parts``, with as many sequences as in the others, or one more; none is divided.

        Raises:
            ValueError: there are fewer sequences than parts.
        """
        if parts == 1:
            return self
        if self.count < parts:
            raise ValueError(f"{self.count} sequences cannot be divided into {parts} parts")
        ends = torch.tensor([index * self.count // parts, (index + 1) * self.count // parts])
        start, end = torch.searchsorted(self.sequences, ends).tolist()
        mine = self.part(slice(start, end))
        return replace(mine, sequences=mine.sequences - mine.sequences[0], start=start, total=len(self.clips))


def plan_frames(
    lengths: Sequence[int], *, per_clip: int, batch: int, window: float, seed: int, epoch: int
) -> list[BatchIndices]:
    """Stage 1: ``per_clip`` random frames of each clip's central window, shuffled, in whole batches."""
    rng = generator(seed, "frames", epoch)
    sampled = []
    for clip, length in enumerate(lengths):
        first, last = central(length, window)
        rounds = -(-per_clip // (last - first))
        order = torch.cat([torch.randperm(last - first, generator=rng) for _ in range(rounds)])[:per_clip]
        sampled.append(torch.stack([torch.full_like(order, clip), first + order]))
    clips, frames = torch.cat(sampled, dim=1)
    order = torch.randperm(len(clips), generator=rng)
    chunks = [order[i : i + batch] for i in range(0, max(len(order) - batch, 0) + 1, batch)]
    return [BatchIndices(clips[chunk], frames[chunk], torch.arange(len(chunk))) for chunk in chunks]


def plan_sequences(
    lengths: Sequence[int], sampler: Sampler, *, n: int, per_clip: int, batch: int, window: float, seed: int, epoch: int
) -> list[BatchIndices]:
    """Stage 2: ``per_clip`` sequences of up to ``n`` frames from each clip, ``batch // n`` sequences per step."""
    rng = generator(seed, "sequences", epoch)
    per_step = max(batch // n, 1)
    order = torch.cat([torch.randperm(len(lengths), generator=rng) for _ in range(per_clip)]).tolist()
    groups = [order[i : i + per_step] for i in range(0, len(order), per_step)]
    steps = []
    for group in (g for g in groups if len(g) == min(per_step, len(order))):
        sampled = [sampler(lengths[clip], n, rng, window=window) for clip in group]
        sizes = torch.tensor([len(frames) for frames in sampled])
        clips = torch.tensor(group).repeat_interleave(sizes)
        steps.append(BatchIndices(clips, torch.cat(sampled), torch.arange(len(group)).repeat_interleave(sizes)))
    return steps


def kept_clips(tags: Sequence[str], leave_out: int, draw: int) -> Tensor:
    """Leave out ``leave_out`` random clips of each tag; return the (K,) indices of the others, ascending.

    Args:
        tags: tag of each clip.
        leave_out: number of clips of each tag to leave out.
        draw: seed of the choice.
    """
    rng = generator(draw, "leave out", leave_out)
    kept: list[int] = []
    for tag in sorted(set(tags)):
        same_tag = [index for index, other in enumerate(tags) if other == tag]
        if len(same_tag) <= leave_out:
            raise ColocamError(
                f"localizer.leave_out must be below the {len(same_tag)} training clips of {tag!r}, got {leave_out}"
            )
        order = torch.randperm(len(same_tag), generator=rng).tolist()
        kept += [same_tag[index] for index in order[leave_out:]]
    return torch.tensor(sorted(kept))


def read_frames(clips: Sequence[CachedClip], indices: BatchIndices) -> Tensor:
    """Read (B, 3, R, R) uint8 frames from the cache."""
    pairs = zip(indices.clips.tolist(), indices.frames.tolist(), strict=True)
    return torch.from_numpy(np.stack([clips[c].frames[f] for c, f in pairs])).permute(0, 3, 1, 2)


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

    def batches(self, size: int, device: torch.device, batch: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Frames (B, 3, size, size) in 0–255 and classes (B,) on the device, in order."""
        batch = batch or frames_per_pass(device)
        for start in range(0, len(self), batch):
            yield self.read(slice(start, start + batch), size, device)

    def read(self, part: slice | list[int], size: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Frames (B, 3, size, size) in 0–255 and classes (B,) of some samples, on the device."""
        frames = read_frames(self.clips, self.indices.part(part)).to(device)
        return whole(frames, size), self.classes[part].to(device)

    def where(self) -> list[tuple[CachedClip, int]]:
        """The clip of each frame and the frame's index in its video."""
        pairs = zip(self.indices.clips.tolist(), self.indices.frames.tolist(), strict=True)
        return [(self.clips[c], int(self.clips[c].index[f])) for c, f in pairs]


def frames_per_pass(device: torch.device) -> int:
    """Frames that a network computes at a time where no gradient is needed."""
    return ON_A_CPU if device.type == "cpu" else ON_A_GPU


def spread_samples(clips: Sequence[CachedClip], tags: Sequence[str], per_clip: int) -> Samples:
    """At most ``per_clip`` frames of each clip, evenly spread."""
    return chosen_samples(clips, tags, [evenly(len(clip), per_clip) for clip in clips])


def labeled_samples(
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
        wanted = [frame for frame in truth.labeled(name) if truth.boxes(name, frame) or not present]
        labeled = np.flatnonzero(np.isin(clip.index, wanted)).tolist()
        chosen.append([labeled[i] for i in evenly(len(labeled), per_clip or len(labeled))])
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

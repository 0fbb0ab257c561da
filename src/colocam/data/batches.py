"""Choose the frames of each training step, as pure functions of (seed, epoch), and read them from the cache."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from colocam.data.cache_entry import CachedClip
from colocam.data.samplers import Sampler, central
from colocam.errors import ColocamError
from colocam.utils.tensors import generator


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

    def part(self, rows: slice) -> "BatchIndices":
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
        own = [index for index, other in enumerate(tags) if other == tag]
        if len(own) <= leave_out:
            raise ColocamError(
                f"localizer.leave_out must be below the {len(own)} training clips of {tag!r}, got {leave_out}"
            )
        order = torch.randperm(len(own), generator=rng).tolist()
        kept += [own[index] for index in order[leave_out:]]
    return torch.tensor(sorted(kept))


def read_frames(clips: Sequence[CachedClip], indices: BatchIndices) -> Tensor:
    """Read (B, 3, R, R) uint8 frames from the cache."""
    pairs = zip(indices.clips.tolist(), indices.frames.tolist(), strict=True)
    return torch.from_numpy(np.stack([clips[c].frames[f] for c, f in pairs])).permute(0, 3, 1, 2)

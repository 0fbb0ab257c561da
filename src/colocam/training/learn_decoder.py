"""Fine-tune the decoder on corrected boxes: as seeds, by their projections, with clip-mates and replay.

After one round of training, a step has two kinds of sequences. A corrected sequence holds corrected frames of one clip,
whose seeds are the boxes, and other frames of the clip without seeds: eq. 4 carries the correction to them. Ordinary
sequences of the training clips are replayed: there the decoder is held to the maps of the decoder it started from, so
that it does not forget. After several rounds, a step has corrected frames alone, with dense labels, in views of many
sizes and colours: replay would hold the decoder back (docs/method/corrections.md). Then, in a round of its own, half of
the frames are training frames with labels from the boxes that the taught decoder finds in them.
"""

from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.cams.cam_cache import CamStore
from colocam.config import Config, LocalizerStage
from colocam.data.augment import crop, jitter, resized_crop, sample_crops, sample_jitter, sample_resized_crops
from colocam.data.batches import BatchIndices, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.data.samplers import SAMPLERS
from colocam.losses import StepTensors
from colocam.losses.terms import ProjectionLoss
from colocam.models import LocalizerNet, foreground
from colocam.models.classifier import at_side
from colocam.training.learn_frames import CorrectedFrames
from colocam.training.learn_seeds import box_seeds, dense_labels
from colocam.training.loop import Task, Validation
from colocam.training.own_labels import CORE
from colocam.training.own_labels import SIDE as LABEL_SIDE
from colocam.training.seeds import seed_noise, sure_labels
from colocam.training.stage2 import COMPLETING, loss_terms
from colocam.utils.prefetch import Tensors
from colocam.utils.randomness import generator

RATE = 1.0
"""Learning rate relative to that of stage 2."""
SEQUENCE = 4
"""Frames of a sequence at most: short ones, so that a step sees corrected frames of several clips."""
REPLAYED = 0.25
"""Share of the sequences that are replayed."""
OWN = 0.5
"""Share of the sequences that have labels from the decoder's own boxes, where there are such labels."""
VIEW_AREA = (0.4, 1.0)
"""Share of a frame that a view with dense labels shows."""
VIEW_ASPECT = 0.6
"""Range of the logarithm of its aspect ratio."""
VIEW_COLORS = 0.4
"""Largest change of its brightness, contrast and saturation, as a share."""


@dataclass(frozen=True, slots=True)
class DecoderLearning:
    """What the decoder is fine-tuned with.

    Attributes:
        steps: training steps.
        seeds: use corrected boxes as labels of pixels.
        projection: weight of the projection term; 0 leaves it out.
        replay: with sparse seeds, also use ordinary sequences, and clip-mates of corrected frames.
        core: of dense labels, share of the map's maximum in a box from which a pixel is foreground; 0: the whole box.
        complete: sparse seeds, the terms that complete them (eq. 2, 3 and 4) and clip-mates; false: dense labels
            without these terms; None: as the last round of training.
    """

    steps: int = 200
    seeds: bool = True
    projection: float = 1.0
    replay: bool = True
    core: float = CORE
    complete: bool | None = None


def learning_task(
    config: Config,
    method: str,
    net: LocalizerNet,
    corrected: CorrectedFrames,
    training: Sequence[CachedClip],
    how: DecoderLearning,
    device: torch.device,
    own_labels: CamStore | None = None,
) -> Task:
    """The task that fine-tunes ``net.decoder``; one epoch of ``how.steps`` steps.

    Args:
        config: of the run.
        method: name in ``METHODS``.
        net: the trained network; its decoder as it is now is what replayed frames are held to.
        corrected: frames to learn from.
        training: clips to replay.
        how: what to use.
        device: the network's device.
        own_labels: of all frames of ``training``, after several rounds: they are replayed with these labels.
    """
    settings = config.stage2(method)
    optimisation = settings.model_copy(update={"epochs": 1, "lr": RATE * settings.lr, "schedule": "cosine"})
    resize, size, side = config.frames.resize, config.frames.crop, config.frames.map_side
    clips, first_replay = [*corrected.samples.clips, *training], len(corrected.samples.clips)
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    before, projection = deepcopy(net.decoder).eval().requires_grad_(requires_grad=False), ProjectionLoss()
    # The last of several rounds learns dense labels without the terms that complete seeds, which would undo it here.
    complete = settings.rounds == 1 if how.complete is None else how.complete
    replay = how.replay and complete
    completing = {} if complete else dict.fromkeys(COMPLETING, 0.0)
    summands = loss_terms(settings.losses.model_copy(update=completing))
    summands = [term for term in summands if how.seeds or term.name != "seeds"]
    for term in summands:
        if isinstance(term.module, nn.Module):
            term.module.to(device)
    taught = {clip.clip for clip in corrected.samples.clips}
    replayable = [at for at, clip in enumerate(clips) if at >= first_replay and clip.clip not in taught]
    share = OWN if own_labels is not None else REPLAYED if replay else 0.0
    mates = replay and any(term.name == "coloc" for term in summands)  # which carries corrections to them
    lengths = [len(clip) for clip in clips]
    planner = _Planner(corrected, lengths, replayable, share, settings, how.steps, config.seed, mates=mates)
    masks = _Masks(corrected, side, resize)

    def load(indices: BatchIndices, step: int) -> Tensors:
        rng = generator(config.seed, "learn", step)
        inside, known = masks.read(indices, torch.rand(len(indices.clips), generator=rng))
        return {
            "frames": read_frames(clips, indices),
            "sequences": indices.sequences,
            **_sample_views(len(indices.clips), resize, size, rng, plain=complete),
            "inside": inside,
            "known": known,
            "own": _read_own(own_labels, indices, first_replay),
            "replayed": indices.clips >= first_replay,
        }

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:
        frames, boxes, own = _view(loaded, size)
        inside = at_side(boxes, side)[:, 0] > 0.5
        known, images = loaded["known"][:, None, None], at_side(frames, side)
        with torch.no_grad(), half():
            features = net.classifier.encoder(frames)
            old = foreground(before(images, features).float())
        with half():
            logits = net.decoder(images, features).float()
        maps = foreground(logits)
        if complete:
            noise = seed_noise(old.shape, generator(config.seed, "learn seeds", step, device=device))
            labels = box_seeds(old, inside, settings.seeds, *noise)
        else:
            labels = dense_labels(old, inside, how.core)
        labels = torch.where(known, labels, sure_labels(at_side(own, side)[:, 0]))
        tensors = StepTensors(images, maps, logits, labels, loaded["sequences"], indices.count, epoch)
        losses = {term.name: term.weight * term.module(tensors) for term in summands}
        if how.projection:
            losses["projection"] = how.projection * projection(maps, inside & known)
        if replay:
            losses["replay"] = _replay_loss(logits, old, loaded["replayed"])
        return losses

    def validate(epoch: int) -> Validation:
        return Validation({"best": float(epoch)}, {})

    groups = [(list(net.decoder.parameters()), 1.0)]
    phase = method if own_labels is None else f"{method}, own labels"
    return Task(phase, net.decoder, groups, optimisation, lambda _: planner.steps(), load, terms, validate)


def _sample_views(count: int, resize: int, size: int, rng: torch.Generator, *, plain: bool) -> Tensors:
    """Sample what is seen of each frame. Plain: crops of one size, since the colour term compares colours of frames."""
    if plain:
        return {"crops": sample_crops(count, resize, size, rng)}
    colors = sample_jitter(count, VIEW_COLORS, rng)
    return {"colors": colors, "rectangles": sample_resized_crops(count, VIEW_AREA, VIEW_ASPECT, rng)}


def _read_own(store: CamStore | None, indices: BatchIndices, first: int) -> Tensor:
    """(B, S, S) labels of replayed frames, those of clips from ``first`` on, in 0–1; ½, unknown, of other frames."""
    labels = torch.full((len(indices.clips), LABEL_SIDE, LABEL_SIDE), 0.5)
    rows = indices.clips >= first
    if store is not None:
        labels[rows] = store.read(BatchIndices(indices.clips[rows] - first, indices.frames[rows], indices.sequences))
    return labels


def _view(loaded: Tensors, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """The sampled views of frames (B, 3, size, size), of the insides of boxes and of labels (B, 1, …), as floats."""
    frames, inside, own = loaded["frames"], loaded["inside"][:, None], loaded["own"][:, None]
    if "crops" in loaded:
        frames, inside = (crop(images, loaded["crops"], size).float() for images in (frames, inside))
        return frames, inside, torch.full_like(inside, 0.5)  # labels of a decoder's own boxes do not go with seeds
    frames, inside, own = (resized_crop(images, loaded["rectangles"], size) for images in (frames, inside, own))
    return jitter(frames, loaded["colors"]), inside, own


def _replay_loss(logits: Tensor, old: Tensor, replayed: Tensor) -> Tensor:
    """Mean cross-entropy of the maps of replayed frames with those of the old decoder (B, H, W); 0 without any."""
    each = F.binary_cross_entropy_with_logits(logits[:, 1] - logits[:, 0], old, reduction="none").mean((1, 2))
    return (each * replayed).sum() / replayed.sum().clamp(min=1)


class _Masks:
    """The boxes of corrected frames as images."""

    def __init__(self, corrected: CorrectedFrames, side: int, resize: int) -> None:
        self.resize = resize
        indices = corrected.samples.indices
        places = zip(indices.clips.tolist(), indices.frames.tolist(), strict=True)
        self.row = {place: row for row, place in enumerate(places)}
        self.boxes = [boxes * (resize / side) for boxes in corrected.boxes]
        self.weights = corrected.weights

    def read(self, indices: BatchIndices, chance: Tensor) -> tuple[Tensor, Tensor]:
        """(B, R, R) uint8, 1 inside boxes; and (B,) whether the boxes of a frame are used: as often as it weighs."""
        inside = torch.zeros(len(indices.clips), self.resize, self.resize, dtype=torch.uint8)
        known = torch.zeros(len(indices.clips), dtype=torch.bool)
        for at, place in enumerate(zip(indices.clips.tolist(), indices.frames.tolist(), strict=True)):
            row = self.row.get(place)
            if row is None or float(chance[at]) >= self.weights[row]:
                continue
            known[at] = True
            for x1, y1, x2, y2 in np.round(self.boxes[row]).astype(int).tolist():
                inside[at, max(y1, 0) : max(y2, y1 + 1), max(x1, 0) : max(x2, x1 + 1)] = 1
        return inside, known


class _Planner:
    """Chooses the frames of each step; a function of the seed alone."""

    def __init__(
        self,
        corrected: CorrectedFrames,
        lengths: Sequence[int],
        replayable: Sequence[int],
        share: float,
        settings: LocalizerStage,
        steps: int,
        seed: int,
        *,
        mates: bool,
    ) -> None:
        self.lengths, self.replayable, self.settings, self.count, self.seed = lengths, replayable, settings, steps, seed
        self.mates, self.share = mates, share
        self.length = min(SEQUENCE, settings.frames)
        self.own: defaultdict[int, list[int]] = defaultdict(list)
        indices = corrected.samples.indices
        for clip, frame in zip(indices.clips.tolist(), indices.frames.tolist(), strict=True):
            self.own[clip].append(frame)
        # A clip with many corrections is visited more often, but not as often as it has corrections.
        weights = np.bincount(indices.clips.numpy(), corrected.weights, minlength=len(corrected.samples.clips))
        self.chance = torch.from_numpy(np.sqrt(weights))

    def steps(self) -> list[BatchIndices]:
        """The frames of all steps."""
        rng = generator(self.seed, "learn plan")
        return [self._step(rng) for _ in range(self.count)]

    def _step(self, rng: torch.Generator) -> BatchIndices:
        sampler, n, batch = SAMPLERS[self.settings.sampler], self.length, self.settings.batch
        sequences: list[tuple[int, Tensor]] = []
        replayed = round(self.share * max(batch // n, 1)) if self.replayable else 0
        left = max(batch - replayed * n, 1)
        while left > 0:
            clip = int(torch.multinomial(self.chance, 1, generator=rng))
            sequences.append((clip, self._corrected(clip, rng)))
            left -= len(sequences[-1][1])
        for _ in range(replayed):
            clip = self.replayable[int(torch.randint(len(self.replayable), (), generator=rng))]
            sequences.append((clip, sampler(self.lengths[clip], n, rng, window=self.settings.window)))
        sizes = torch.tensor([len(frames) for _, frames in sequences])
        return BatchIndices(
            torch.tensor([clip for clip, _ in sequences]).repeat_interleave(sizes),
            torch.cat([frames for _, frames in sequences]),
            torch.arange(len(sequences)).repeat_interleave(sizes),
        )

    def _corrected(self, clip: int, rng: torch.Generator) -> Tensor:
        """Corrected frames of a clip and, in the places that are left of a sequence, its clip-mates."""
        n, own = self.length, self.own[clip]
        order = torch.randperm(len(own), generator=rng).tolist()
        chosen = [own[index] for index in order[: max(n - 1, 1) if self.mates else n]]
        if self.mates and n > len(chosen):
            mates = SAMPLERS["interval"](self.lengths[clip], n - len(chosen), rng, window=1.0).tolist()
            chosen += [frame for frame in mates if frame not in chosen]
        return torch.tensor(sorted(chosen))

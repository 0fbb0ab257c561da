"""Fine-tune the decoder on corrected boxes: as seeds, by their projections, with clip-mates and replay.

After one round of training, a step has two kinds of sequences. A corrected sequence holds corrected frames of one clip,
whose seeds are the boxes, and other frames of the clip without seeds: eq. 4 carries the correction to them. Ordinary
sequences of the training clips are replayed: there the decoder is held to the maps of the decoder it started from, so
that it does not forget. After several rounds, a step has corrected frames alone, with dense labels, in views of many
sizes and colors: replay would hold the decoder back (docs/method/corrections.md). Then, in a round of its own, half of
the frames are training frames with labels from the boxes that the taught decoder finds in them.

Tests: tests/training/test_learn_parts.py.
"""

from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.cams.cam_cache import CamStore
from colocam.config import Config, LocalizerStage, Seeds
from colocam.data.augment import crop, jitter, resized_crop, sample_crops, sample_jitter, sample_resized_crops
from colocam.data.batches import SAMPLERS, BatchIndices, read_frames
from colocam.data.frame_cache import CachedClip
from colocam.losses import StepTensors
from colocam.losses.terms import ProjectionLoss
from colocam.models import LocalizerNet, foreground
from colocam.models.classifier import at_side
from colocam.training.learning.frames import CorrectedFrames
from colocam.training.loop import Task, Validation
from colocam.training.own_labels import CORE
from colocam.training.own_labels import SIDE as LABEL_SIDE
from colocam.training.seeds import (
    BACKGROUND,
    FOREGROUND,
    UNKNOWN,
    dilate,
    quantile_from_top,
    sample_pixels,
    seed_noise,
    sure_labels,
)
from colocam.training.stage2 import loss_terms
from colocam.utils.prefetch import Tensors
from colocam.utils.tensors import generator

INSIDE_TOP = 0.5
"""Share of a box's pixels, those with the highest map, that foreground seeds are sampled from."""
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


def learning_task(
    config: Config,
    method: str,
    net: LocalizerNet,
    corrected: CorrectedFrames,
    training: Sequence[CachedClip],
    steps: int,
    *,
    seeds: bool = True,
    projection: bool = True,
    replay: bool = True,
    own_labels: CamStore | None = None,
    complete: bool | None = None,
    core: float = CORE,
) -> Task:
    """The task that fine-tunes ``net.decoder``; one epoch of ``steps`` steps.

    Args:
        config: of the run.
        method: name in ``METHODS``.
        net: the trained network on its device; its decoder as it is now is what replayed frames are held to.
        corrected: frames to learn from.
        training: clips to replay.
        steps: training steps.
        seeds: use corrected boxes as labels of pixels.
        projection: use the projection term.
        replay: with sparse seeds, also use ordinary sequences, and clip-mates of corrected frames.
        own_labels: of all frames of ``training``, after several rounds: they are replayed with these labels.
        complete: sparse seeds, the terms that complete them (eq. 2, 3 and 4) and clip-mates; false: dense labels
            without these terms; None: as the last round of training.
        core: of dense labels, share of the map's maximum in a box from which a pixel is foreground; 0: the whole box.
    """
    settings, device = config.stage2(method), next(net.parameters()).device
    optimization = settings.model_copy(update={"epochs": 1, "lr": RATE * settings.lr, "schedule": "cosine"})
    resize, size, side = config.frames.resize, config.frames.crop, config.frames.map_side
    clips = [*corrected.samples.clips, *training]
    first_replay = len(corrected.samples.clips)
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    before = deepcopy(net.decoder).eval().requires_grad_(requires_grad=False)
    projected = ProjectionLoss()
    # The last of several rounds learns dense labels without the terms that complete seeds, which would undo it here.
    complete = settings.rounds == 1 if complete is None else complete
    replay = replay and complete
    summands = loss_terms(settings.losses, device=device, dense=not complete)
    summands = [term for term in summands if seeds or term.name != "seeds"]
    taught = {clip.clip for clip in corrected.samples.clips}
    replayable = [at for at, clip in enumerate(clips) if at >= first_replay and clip.clip not in taught]
    share = REPLAYED if replay else 0.0
    if own_labels is not None:
        share = OWN
    mates = replay and any(term.name == "coloc" for term in summands)  # which carries corrections to them
    lengths = [len(clip) for clip in clips]
    planned = _plan(corrected, lengths, replayable, share, settings, steps, config.seed, mates=mates)

    def load(indices: BatchIndices, step: int) -> Tensors:
        rng = generator(config.seed, "learn", step)
        rows = _used_rows(corrected, indices, torch.rand(len(indices.clips), generator=rng))
        return {
            "frames": read_frames(clips, indices),
            "sequences": indices.sequences,
            **_sample_views(len(indices.clips), resize, size, rng, plain=complete),
            "inside": _draw_boxes(corrected, rows, resize / side, resize),
            "known": torch.tensor([row is not None for row in rows]),
            "own": _read_own(own_labels, indices, first_replay),
            "replayed": indices.clips >= first_replay,
        }

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:
        frames, boxes, own_maps = _view(loaded, size)
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
            labels = dense_labels(old, inside, core)
        labels = torch.where(known, labels, sure_labels(at_side(own_maps, side)[:, 0]))
        tensors = StepTensors(images, maps, logits, labels, loaded["sequences"], indices.count, epoch)
        losses = {term.name: term.weight * term.module(tensors) for term in summands}
        if projection:
            losses["projection"] = projected(maps, inside & known)
        if replay:
            losses["replay"] = _replay_loss(logits, old, loaded["replayed"])
        return losses

    def validate(epoch: int) -> Validation:
        return Validation({"best": float(epoch)}, {})

    groups = [(list(net.decoder.parameters()), 1.0)]
    phase = method if own_labels is None else f"{method}, own labels"
    return Task(phase, net.decoder, groups, optimization, lambda _: planned, load, terms, validate)


def _sample_views(count: int, resize: int, size: int, rng: torch.Generator, *, plain: bool) -> Tensors:
    """Sample what is seen of each frame. Plain: crops of one size, since the color term compares colors of frames."""
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
    frames, inside, own_maps = loaded["frames"], loaded["inside"][:, None], loaded["own"][:, None]
    if "crops" in loaded:
        frames, inside = (crop(images, loaded["crops"], size).float() for images in (frames, inside))
        return frames, inside, torch.full_like(inside, 0.5)  # labels of a decoder's own boxes do not go with seeds
    frames, inside, own_maps = (
        resized_crop(images, loaded["rectangles"], size) for images in (frames, inside, own_maps)
    )
    return jitter(frames, loaded["colors"]), inside, own_maps


def _replay_loss(logits: Tensor, old: Tensor, replayed: Tensor) -> Tensor:
    """Mean cross-entropy of the maps of replayed frames with those of the old decoder (B, H, W); 0 without any."""
    each = F.binary_cross_entropy_with_logits(logits[:, 1] - logits[:, 0], old, reduction="none").mean((1, 2))
    return (each * replayed).sum() / replayed.sum().clamp(min=1)


def _used_rows(corrected: CorrectedFrames, indices: BatchIndices, chances: Tensor) -> list[int | None]:
    """The row of each frame in ``corrected``; None: not corrected, or not used now: it is as often as it weighs."""
    row_of = {place: row for row, place in enumerate(corrected.places)}
    rows = [row_of.get(place) for place in zip(indices.clips.tolist(), indices.frames.tolist(), strict=True)]
    pairs = zip(rows, chances.tolist(), strict=True)
    return [row if row is not None and chance < corrected.weights[row] else None for row, chance in pairs]


def _draw_boxes(corrected: CorrectedFrames, rows: Sequence[int | None], scale: float, side: int) -> Tensor:
    """(B, side, side) uint8: 1 inside the boxes of some corrected frames, times ``scale``; 0 everywhere for None."""
    inside = torch.zeros(len(rows), side, side, dtype=torch.uint8)
    for image, row in zip(inside, rows, strict=True):
        if row is not None:
            for x1, y1, x2, y2 in np.round(corrected.boxes[row] * scale).astype(int).tolist():
                image[max(y1, 0) : max(y2, y1 + 1), max(x1, 0) : max(x2, x1 + 1)] = 1
    return inside


def _plan(
    corrected: CorrectedFrames,
    lengths: Sequence[int],
    replayable: Sequence[int],
    share: float,
    settings: LocalizerStage,
    steps: int,
    seed: int,
    *,
    mates: bool,
) -> list[BatchIndices]:
    """The frames of all steps, a function of the seed alone: corrected sequences, then ``share`` of replayed ones."""
    rng = generator(seed, "learn plan")
    n = min(SEQUENCE, settings.frames)
    clips = corrected.samples.indices.clips
    sampler = SAMPLERS[settings.sampler]
    replayed = round(share * max(settings.batch // n, 1)) if replayable else 0
    frames_of: defaultdict[int, list[int]] = defaultdict(list)
    for clip, frame in corrected.places:
        frames_of[clip].append(frame)
    # A clip with many corrections is visited more often, but not as often as it has corrections.
    weights = np.bincount(clips.numpy(), corrected.weights, minlength=len(corrected.samples.clips))
    chance = torch.from_numpy(np.sqrt(weights))

    def corrected_sequence(clip: int) -> Tensor:
        """Corrected frames of a clip and, in the places that are left of a sequence, its clip-mates."""
        frames_here = frames_of[clip]
        order = torch.randperm(len(frames_here), generator=rng).tolist()
        chosen = [frames_here[index] for index in order[: max(n - 1, 1) if mates else n]]
        if mates and n > len(chosen):
            others = SAMPLERS["interval"](lengths[clip], n - len(chosen), rng, window=1.0).tolist()
            chosen += [frame for frame in others if frame not in chosen]
        return torch.tensor(sorted(chosen))

    def step() -> BatchIndices:
        sequences: list[tuple[int, Tensor]] = []
        left = max(settings.batch - replayed * n, 1)
        while left > 0:
            clip = int(torch.multinomial(chance, 1, generator=rng))
            sequences.append((clip, corrected_sequence(clip)))
            left -= len(sequences[-1][1])
        for _ in range(replayed):
            clip = replayable[int(torch.randint(len(replayable), (), generator=rng))]
            sequences.append((clip, sampler(lengths[clip], n, rng, window=settings.window)))
        sizes = torch.tensor([len(frames) for _, frames in sequences])
        return BatchIndices(
            torch.tensor([clip for clip, _ in sequences]).repeat_interleave(sizes),
            torch.cat([frames for _, frames in sequences]),
            torch.arange(len(sequences)).repeat_interleave(sizes),
        )

    return [step() for _ in range(steps)]


def box_seeds(
    maps: Tensor, inside: Tensor, settings: Seeds, foreground_noise: Tensor, background_noise: Tensor
) -> Tensor:
    """Sample the labeled pixels of corrected frames.

    Foreground pixels are sampled inside the boxes in proportion to the map, background pixels uniformly outside; no
    seed crosses the side of a box. A frame without a box is background everywhere.

    Args:
        maps: (B, H, W) in 0–1, a guess where the object is inside its box.
        inside: (B, H, W) bool, the boxes.
        settings: numbers of pixels and side of the squares that they are dilated to.
        foreground_noise: (B, H, W) of :func:`colocam.training.seeds.seed_noise`.
        background_noise: (B, H, W) of it.

    Returns:
        (B, H, W) int64: 0 background, 1 foreground, 255 unknown.
    """
    values, boxes = maps.flatten(1), inside.flatten(1)
    bright = boxes & (values >= quantile_from_top(values, boxes, INSIDE_TOP))
    # A map that is zero in the whole box must not make one pixel certain.
    foreground = sample_pixels(values + 0.05, bright, settings.foreground, foreground_noise.flatten(1))
    background = sample_pixels(torch.ones_like(values), ~boxes, settings.background, background_noise.flatten(1))
    wide, empty = (dilate(mask.view_as(maps), settings.dilation) for mask in (foreground, background))
    labels = torch.full_like(maps, UNKNOWN, dtype=torch.int64)
    return labels.masked_fill(wide & inside, FOREGROUND).masked_fill(empty & ~inside, BACKGROUND)


def dense_labels(maps: Tensor, inside: Tensor, core: float = CORE) -> Tensor:
    """Labels of all pixels of corrected frames, as those of a round of training with the boxes of a person.

    Inside the boxes, pixels of at least ``core`` of the map's maximum there are foreground and the others are unknown:
    an object does not fill its box. A frame without a box is background everywhere.

    Args:
        maps: (B, H, W) in 0–1, a guess where the object is inside its box.
        inside: (B, H, W) bool, the boxes.
        core: share of the maximum inside the boxes; 0: the whole box is foreground.

    Returns:
        (B, H, W) int64: 0 background, 1 foreground, 255 unknown.
    """
    highest = torch.where(inside, maps, 0.0).amax((1, 2), keepdim=True)
    labels = torch.where(maps >= core * highest, FOREGROUND, UNKNOWN)
    return torch.where(inside, labels, BACKGROUND)

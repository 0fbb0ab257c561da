"""Teach a second decoder what a prior sees in training frames, so that nobody needs the prior later.

    prior ─► what it sees in some frames of each clip ─► prior decoder, on the same frozen features as the first

It minimizes the cross-entropy of its map s with that of the prior, in random parts of these frames with other colors
(docs/method/prior.md). Onto half of them, the object of another frame is pasted. Tags play no part in it.

Tests: tests/training/test_prior_decoder.py.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.config import LocalizerStage
from colocam.data.augment import jitter, placed, resized_crop, sample_jitter, sample_places, sample_resized_crops
from colocam.data.batches import BatchIndices, Samples, read_frames, spread_samples
from colocam.data.frame_cache import CachedClip
from colocam.maps.prior import open_prior
from colocam.models import Classifier, LocalizerNet
from colocam.models.classifier import at_side
from colocam.models.model_file import Model
from colocam.run import Run
from colocam.training.distributed import first
from colocam.training.loop import Journal, Task, Validation, fit
from colocam.training.own_labels import SIDE, kept_maps
from colocam.training.start import open_start
from colocam.types import Levels, ReadInMap
from colocam.utils.prefetch import Tensors
from colocam.utils.tensors import generator, load_checkpoint

FOLDER = "prior"
"""In the folder of a method."""
PER_CLIP = 16
"""Frames of each clip at most: those of one shot resemble each other."""
STEPS, BATCH, RATE = 800, 16, 0.1
"""Steps in all, at least once through the frames; frames of a step; learning rate at the start."""
AREA, ASPECT, COLORS = (0.25, 1.0), 0.6, 0.3
"""Random parts of a frame: their share of it, the range of the logarithm of their aspect ratio, change of colors."""
PASTED, SMALLEST = 2, 0.25
"""Every second frame of a step gets the object of another one, whose frame is shrunk to this side at least."""
OUTSIDE, INSIDE = 0.3, 0.7
"""Of what the prior sees: below and above, a pixel is pasted not at all or fully."""


class PriorDecoder(NamedTuple):
    """A trained prior decoder.

    Attributes:
        channels: of its blocks, deepest first.
        weights: by name, of :attr:`colocam.models.LocalizerNet.prior`.
    """

    channels: tuple[int, ...]
    weights: Mapping[str, Tensor]


def channels_of(settings: LocalizerStage) -> tuple[int, ...]:
    """Channels of a prior decoder: fewer than those of the decoder, since it draws what any object has."""
    return tuple(max(round(settings.prior_width * width), 1) for width in settings.decoder)


def prior_decoder_of(run: Run, method: str, start: Model | None = None) -> PriorDecoder | None:
    """The prior decoder of a method: its own, or that of the model the run starts from; None: there is none.

    Args:
        run: the run.
        method: name in ``METHODS``.
        start: the model that the run starts from, where it is already open.
    """
    settings, folder = run.config.stage2(method), run.folder / method / FOLDER
    if settings.prior is None:
        start = start or open_start(run.config)
        if start is None or start.net.prior is None or start.card.prior_decoder is None:
            return None
        return PriorDecoder(start.card.prior_decoder, start.net.prior.state_dict())
    saved = load_checkpoint(folder, "best")
    assert saved is not None
    return PriorDecoder(channels_of(settings), saved[0])


def train_prior_decoder(
    run: Run, classifier: Classifier, method: str, clips: Sequence[CachedClip], journal: Journal
) -> None:
    """Train the prior decoder of ``method``, or continue; without ``localizer.prior`` nothing happens.

    Args:
        run: the run.
        classifier: its trained classifier.
        method: name in ``METHODS``.
        clips: training clips.
        journal: gets the numbers of each step.
    """
    settings, folder = run.config.stage2(method), run.folder / method / FOLDER
    if settings.prior is None:
        return
    samples = spread_samples(clips, run.catalogue.tags, PER_CLIP)
    seen = first(partial(_seen, settings.prior, samples, folder, run.device))
    task = prior_task(run, classifier, method, samples, seen)
    fit(task, folder, journal)


def _seen(prior: Path, samples: Samples, folder: Path, device: torch.device) -> Levels:
    """(N, SIDE, SIDE) what the prior sees in frames; the folder keeps it."""
    network = open_prior(prior, device)
    together = 8 * BATCH if network.gpu is not None else BATCH  # on a CPU each takes half a second
    parts = [slice(start, start + together) for start in range(0, len(samples), together)]

    def see(at: int) -> Levels:
        images = read_frames(samples.clips, samples.indices.part(parts[at])).permute(0, 2, 3, 1).numpy()
        maps = [cv2.resize(one, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for one in network.maps(images)]
        return np.stack(maps).astype(np.uint8)

    counts = [len(range(len(samples))[part]) for part in parts]
    return kept_maps(folder, "seen", counts, see, f"what {network.name} sees")


def prior_task(run: Run, classifier: Classifier, method: str, samples: Samples, seen: Levels) -> Task:
    """The task that trains a prior decoder; its checkpoint is ``best``.

    Args:
        run: the run.
        classifier: its trained classifier.
        method: name in ``METHODS``.
        samples: N frames.
        seen: (N, SIDE, SIDE) what the prior sees in them, in 8 bits.
    """
    config, device = run.config, run.device
    settings, size, side = config.stage2(method), config.frames.crop, config.frames.map_side
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net = LocalizerNet(
            classifier, settings.decoder, map_size=config.frames.map_size, prior=channels_of(settings)
        ).to(device)
    decoder = net.prior
    assert decoder is not None
    epochs = max(1, round(STEPS * BATCH / len(samples)))
    optimization = settings.model_copy(
        update={"epochs": epochs, "batch": BATCH, "lr": RATE, "schedule": "cosine", "momentum": 0.9}
    )
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    pairs = zip(samples.indices.clips.tolist(), samples.indices.frames.tolist(), strict=True)
    row_of = {place: row for row, place in enumerate(pairs)}

    def plan(epoch: int) -> list[BatchIndices]:
        order = torch.randperm(len(samples), generator=generator(config.seed, "prior frames", epoch))
        clips, frames = samples.indices.clips[order], samples.indices.frames[order]
        batch = min(BATCH, len(samples))
        starts = range(0, len(samples) - batch + 1, batch)
        return [BatchIndices(clips[at : at + batch], frames[at : at + batch], torch.arange(batch)) for at in starts]

    def load(indices: BatchIndices, step: int) -> Tensors:
        rng, places = generator(config.seed, "augment prior", step), zip(indices.clips, indices.frames, strict=True)
        rows = [row_of[int(clip), int(frame)] for clip, frame in places]
        loaded = {
            "frames": read_frames(samples.clips, indices),
            "seen": torch.from_numpy(seen[rows]),
            "parts": sample_resized_crops(indices.whole, AREA, ASPECT, rng)[indices.rows],
            "colors": sample_jitter(indices.whole, COLORS, rng)[indices.rows],
        }
        here = torch.arange(indices.whole)[indices.rows]
        pasted = here[here % PASTED == 0]
        givers = torch.randint(len(samples), (indices.whole,), generator=rng)[pasted]
        return loaded | {
            "objects": read_frames(samples.clips, samples.indices.part(givers.tolist())),
            "masks": torch.from_numpy(seen[givers.numpy()]),
            "places": sample_places(indices.whole, SMALLEST, rng)[pasted],
            "pasted": pasted - indices.start,
        }

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:  # noqa: ARG001 - the loop's
        frames = resized_crop(loaded["frames"], loaded["parts"], size)
        target = resized_crop(loaded["seen"][:, None], loaded["parts"], side) / 255
        paste_objects(frames, target, loaded)
        frames, target = jitter(frames, loaded["colors"]), target[:, 0]
        with torch.no_grad(), half():
            features = classifier.encoder(frames)
        with half():
            logits = decoder(at_side(frames, side), features).float()
        loss = F.binary_cross_entropy_with_logits(logits[:, 1] - logits[:, 0], target)
        return {"prior": loss * (len(frames) / indices.whole)}

    def validate(epoch: int) -> Validation:
        return Validation({"best": float(epoch)}, {})

    return Task(
        f"{method}, prior", decoder, [(list(decoder.parameters()), 1.0)], optimization, plan, load, terms, validate
    )


def paste_objects(frames: Tensor, target: Tensor, loaded: Tensors) -> None:
    """Paste what the prior sees in other frames, in place.

    Where a is the share of a pixel that is pasted, with O and s the other frame and what the prior sees in it,

        X ← a O + (1 − a) X,    y ← max(s, (1 − a) y).

    Args:
        frames: X (B, 3, H, H).
        target: y (B, 1, M, M), what the prior sees in them.
        loaded: ``objects`` (P, 3, R, R), ``masks`` (P, S, S) in 8 bits, ``places`` (P, 4) of :func:`sample_places`, and
            ``pasted`` (P,), the rows that get one.
    """
    rows, places, side = loaded["pasted"], loaded["places"], target.shape[-1]
    if not len(rows):
        return
    objects = placed(loaded["objects"], places, frames.shape[-1])
    seen = placed(loaded["masks"][:, None], places, side) / 255
    share = ((seen - OUTSIDE) / (INSIDE - OUTSIDE)).clamp(0, 1)
    large = F.interpolate(share, size=frames.shape[-1], mode="bilinear", align_corners=False)
    frames[rows] = large * objects + (1 - large) * frames[rows]
    target[rows] = torch.maximum(seen, (1 - share) * target[rows])


def with_prior(
    classifier: Classifier,
    channels: tuple[int, ...],
    prior: PriorDecoder | None,
    *,
    map_size: int | None,
    crop_head: bool = False,
    class_in_map: ReadInMap = False,
) -> LocalizerNet:
    """A localizer with an untrained decoder, whose maps a trained prior decoder weighs, if there is one."""
    net = LocalizerNet(
        classifier,
        channels,
        map_size=map_size,
        crop_head=crop_head,
        class_in_map=class_in_map,
        prior=prior and prior.channels,
    )
    if prior is not None:
        assert net.prior is not None
        net.prior.load_state_dict(dict(prior.weights))
    return net

"""Stage 2: CAM → seeds → decoder f with all four loss terms (eq. 5). F-CAM, TCAM and CoLo-CAM are this loop."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.cams.cam_cache import CamStore
from colocam.config import Config, Losses, Method
from colocam.data.augment import crop, draw_crops
from colocam.data.batches import BatchIndices, kept_clips, plan_sequences, read_frames
from colocam.data.cache_entry import CachedClip
from colocam.data.samplers import SAMPLERS
from colocam.losses import CoLocLoss, CRFLoss, PartialCrossEntropy, SizeConstraint
from colocam.maps.mapper import decoder_mapper
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.training.loop import Task, Validation
from colocam.training.presence import FramesInUse, all_frames
from colocam.training.seeds import draw_chances, pick_seeds
from colocam.training.validation import Validator
from colocam.utils.cuda_graphs import Recorded
from colocam.utils.prefetch import Tensors
from colocam.utils.randomness import generator


def color_term(settings: Losses) -> CoLocLoss:
    """The term across frames: eq. 4 with the weight of eq. 5."""
    return CoLocLoss(settings.sigma_rgb, weighting=settings.weighting, divisor=settings.divisor)


def localizer_task(
    config: Config,
    method: Method,
    classifier: Classifier,
    clips: Sequence[CachedClip],
    cams: CamStore,
    validator: Validator,
    in_use: FramesInUse | None = None,
) -> Task:
    """What stage 2 teaches: a fresh decoder, the frames of each step (all if None), and the terms of eq. 5."""
    settings, device = config.stage2(method), validator.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net = LocalizerNet(classifier, settings.decoder).to(device)
    resize, size = config.frames.resize, config.frames.crop
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    used = in_use or all_frames(clips)
    kept = kept_clips([clip.clip.tag for clip in clips], settings.leave_out, settings.leave_out_draw)
    weights = settings.losses
    seed_loss, crf_loss = PartialCrossEntropy(), CRFLoss(weights.sigma_rgb, weights.sigma_xy)
    coloc_loss = color_term(weights)
    size_loss = SizeConstraint(weights.barrier, weights.barrier_growth, weights.barrier_max)

    def plan(epoch: int) -> list[BatchIndices]:
        planned = plan_sequences(
            [used.lengths[number] for number in kept.tolist()],
            SAMPLERS[settings.sampler],
            n=settings.frames,
            per_clip=settings.sequences_per_clip,
            batch=settings.batch,
            window=settings.window,
            seed=config.seed,
            epoch=epoch,
        )
        return [used.frames_of(replace(indices, clips=kept[indices.clips])) for indices in planned]

    def load(indices: BatchIndices, step: int) -> Tensors:
        rng = generator(config.seed, "augment localizer", step)
        return used.weights(indices) | {
            "frames": read_frames(clips, indices),
            "cams": cams.read(indices, settings.pool),
            "sequences": indices.sequences,
            "crops": draw_crops(len(indices.clips), config.frames.resize, config.frames.crop, rng),
        }

    def prepare(loaded: Tensors) -> tuple[Tensor, ...]:
        """Frames, labels and features: all that needs no gradient, frame by frame."""
        frames = crop(loaded["frames"], loaded["crops"], size).float()
        full = F.interpolate(loaded["cams"][:, None], size=resize, mode="bilinear", align_corners=False)
        cut = crop(full, loaded["crops"], size)[:, 0]
        labels = pick_seeds(cut, settings.seeds, loaded["foreground"], loaded["background"])
        with half():
            return frames, labels, *classifier.encoder(frames)

    prepared = Recorded(prepare, max(settings.batch // settings.frames, 1) * settings.frames, device)

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:
        rng = generator(config.seed, "seeds", step, device=device)
        chances = draw_chances((len(indices.clips), size, size), rng)
        frames, labels, *features = prepared(loaded | {"foreground": chances[0], "background": chances[1]})
        with half():
            logits = net.decoder(frames, features).float()
        maps = foreground(logits)
        found = {"seeds": seed_loss(logits, labels, loaded.get("weights"))}
        if weights.crf:
            found["crf"] = weights.crf * crf_loss(frames, maps)
        if weights.size:
            found["size"] = weights.size * size_loss(maps, epoch)
        if weights.coloc:
            found["coloc"] = weights.coloc * coloc_loss(frames, maps, loaded["sequences"], indices.count)
        return found

    def validate(epoch: int) -> Validation:
        return validator.localizer(decoder_mapper(net, settings.color_mean, focus=settings.focus), epoch)

    groups = [(list(net.decoder.parameters()), 1.0)]
    return Task(method, net.decoder, groups, settings, plan, load, terms, validate)

"""Stage 2: CAM → seeds → train the decoder f with all loss terms (eq. 5). CoLo-CAM, F-CAM and TCAM are this task.

Tests: tests/training/test_train.py, tests/training/test_share.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from colocam.cams.cam_cache import CamStore
from colocam.config import Config, Losses
from colocam.data.augment import crop, jitter, sample_crops, sample_jitter
from colocam.data.batches import SAMPLERS, BatchIndices, kept_clips, plan_sequences, read_frames
from colocam.data.frame_cache import CachedClip
from colocam.errors import ColocamError
from colocam.losses import LOSSES, StepTensors, Term
from colocam.maps.mapper import Mapper, decoder_mapper
from colocam.models import Classifier, foreground
from colocam.models.classifier import at_side
from colocam.training.distributed import shares, world
from colocam.training.loop import Task, Validation
from colocam.training.prior_decoder import PriorDecoder, with_prior
from colocam.training.seeds import sample_seeds, seed_noise, sure_labels
from colocam.training.start import open_start
from colocam.training.validation import Validator
from colocam.utils.cuda_graphs import Recorded
from colocam.utils.prefetch import Tensors
from colocam.utils.tensors import generator

RESERVED = frozenset({"phase", "event", "epoch", "step", "lr", "loss", "skipped"})
"""Names that a term must not have: the journal uses them."""
COMPLETING = ("crf", "size", "coloc")
"""Terms that complete sparse seeds (eq. 2, 3 and 4); dense labels are learned without them (docs/method/rounds.md)."""


def loss_terms(
    settings: Losses, added: Sequence[Term] = (), *, device: torch.device | None = None, dense: bool = False
) -> list[Term]:
    """The terms of eq. 5, those of ``losses.extra``, then ``added``; terms of weight 0 are left out.

    Args:
        settings: their weights and parameters.
        added: further terms.
        device: where to move their modules; None: nowhere.
        dense: for dense labels, without the terms that complete sparse seeds.
    """
    weights = {"seeds": 1.0, "crf": settings.crf, "size": settings.size, "coloc": settings.coloc, **settings.extra}
    for term in added:
        if term.name in RESERVED | weights.keys() or [other.name for other in added].count(term.name) > 1:
            raise ColocamError(f"terms: the name '{term.name}' is taken: choose another name for the term")
    used = {name: weight for name, weight in weights.items() if weight and not (dense and name in COMPLETING)}
    terms = [Term(name, weight, LOSSES[name].make(settings), LOSSES[name].mean_over) for name, weight in used.items()]
    for term in (*terms, *added):
        if isinstance(term.module, nn.Module):
            term.module.to(device)
    return [*terms, *added]


def localizer_task(
    config: Config,
    method: str,
    classifier: Classifier,
    clips: Sequence[CachedClip],
    cams: CamStore | None,
    validator: Validator,
    added: Sequence[Term] = (),
    *,
    labels: CamStore | None = None,
    phase: str | None = None,
    prior: PriorDecoder | None = None,
) -> Task:
    """The task of stage 2: train the decoder of ``method`` on the frozen ``classifier``; its checkpoint is ``best``.

    Args:
        config: of the run.
        method: name in ``METHODS``.
        classifier: of stage 1.
        clips: training clips.
        cams: of all their frames; None: there are ``labels``.
        validator: measures the decoder after each epoch.
        added: loss terms besides those of the configuration.
        labels: of all frames, as :func:`colocam.training.own_labels.own_labels` gives them: they take the place of the
            seeds, and the terms that complete seeds (eq. 2, 3 and 4) are left out.
        phase: name of the task; None: the method.
        prior: weighs the maps that are measured; None: there is none.
    """
    settings, device = config.stage2(method), validator.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net = with_prior(classifier, settings.decoder, prior, map_size=config.frames.map_size).to(device)
    if (start := open_start(config)) is not None:
        net.decoder.load_state_dict(start.net.decoder.state_dict())
    resize, size, side = config.frames.resize, config.frames.crop, config.frames.map_side
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    kept = kept_clips([clip.clip.tag for clip in clips], settings.leave_out, settings.leave_out_draw)
    labels_given = labels is not None
    maps = cams if labels is None else labels
    assert maps is not None
    summands = loss_terms(settings.losses, added, device=device, dense=labels_given)
    changed = settings.jitter > 0 and labels_given

    def plan(epoch: int) -> list[BatchIndices]:
        planned = plan_sequences(
            [len(clips[index]) for index in kept.tolist()],
            SAMPLERS[settings.sampler],
            n=settings.frames,
            per_clip=settings.sequences_per_clip,
            batch=settings.batch,
            window=settings.window,
            seed=config.seed,
            epoch=epoch,
        )
        return [replace(indices, clips=kept[indices.clips]) for indices in planned]

    def load(indices: BatchIndices, step: int) -> Tensors:
        rng, rows = generator(config.seed, "augment localizer", step), indices.rows
        loaded = {
            "frames": read_frames(clips, indices),
            "cams": maps.read(indices, 0 if labels_given else settings.pool),
            "sequences": indices.sequences,
            "crops": sample_crops(indices.whole, resize, size, rng)[rows],
        }
        return loaded | ({"jitter": sample_jitter(indices.whole, settings.jitter, rng)[rows]} if changed else {})

    def prepare(loaded: Tensors) -> tuple[Tensor, ...]:
        """Frames and seeds at the size of the maps, and encoder features of the cropped frames.

        All of it needs no gradient and is computed for each frame by itself.
        """
        frames = crop(loaded["frames"], loaded["crops"], size).float()
        if changed:
            frames = jitter(frames, loaded["jitter"])
        full = F.interpolate(loaded["cams"][:, None], size=resize, mode="bilinear", align_corners=False)
        cropped = at_side(crop(full, loaded["crops"], size), side)[:, 0]
        if labels_given:
            labels = sure_labels(cropped)
        else:
            labels = sample_seeds(cropped, settings.seeds, loaded["foreground"], loaded["background"])
        with half():
            return at_side(frames, side), labels, *classifier.encoder(frames)

    prepared = Recorded(prepare, -(-max(settings.batch // settings.frames, 1) // world()) * settings.frames, device)

    def terms(indices: BatchIndices, loaded: Tensors, step: int, epoch: int) -> dict[str, Tensor]:
        noise = seed_noise((indices.whole, side, side), generator(config.seed, "seeds", step, device=device))
        foreground_noise, background_noise = (part[indices.rows] for part in noise)
        frames, labels, *features = prepared(loaded | {"foreground": foreground_noise, "background": background_noise})
        with half():
            logits = net.decoder(frames, features).float()
        tensors = StepTensors(frames, foreground(logits), logits, labels, loaded["sequences"], indices.count, epoch)
        parts = zip(summands, shares([partial(term.mean_over, tensors) for term in summands]), strict=True)
        return {term.name: share * term.weight * _scalar(term, tensors) for term, share in parts}

    def mapper() -> Mapper:
        return decoder_mapper(
            net, settings.most_color_mean, focus=settings.focus, chooser=settings.chooser, threshold=settings.threshold
        )

    def validate(epoch: int) -> Validation:
        plain = mapper()._replace(color_mean="off", threshold=settings.threshold_with("off"))
        return validator.localizer(mapper(), epoch, plain if settings.color_mean == "auto" else None)

    groups = [(list(net.decoder.parameters()), 1.0)]
    return Task(phase or method, net.decoder, groups, settings, plan, load, terms, validate, mapper)


def _scalar(term: Term, tensors: StepTensors) -> Tensor:
    value = term.module(tensors)
    if value.dim():
        raise ColocamError(f"the loss term '{term.name}' must return a scalar, got shape {tuple(value.shape)}")
    return value

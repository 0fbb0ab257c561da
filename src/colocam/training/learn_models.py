"""The models that corrections lead to: with other thresholds, another head, or another decoder."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import torch

from colocam.data.cache_entry import CachedClip
from colocam.maps.mapper import decoder_mapper
from colocam.models.model_file import Model
from colocam.run import Run
from colocam.training.journal import Journal
from colocam.training.learn_agreement import learnt_card
from colocam.training.learn_decoder import DecoderLearning, learning_task
from colocam.training.learn_frames import CorrectedFrames, without_held_out
from colocam.training.learn_guard import Candidate
from colocam.training.learn_head import class_head, head_features, refit_head
from colocam.training.loop import fit
from colocam.training.own_labels import own_labels
from colocam.utils.locks import temporary_folder
from colocam.utils.tensors import generator

OWN_FRAMES = 4096
"""Training frames that get labels from a decoder's own boxes: a lesson of 200 steps sees 3,200 of them."""
OWN_OF_A_CLIP = 16
"""Frames of a clip among them: neighbours, which agree on a box."""


def with_card(
    one: Candidate, frames: CorrectedFrames, *, threshold: bool = True, per_class: bool = False, presence: bool = False
) -> Candidate:
    """The candidate with thresholds or presence that agree best with the corrections to learn from."""
    taught = ~frames.held_out
    assert one.seen is not None
    card = learnt_card(
        one.model.card,
        one.seen.part(taught),
        without_held_out(frames),
        threshold=threshold,
        per_class=per_class,
        presence=presence,
    )
    return Candidate(Model(one.model.net, card), one.seen)


def with_head(run: Run, model: Model, frames: CorrectedFrames) -> Candidate:
    """The model with a head that was refitted to corrected classes."""
    net, part = deepcopy(model.net).to(run.device).eval(), frames.part(~frames.held_out & frames.present)
    size, device = run.config.frames.crop, run.device
    features = head_features(net, part.samples, size, device)
    classes = part.samples.classes.to(device)
    tags, wrong = run.catalogue.tags, {clip.clip for clip, _ in frames.part(frames.changed).samples.where()}
    training = [clip for clip in run.clips("train") if clip.clip not in wrong]  # whose tag a person corrected
    weight, bias = refit_head(net, features, classes, training, tags, size, device)
    with torch.no_grad():
        class_head(net).weight.copy_(weight)
        class_head(net).bias.copy_(bias)
    return Candidate(Model(net, model.card))


def with_decoder(
    run: Run, model: Model, frames: CorrectedFrames, how: DecoderLearning, folder: Path, journal: Journal
) -> Model:
    """The model with a decoder that was fine-tuned on corrected frames; ``folder`` gets its checkpoint."""
    net, method = deepcopy(model.net).to(run.device), run.config.methods[0]
    task = learning_task(run.config, method, net, frames, run.clips("train"), how, run.device)
    fit(task, folder / method, journal)
    return Model(net.eval(), model.card)


def with_own_labels(
    run: Run, model: Model, frames: CorrectedFrames, how: DecoderLearning, folder: Path, journal: Journal
) -> Model:
    """The model trained further, on corrected frames and on training frames with boxes that it finds in them."""
    method, card = run.config.methods[0], model.card
    clips = some_frames(run.clips("train"), run.config.seed)
    net = deepcopy(model.net).to(run.device).eval()
    mapper = decoder_mapper(net, card.color_mean, focus=card.focus_power(), chooser=card.chooser)
    tags, size = run.catalogue.tags, run.config.frames.crop
    with temporary_folder(folder) as scratch:
        labels = own_labels(mapper, net.classifier, card.threshold, clips, tags, size, scratch, run.device)
        task = learning_task(run.config, method, net, frames, clips, how, run.device, labels)
        fit(task, scratch, journal)
    return Model(net.eval(), card)


def some_frames(clips: Sequence[CachedClip], seed: int, most: int = OWN_FRAMES) -> list[CachedClip]:
    """Clips in random order, at most :data:`OWN_OF_A_CLIP` frames of each and about ``most`` in all."""
    chosen, left = list[CachedClip](), most
    for at in torch.randperm(len(clips), generator=generator(seed, "own labels")).tolist():
        if left <= 0:
            break
        chosen.append(replace(clips[at], rows=clips[at].rows[:OWN_OF_A_CLIP]))
        left -= len(chosen[-1])
    return chosen


def half_way(old: Model, new: Model) -> Model:
    """The model half way between two decoders: few corrections may lead too far."""
    net, before = deepcopy(new.net), old.net.decoder.state_dict()
    with torch.no_grad():
        for name, value in net.decoder.state_dict().items():
            if value.is_floating_point():
                value.lerp_(before[name].to(value.device), 0.5)
    return Model(net, new.card)

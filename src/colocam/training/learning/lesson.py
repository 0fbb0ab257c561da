"""Learn from corrections: a trained run and what people said about frames → a new run folder.

The parts, in the order of their cost: the threshold, also of each class; presence; the head of the classifier, where
classes were corrected; the decoder. What does not agree better with the videos that are held out is not kept.
"""

import math
import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
import torch.nn.functional as F

from colocam.corrections.correction_table import read_corrections
from colocam.corrections.imported import LeftOut
from colocam.data.cache_entry import CachedClip
from colocam.data.samples import spread_samples
from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, suggest
from colocam.models.model_file import Model, load_model
from colocam.run import Run, open_run
from colocam.training.journal import Journal
from colocam.training.learning.card import Agreement, Observation, agreement, learnt_card, observe
from colocam.training.learning.decoder import DecoderLearning, learning_task
from colocam.training.learning.frames import CorrectedFrames, corrected_frames
from colocam.training.learning.head import REPLAYED, class_head, head_features, refit_head
from colocam.training.learning.report import Learnt, Stage, read_history, stored_corrections, write_run
from colocam.training.loop import fit
from colocam.training.rounds import own_labels
from colocam.utils.interrupt import graceful_stop
from colocam.utils.randomness import generator
from colocam.utils.temporary import temporary_folder

OWN_FRAMES = 4096
"""Training frames that get labels from a decoder's own boxes: a lesson of 200 steps sees 3,200 of them."""
OWN_OF_A_CLIP = 16
"""Frames of a clip among them: neighbours, which agree on a box."""


@dataclass(frozen=True, slots=True)
class Learning:
    """What is learnt from corrections; each part can be switched off.

    Attributes:
        threshold: choose τ by corrected boxes.
        per_class: choose τ for each class, as far as it has boxes.
        presence: calibrate presence by frames with and without the object.
        head: refit the head that names the class, if classes were corrected.
        seeds: fine-tune the decoder with corrected boxes as seeds.
        projection: fine-tune the decoder by the projections of corrected boxes.
        replay: also learn from other frames. After one round: ordinary sequences and clip-mates of corrected frames.
            After several rounds: then train again, with training frames labelled by the boxes found in them.
        steps: training steps of the decoder.
    """

    threshold: bool = True
    per_class: bool = True
    presence: bool = True
    head: bool = True
    seeds: bool = True
    projection: bool = True
    replay: bool = True
    steps: int = 200

    @property
    def decoder(self) -> DecoderLearning | None:
        """What the decoder is fine-tuned with; None: it stays as it is."""
        if not (self.seeds or self.projection) or self.steps < 1:
            return None
        return DecoderLearning(self.steps, seeds=self.seeds, projection=float(self.projection), replay=self.replay)


PARTS = tuple(field.name for field in fields(Learning) if field.name != "steps")
"""Names of the parts that can be left out."""


def learning_without(*names: str, steps: int = 200) -> Learning:
    """All parts but some; names are those of :data:`PARTS`."""
    for name in names:
        if name not in PARTS:
            raise ArgumentError("without", f"must be a part, got {name!r}{suggest(name, PARTS)}")
    return replace(Learning(steps=steps), **dict.fromkeys(names, False))


def learn(
    run: str | Path,
    corrections: Sequence[str | Path],
    out: str | Path,
    how: Learning | None = None,
    *,
    device: str | None = None,
) -> Learnt:
    """Learn from corrections, starting from the model of a run; write a new run folder.

    About a fifth of the corrected videos is held out. Each part is kept only if the model with it agrees with their
    corrections at least as well as without it (the second lesson of a decoder: as before the first); so the new model
    never agrees less than the old one. Corrections that the run has learnt from before are used again.

    >>> learnt = learn("runs/pets", ["corrections.csv"], "runs/pets-2")     # doctest: +SKIP
    >>> for line in learnt.lines(): print(line)                             # doctest: +SKIP

    Args:
        run: run folder with a trained model.
        corrections: files of ``colocam import``, of the page, or written by hand; of a frame in several files the last
            counts.
        out: folder to write, which must not exist.
        how: what to learn; None: everything.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
    """
    how, out, opened = how or Learning(), Path(out), open_run(run, device)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ColocamError(f"{out} exists: choose another folder")
    if not opened.config.methods:
        raise ColocamError(f"{run} has no trained method: train one first")
    files = [*stored_corrections(opened.folder), *map(Path, corrections)]
    if not files:
        raise ColocamError("corrections: give at least one file of corrections")
    left_out = LeftOut()
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with graceful_stop(), temporary_folder(out.parent) as folder:
            frames = corrected_frames(opened, read_corrections(*files), left_out, read_history(opened.folder))
            model, stages = _learn(opened, frames, how, folder)
            learnt = Learnt(out, stages, len(frames), int(frames.held_out.sum()), left_out)
            write_run(opened, model, learnt, frames, files, folder)
            if out.is_dir():
                out.rmdir()
            folder.rename(out)
    except (InterruptedRunError, KeyboardInterrupt) as stop:
        raise InterruptedRunError(f"{str(stop) or 'stopped'}: nothing was written to {out}") from stop
    return learnt


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model and what it finds in the corrected frames."""

    model: Model
    seen: Observation


class Guard:
    """Compares models on the corrections of held-out videos, and keeps the better one."""

    def __init__(self, run: Run, frames: CorrectedFrames) -> None:
        self.run, self.frames, self.stages = run, frames, list[Stage]()
        self.clock = time.perf_counter()

    def look(self, model: Model) -> Candidate:
        """The model with what it finds in the corrected frames."""
        return Candidate(model, observe(model, self.frames, self.run.config.frames, self.run.device))

    def keep(
        self, name: str, old: Candidate, new: Candidate, *, presence: bool = False, labels: bool = False
    ) -> Candidate:
        """The new candidate, unless it agrees less than the old one with the held-out corrections.

        Presence must be measured, unless nothing is held out: without a calibration so far, against one half.
        """
        before, after = self.agreement(old), self.agreement(new)
        worse = after.iou < before.iou
        if presence:
            least = math.log(2) if old.model.card.presence is None else before.presence_loss
            worse = bool(self.frames.held_out.any()) and not after.presence_loss <= least
        if labels:
            worse = worse or self._class_loss(new.model) > self._class_loss(old.model)
        self.note(name, new, kept=not worse)
        return old if worse else new

    def agreement(self, one: Candidate) -> Agreement:
        """How well a candidate agrees with the held-out corrections."""
        held = self.frames.held_out
        return agreement(one.model.card, one.seen.part(held), self.frames.part(held))

    def note(self, name: str, one: Candidate, *, kept: bool) -> None:
        """Add a part of learning to the report."""
        now = time.perf_counter()
        self.stages.append(Stage(name, self.agreement(one), kept, now - self.clock))
        self.clock = now

    def _class_loss(self, model: Model) -> float:
        """Cross-entropy of the classes of held-out frames with an object."""
        part = self.frames.part(self.frames.held_out & self.frames.present)
        if not len(part):
            return 0.0
        size, device = self.run.config.frames.crop, self.run.device
        net = model.net.to(device).eval()
        head, features = class_head(net), head_features(net, part.samples, size, device)
        logits = features @ head.weight.double().T + head.bias.double()
        return float(F.cross_entropy(logits, part.samples.classes.to(device)))


def _learn(run: Run, frames: CorrectedFrames, how: Learning, folder: Path) -> tuple[Model, list[Stage]]:
    """The model that agrees best with the held-out corrections, and what each part brought."""
    guard, taught = Guard(run, frames), ~frames.held_out
    best = guard.look(load_model(run.folder))
    guard.note("before", best, kept=True)
    if how.head and (frames.changed & taught).any():
        best = guard.keep("head", best, guard.look(with_head(run, best.model, frames)), labels=True)
    if how.threshold:
        best = guard.keep("threshold", best, with_card(best, frames))
    if how.threshold and how.per_class:
        best = guard.keep("per_class", best, with_card(best, frames, per_class=True))
    if how.presence:
        best = guard.keep("presence", best, with_card(best, frames, threshold=False, presence=True), presence=True)
    if how.decoder is not None and frames.present[taught].any():
        best = _learn_decoder(run, guard, best, how, how.decoder, folder)
    return best.model, guard.stages


def _learn_decoder(
    run: Run, guard: Guard, before: Candidate, how: Learning, settings: DecoderLearning, folder: Path
) -> Candidate:
    """The candidate with the decoder that corrections lead to, or ``before``, if none agrees as well."""
    journal, taught = Journal(folder / "metrics.jsonl"), guard.frames.part(~guard.frames.held_out)
    # The new maps may have another scale, so decoders are compared with thresholds of their own, too.
    kinds = ([False, True] if how.per_class else [False]) if how.threshold else []

    def best_of(*models: Model) -> Candidate:
        trained = [guard.look(model) for model in models]
        trained += [with_card(one, guard.frames, per_class=kind) for one in trained for kind in kinds]
        return max(trained, key=lambda one: guard.agreement(one).iou)

    new = with_decoder(run, before.model, taught, settings, folder, journal)
    best = guard.keep("decoder", before, best_of(new, half_way(before.model, new)))
    if how.replay and run.config.stage2(run.config.methods[0]).rounds > 1:
        # Few held-out boxes cannot tell good decoders apart, so this one only must not be worse than before the lesson.
        again = best_of(with_own_labels(run, best.model, taught, settings, folder, journal))
        best = again if guard.keep("own_labels", before, again) is again else best
    return best


def with_card(
    one: Candidate, frames: CorrectedFrames, *, threshold: bool = True, per_class: bool = False, presence: bool = False
) -> Candidate:
    """The candidate with thresholds or presence that agree best with the corrections to learn from."""
    taught, card = ~frames.held_out, one.model.card
    seen, part = one.seen.part(taught), frames.part(taught)
    new = learnt_card(card, seen, part, threshold=threshold, per_class=per_class, presence=presence)
    return Candidate(Model(one.model.net, new), one.seen)


def with_head(run: Run, model: Model, frames: CorrectedFrames) -> Model:
    """The model with a head that was refitted to corrected classes."""
    net, part = deepcopy(model.net).to(run.device).eval(), frames.part(~frames.held_out & frames.present)
    wrong = {clip.clip for clip, _ in frames.part(frames.changed).samples.where()}
    training = [clip for clip in run.clips("train") if clip.clip not in wrong]  # whose tag a person corrected
    replayed = spread_samples(training, run.catalogue.tags, REPLAYED)
    refit_head(net, part.samples, replayed, run.config.frames.crop, run.device)
    return Model(net, model.card)


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
    method, clips = run.config.methods[0], some_frames(run.clips("train"), run.config.seed)
    net = deepcopy(model.net).to(run.device).eval()
    with temporary_folder(folder) as scratch:
        labels = own_labels(Model(net, model.card), clips, scratch, run.device)
        task = learning_task(run.config, method, net, frames, clips, how, run.device, labels)
        fit(task, scratch, journal)
    return Model(net.eval(), model.card)


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

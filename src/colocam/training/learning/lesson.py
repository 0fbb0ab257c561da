"""Learn from corrections: a trained run and what people said about frames → a new run folder.

The parts, in the order of their cost: the threshold; presence; the head of the classifier, where
classes were corrected, with one more output for a class that the model does not know; the decoder. What does not agree
better with the videos that are held out is not kept.

Tests: tests/training/test_learn.py, tests/training/test_learn_ready.py.
"""

import math
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from colocam.data.batches import Samples, spread_samples
from colocam.data.frame_cache import CachedClip
from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, suggest
from colocam.labels.corrections import Correction, read_corrections
from colocam.labels.labeled_videos import LeftOut
from colocam.models.model_file import Model, load_model
from colocam.run import Run, open_run
from colocam.training.learning.card import Agreement, Observation, agreement, box_overlaps, learned_card, observe
from colocam.training.learning.decoder import learning_task
from colocam.training.learning.frames import CorrectedFrames
from colocam.training.learning.heads import (
    REPLAYED,
    class_head,
    fit_heads,
    frames_and_classes,
    grown_model,
    head_features,
)
from colocam.training.learning.proof import Proof, prove
from colocam.training.learning.report import Learned, Stage, read_history, stored_corrections, write_run
from colocam.training.loop import Journal, fit
from colocam.training.own_labels import own_labels
from colocam.types import Float64Array
from colocam.utils.device import keep_activations
from colocam.utils.locks import temporary_folder
from colocam.utils.progress import graceful_stop
from colocam.utils.ready_folders import ready_run
from colocam.utils.tensors import generator

OWN_FRAMES = 4096
"""Training frames that get labels from a decoder's own boxes: a lesson of 200 steps sees 3,200 of them."""
OWN_OF_A_CLIP = 16
"""Frames of a clip among them: neighbors, which agree on a box."""


@dataclass(frozen=True, slots=True)
class Learning:
    """What is learned from corrections; each part can be switched off.

    Attributes:
        threshold: choose τ by corrected boxes.
        presence: calibrate presence by frames with and without the object.
        head: refit the head that names the class, if classes were corrected, and add classes that it does not know.
        seeds: fine-tune the decoder with corrected boxes as seeds.
        projection: fine-tune the decoder by the projections of corrected boxes.
        replay: also learn from other frames. After one round: ordinary sequences and clip-mates of corrected frames.
            After several rounds: then train again, with training frames labeled by the boxes found in them.
        steps: training steps of the decoder.
    """

    threshold: bool = True
    presence: bool = True
    head: bool = True
    seeds: bool = True
    projection: bool = True
    replay: bool = True
    steps: int = 200


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
) -> Learned:
    """Learn from corrections, starting from the model of a run; write a new run folder.

    About a fifth of the corrected videos is held out, of few videos up to a half. Each part is kept only if the model
    with it agrees with their corrections at least as well as without it (the second lesson of a decoder: as before the
    first); so the new model never agrees less than the old one. Corrections that the run has learned from before are
    used again.

    >>> learned = learn("runs/pets", ["corrections.csv"], "runs/pets-2")     # doctest: +SKIP
    >>> for line in learned.lines(): print(line)                             # doctest: +SKIP

    Args:
        run: run folder with a trained model, or the name of a ready model.
        corrections: files of ``colocam import``, of the page, or written by hand; of a frame in several files the last
            counts.
        out: folder to write, which must not exist.
        how: what to learn; None: everything.
        device: ``cpu`` or ``cuda``; None: the GPU, if there is one.
    """
    folder_of_run = Path(run) if Path(run).exists() else ready_run(str(run)) or Path(run)
    how = how or Learning()
    out = Path(out)
    opened = open_run(folder_of_run, device)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ColocamError(f"{out} exists: choose another folder")
    if not opened.config.methods:
        raise ColocamError(f"{run} has no trained method: train one first")
    files = [*stored_corrections(opened.folder), *map(Path, corrections)]
    if not files:
        raise ColocamError("corrections: give at least one file of corrections")
    if opened.device.type == "cpu":
        keep_activations()
    left_out = LeftOut()
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        with graceful_stop(), temporary_folder(out.parent) as folder:
            if not opened.catalogue.clips:  # a ready model: its folder belongs to the installation
                opened = replace(opened, frames=folder / "frames")
            lesson, start = _with_classes(opened, read_corrections(*files), left_out, folder, how)
            frames, best = lesson.frames, _learn(lesson, start, how)
            new = lesson.run.catalogue.tags[len(opened.catalogue.tags) :]
            changed = any(stage.kept for stage in lesson.stages[1:])
            proof = lesson.proof(best, changed=changed)
            held_out = int((frames.held_out & frames.key).sum())
            learned = Learned(out, lesson.stages, int(frames.key.sum()), held_out, left_out, new, proof)
            write_run(lesson.run, best.model, learned, frames, files, folder)
            if out.is_dir():
                out.rmdir()
            folder.rename(out)
    except (InterruptedRunError, KeyboardInterrupt) as stop:
        raise InterruptedRunError(f"{str(stop) or 'stopped'}: nothing was written to {out}") from stop
    return learned


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model and what it finds in the corrected frames."""

    model: Model
    seen: Observation


class Lesson:
    """The corrected frames and what each part of learning brought so far; compares models on held-out videos.

    Args:
        run: has the model to start from.
        frames: all corrected frames.
        folder: gets the checkpoint of the decoder and ``metrics.jsonl``.
    """

    def __init__(self, run: Run, frames: CorrectedFrames, folder: Path) -> None:
        self.run = run
        self.frames = frames
        self.taught = frames.part(~frames.held_out)
        self.folder = folder
        self.first: Candidate | None = None
        self.journal, self.stages = Journal(folder / "metrics.jsonl"), list[Stage]()
        self.clock = time.perf_counter()

    def look(self, model: Model) -> Candidate:
        """The model with what it finds in the corrected frames."""
        return Candidate(model, observe(model, self.frames, self.run.config.frames, self.run.device))

    def keep(
        self,
        name: str,
        old: Candidate,
        new: Candidate,
        *,
        loss: Callable[[Model], float] | None = None,
        presence: bool = False,
    ) -> Candidate:
        """The new candidate, unless it agrees less than the old one with the held-out corrections.

        Args:
            name: of the part of learning.
            old: without it.
            new: with it.
            loss: it must not be higher, either.
            presence: compare presence alone, which must be measured, unless nothing is held out: without a calibration
                so far, against one half.
        """
        before, after = self.agreement(old), self.agreement(new)
        worse = after.iou < before.iou or (loss is not None and loss(new.model) > loss(old.model))
        if presence:
            least = math.log(2) if old.model.card.presence is None else before.presence_loss
            worse = bool(self.frames.held_out.any()) and not after.presence_loss <= least
        self.note(name, new, kept=not worse)
        return old if worse else new

    def agreement(self, candidate: Candidate) -> Agreement:
        """How well a candidate agrees with the held-out corrections; interpolated frames do not count."""
        held = self.frames.held_out & self.frames.key
        return agreement(candidate.model.card, candidate.seen.part(held), self.frames.part(held))

    def proof(self, new: Candidate, *, changed: bool) -> Proof:
        """Compare the model before the lesson with a new one, by held-out video."""
        held = self.frames.held_out & self.frames.key & self.frames.present
        part, clips = self.frames.part(held), self.frames.samples.clips

        def overlaps(candidate: Candidate) -> Float64Array:
            return box_overlaps(candidate.model.card, candidate.seen.levels[held], part) if held.any() else np.zeros(0)

        names = sorted({clip.clip.video for clip in clips})
        video = np.array([names.index(clips[clip].clip.video) for clip, _ in part.places], np.int64)
        return prove(overlaps(self.first or new), overlaps(new), video, len(names), changed=changed)

    def note(self, name: str, candidate: Candidate, *, kept: bool) -> None:
        """Add a part of learning to the report."""
        now = time.perf_counter()
        self.stages.append(Stage(name, self.agreement(candidate), kept, now - self.clock))
        self.clock = now

    def class_loss(self, model: Model) -> float:
        """Cross-entropy of the classes of held-out frames with an object."""
        logits, classes = self._class_logits(model)
        return float(F.cross_entropy(logits, classes)) if len(classes) else 0.0

    def wrong_classes(self, known: int, model: Model) -> int:
        """Held-out frames with an object of the first ``known`` classes for which the head names another class."""
        logits, classes = self._class_logits(model)
        return int(((logits.argmax(1) != classes) & (classes < known)).sum())

    def _class_logits(self, model: Model) -> tuple[Tensor, Tensor]:
        """(n, K) of held-out frames with an object, and their classes (n,)."""
        part = self.frames.part(self.frames.held_out & self.frames.present)
        size, device = self.run.config.frames.crop, self.run.device
        net = model.net.to(device).eval()
        head = class_head(net)
        features = head_features(net, part.samples, size, device)
        return features.to(device) @ head.weight.double().T + head.bias.double(), part.samples.classes.to(device)


def _with_classes(
    run: Run, corrections: Sequence[Correction], left_out: LeftOut, folder: Path, how: Learning
) -> tuple[Lesson, Candidate]:
    """The lesson and the model to start it from, with an output for each new class that can be learned."""
    model = load_model(run.folder)
    history = read_history(run.folder)
    refused = LeftOut()
    grown, frames = frames_and_classes(run, corrections, refused, history, new=how.head)
    lesson, known = Lesson(grown, frames, folder), len(run.catalogue.tags)
    best = lesson.first = lesson.look(grown_model(model, grown.catalogue.tags))
    lesson.note("before", best, kept=True)
    if len(grown.catalogue.tags) > known:
        new = lesson.look(with_head(lesson, best.model, first_new=known))
        if lesson.keep("classes", best, new, loss=partial(lesson.wrong_classes, known)) is best:
            names = ", ".join(grown.catalogue.tags[known:])
            left_out[f"new class {names}: held-out frames of other classes would get a wrong class"] += 1
            return _with_classes(run, corrections, left_out, folder, replace(how, head=False))
        best = new
    left_out.update(refused)
    return lesson, best


def training_clips(run: Run) -> list[CachedClip]:
    """The clips that a run was trained on; none for a ready model, which comes without them."""
    return run.clips("train") if run.catalogue.of("train") else []


def _replayed(lesson: Lesson) -> Samples:
    """Frames of training clips whose tag no person corrected."""
    wrong = {clip.clip for clip, _ in lesson.frames.part(lesson.frames.changed).samples.where()}
    training = [clip for clip in training_clips(lesson.run) if clip.clip not in wrong]
    return spread_samples(training, lesson.run.catalogue.tags, REPLAYED)


def _learn(lesson: Lesson, best: Candidate, how: Learning) -> Candidate:
    """The candidate that agrees best with the held-out corrections; ``best``: the one to start from."""
    if how.head and lesson.taught.changed.any():
        best = lesson.keep("head", best, lesson.look(with_head(lesson, best.model)), loss=lesson.class_loss)
    if how.threshold:
        best = lesson.keep("threshold", best, with_card(lesson, best))
    if how.presence:
        best = lesson.keep("presence", best, with_card(lesson, best, threshold=False, presence=True), presence=True)
    if (how.seeds or how.projection) and how.steps > 0 and lesson.taught.present.any():
        best = _learn_decoder(lesson, best, how)
    return best


def _learn_decoder(lesson: Lesson, before: Candidate, how: Learning) -> Candidate:
    """The candidate with the decoder that corrections lead to, or ``before``, if none agrees as well."""

    def taught(model: Model, *, own: bool = False) -> Candidate:
        """The candidate with a new decoder; its maps may have another scale, so it may have another threshold, too."""
        new = lesson.look(with_decoder(lesson, model, how, own=own))
        other = with_card(lesson, new) if how.threshold else new
        return max(new, other, key=lambda one: lesson.agreement(one).iou)

    best = lesson.keep("decoder", before, taught(before.model))
    config = lesson.run.config
    again_by_own = how.replay and lesson.run.catalogue.of("train")
    if again_by_own and config.stage2(config.methods[0]).rounds > 1:
        # Few held-out boxes cannot tell good decoders apart, so this one only must not be worse than before the lesson.
        again = taught(best.model, own=True)
        best = again if lesson.keep("own_labels", before, again) is again else best
    return best


def with_card(lesson: Lesson, candidate: Candidate, *, threshold: bool = True, presence: bool = False) -> Candidate:
    """The candidate with a threshold or presence that agrees best with the corrections to learn from."""
    seen, card = candidate.seen.part(~lesson.frames.held_out), candidate.model.card
    new = learned_card(card, seen, lesson.taught, threshold=threshold, presence=presence)
    return Candidate(Model(candidate.model.net, new), candidate.seen)


def with_head(lesson: Lesson, model: Model, first_new: int = 0) -> Model:
    """The model with a head that was refitted to corrected classes, or heads that know the classes from an index on."""
    run, taught = lesson.run, lesson.taught
    net = deepcopy(model.net).to(run.device).eval()
    corrected = taught.part(taught.present).samples
    fit_heads(net, corrected, _replayed(lesson), run.config.frames.crop, run.device, first_new=first_new)
    return Model(net, model.card)


def with_decoder(lesson: Lesson, model: Model, how: Learning, *, own: bool = False) -> Model:
    """The model with a decoder that was fine-tuned on corrected frames; the lesson's folder gets its checkpoint.

    With ``own``, it also learns from training frames with boxes that it finds in them, and leaves no checkpoint.
    """
    run = lesson.run
    net = deepcopy(model.net).to(lesson.run.device)
    method = lesson.run.config.methods[0]
    clips, labels = training_clips(run), None
    with temporary_folder(lesson.folder) as scratch:
        if own:
            clips = some_frames(clips, run.config.seed)
            labels = own_labels(Model(net, model.card), clips, scratch, run.device)
        parts = {"seeds": how.seeds, "projection": how.projection, "replay": how.replay}
        task = learning_task(run.config, method, net, lesson.taught, clips, how.steps, own_labels=labels, **parts)
        fit(task, scratch if own else lesson.folder / method, lesson.journal)
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

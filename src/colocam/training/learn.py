"""Learn from corrections: a trained run and what people said about frames → a new run folder.

The parts, in the order of their cost: the threshold, also of each class; presence; the head of the classifier, where
classes were corrected; the decoder. What does not agree better with the videos that are held out is not kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from colocam.errors import ArgumentError, ColocamError, InterruptedRunError, suggest
from colocam.labels.corrections import read_corrections
from colocam.labels.imported import LeftOut
from colocam.models.model_file import Model, load_model
from colocam.run import Run, open_run
from colocam.training.journal import Journal
from colocam.training.learn_decoder import DecoderLearning
from colocam.training.learn_frames import CorrectedFrames, corrected_frames, without_held_out
from colocam.training.learn_guard import Candidate, Guard
from colocam.training.learn_models import half_way, with_card, with_decoder, with_head, with_own_labels
from colocam.training.learn_report import Learnt, Stage, read_history, stored_corrections, write_run
from colocam.utils.interrupt import graceful_stop
from colocam.utils.temporary import temporary_folder


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
    >>> print(learnt.summary())                                             # doctest: +SKIP

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


def _learn(run: Run, frames: CorrectedFrames, how: Learning, folder: Path) -> tuple[Model, list[Stage]]:
    """The model that agrees best with the held-out corrections, and what each part brought."""
    guard = Guard(run, frames)
    best = guard.start(load_model(run.folder))
    taught = ~frames.held_out
    if how.head and (frames.changed & taught).any():
        best = guard.keep("head", best, with_head(run, best.model, frames), labels=True)
    if how.threshold:
        choices = [("threshold", False)] + ([("per_class", True)] if how.per_class else [])
        for name, each in choices:
            best = guard.keep(name, best, with_card(best, frames, per_class=each))
    if how.presence:
        best = guard.keep("presence", best, with_card(best, frames, threshold=False, presence=True), presence=True)
    if how.decoder is not None and frames.present[taught].any():
        best = _learn_decoder(run, guard, best, how, folder)
    return best.model, guard.stages


def _learn_decoder(run: Run, guard: Guard, before: Candidate, how: Learning, folder: Path) -> Candidate:
    """The candidate with the decoder that corrections lead to, or ``before``, if none agrees as well."""
    frames, journal, settings = guard.frames, Journal(folder / "metrics.jsonl"), how.decoder
    assert settings is not None
    taught = without_held_out(frames)
    # The new maps may have another scale, so decoders are compared with thresholds of their own, too.
    kinds = ([False, True] if how.per_class else [False]) if how.threshold else []

    def best_of(models: Sequence[Model]) -> Candidate:
        trained = [guard.observed(Candidate(model)) for model in models]
        return guard.best([*trained, *(with_card(one, frames, per_class=kind) for one in trained for kind in kinds)])

    new = with_decoder(run, before.model, taught, settings, folder, journal)
    best = guard.keep("decoder", before, best_of([new, half_way(before.model, new)]))
    if how.replay and run.config.stage2(run.config.methods[0]).rounds > 1:
        # Few held-out boxes cannot tell good decoders apart, so this one only must not be worse than before the lesson.
        again = best_of([with_own_labels(run, best.model, taught, settings, folder, journal)])
        best = again if guard.keep("own_labels", before, again) is again else best
    return best

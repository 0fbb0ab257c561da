"""Train the decoder of a method: once on seeds, then again on labels from its own boxes as often as it is asked for."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from colocam.cams.cam_cache import CamStore
from colocam.data.cache_entry import CachedClip
from colocam.losses import Term
from colocam.models import LocalizerNet
from colocam.run import Run
from colocam.training.journal import Journal
from colocam.training.loop import fit
from colocam.training.own_labels import own_labels
from colocam.training.processes import first
from colocam.training.stage2 import localizer_task, method_mapper
from colocam.training.teacher import teacher_labels
from colocam.training.validation import Validator
from colocam.utils.tensors import explain_damage, load_checkpoint


def train_method(
    run: Run,
    method: str,
    clips: Sequence[CachedClip],
    cams: CamStore,
    validator: Validator,
    journal: Journal,
    terms: Sequence[Term] = (),
) -> None:
    """Train all rounds of ``method``, or continue them.

    The checkpoint ``best`` of its folder is that of the last round; the others have folders ``round-1``, … in it. A
    teacher takes the place of the first round.

    Args:
        run: with a trained classifier.
        method: name in ``METHODS``.
        clips: training clips.
        cams: of all their frames.
        validator: measures the decoder after each epoch.
        journal: gets the numbers of each step.
        terms: loss terms besides those of the configuration.
    """
    settings, labels = run.config.stage2(method), None
    rounds, begin = settings.rounds, 1
    if (teacher := settings.teacher) is not None:
        labels, begin = first(partial(teacher_labels, run, teacher, clips, run.folder / method / "teacher")), 2
    for index in range(begin, rounds + 1):
        last = index == rounds
        folder = run.folder / method if last else run.folder / method / f"round-{index}"
        phase = method if last else f"{method}, round {index}"
        task = localizer_task(
            run.config, method, run.classifier(), clips, cams, validator, terms, labels=labels, phase=phase
        )
        fit(task, folder, journal)
        if not last:
            labels = first(partial(_labels, run, method, clips, folder))


def best_net(run: Run, method: str, folder: Path, *, crop_head: bool = False) -> tuple[LocalizerNet, float]:
    """The classifier with the best decoder of a finished round, and its threshold; a crop head is not yet fitted."""
    saved = load_checkpoint(folder, "best")
    assert saved is not None
    decoder, state = saved
    channels, map_size = run.config.stage2(method).decoder, run.config.frames.map_size
    net = LocalizerNet(run.classifier(), channels, map_size=map_size, crop_head=crop_head)
    with explain_damage(folder, "best"):
        net.decoder.load_state_dict(decoder)
        threshold = state["threshold"]
    return net, threshold


def _labels(run: Run, method: str, clips: Sequence[CachedClip], folder: Path) -> CamStore:
    """Labels from the best decoder of a finished round, with its threshold."""
    net, threshold = best_net(run, method, folder)
    mapper, size = method_mapper(net.to(run.device).eval(), run.config.stage2(method)), run.config.frames.crop
    return own_labels(mapper, net.classifier, threshold, clips, run.catalogue.tags, size, folder, run.device)

"""Train the decoder of a method: once on seeds, then again on labels from its own boxes as often as it is asked for."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from colocam.cams.cam_cache import CamStore
from colocam.config import read_config
from colocam.data.cache_entry import CachedClip
from colocam.data.frame_cache import cache_frames
from colocam.errors import ColocamError
from colocam.losses import Term
from colocam.maps.mapper import decoder_mapper
from colocam.models import LocalizerNet
from colocam.models.model_file import load_model
from colocam.run import Run
from colocam.training.journal import Journal
from colocam.training.loop import fit
from colocam.training.own_labels import own_labels
from colocam.training.processes import first
from colocam.training.stage2 import localizer_task, method_mapper
from colocam.training.validation import Validator
from colocam.utils.checkpoint import load_checkpoint


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

    The checkpoint ``best`` of its folder is that of the last round; the others have folders ``round-1``, … in it.

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
    rounds = settings.rounds
    if settings.teacher is not None:
        labels = first(partial(_teacher_labels, run, method, clips, settings.teacher))
    for index in range(1 if labels is None else 2, rounds + 1):
        last = index == rounds
        folder = run.folder / method if last else run.folder / method / f"round-{index}"
        phase = method if last else f"{method}, round {index}"
        task = localizer_task(
            run.config, method, run.classifier(), clips, cams, validator, terms, labels=labels, phase=phase
        )
        fit(task, folder, journal)
        if not last:
            labels = first(partial(_labels, run, method, clips, folder))


def best_net(run: Run, method: str, folder: Path) -> tuple[LocalizerNet, float]:
    """The classifier with the best decoder of a finished round, and its threshold."""
    saved = load_checkpoint(folder, "best")
    assert saved is not None
    decoder, state = saved
    own, map_size = any(name.startswith("own.") for name in decoder), run.config.frames.map_size
    net = LocalizerNet(run.classifier(), run.config.stage2(method).decoder, map_size=map_size, own_encoder=own)
    net.decoder.load_state_dict(decoder)
    return net, state["threshold"]


def _labels(run: Run, method: str, clips: Sequence[CachedClip], folder: Path) -> CamStore:
    """Labels from the best decoder of a finished round, with its threshold."""
    net, threshold = best_net(run, method, folder)
    mapper, size = method_mapper(net.to(run.device).eval(), run.config.stage2(method)), run.config.frames.crop
    targets = run.config.stage2(method).targets
    return own_labels(mapper, net.classifier, threshold, clips, run.catalogue.tags, size, folder, run.device, targets)


def _teacher_labels(run: Run, method: str, clips: Sequence[CachedClip], teacher: Path) -> CamStore:
    """Labels from the model of another run, which reads frames at its own size."""
    model, sizes = load_model(teacher), read_config(teacher / "config.yaml").frames
    net, card = model.net.to(run.device).eval(), model.card
    if card.tags != run.catalogue.tags:
        raise ColocamError(
            f"localizer.teacher {teacher} knows the tags {', '.join(card.tags)}, "
            f"the videos have {', '.join(run.catalogue.tags)}: choose a teacher with the same tags"
        )
    mapper = decoder_mapper(net, card.color_mean, focus=card.focus, chooser=card.chooser, threshold=card.threshold)
    clips = cache_frames(
        [clip.clip for clip in clips], run.frames, size=sizes.resize, max_frames=run.config.frames.per_clip
    )
    folder = run.folder / method / "teacher"
    folder.mkdir(parents=True, exist_ok=True)
    targets = run.config.stage2(method).targets
    return own_labels(
        mapper, net.classifier, card.threshold, clips, card.tags, card.size, folder, run.device, targets
    )

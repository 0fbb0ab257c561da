"""Train the decoder of a method: once on seeds, then again on labels from its own boxes as often as it is asked for.

The labels of the first round may come from another run, which teaches a smaller network (docs/method/teacher.md), or
from the model that training starts from, whose decoder then learns from its own boxes (docs/method/start.md).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from colocam.cams.cam_cache import CamStore
from colocam.config import read_config
from colocam.config.card import Card, LearnedPrior, read_card
from colocam.data.frame_cache import CachedClip, cache_frames
from colocam.errors import ColocamError
from colocam.losses import Term
from colocam.models import Classifier
from colocam.models.model_file import Model, load_model
from colocam.run import Run
from colocam.temporal.presence import Calibration
from colocam.training.distributed import first
from colocam.training.loop import AfterEpoch, Journal, fit
from colocam.training.own_labels import own_labels
from colocam.training.prior_decoder import prior_decoder_of, with_prior
from colocam.training.stage2 import localizer_task
from colocam.training.start import start_folder
from colocam.training.validation import Validator
from colocam.types import ReadInMap
from colocam.utils.digests import file_digest
from colocam.utils.files import explain_os_errors, parse_json, write_json
from colocam.utils.progress import say
from colocam.utils.tensors import explain_damage, load_checkpoint

OWN = "own"
"""In the folder of a method: labels from the boxes of the decoder that it starts from."""
PRIOR = "prior.json"
"""In the folder of a method: name and digest of the prior that it learns from; no file where there is none."""


def train_method(
    run: Run,
    classifier: Classifier,
    method: str,
    clips: Sequence[CachedClip],
    cams: CamStore | None,
    validator: Validator,
    journal: Journal,
    terms: Sequence[Term] = (),
    after_epoch: AfterEpoch | None = None,
    start: Model | None = None,
) -> None:
    """Train all rounds of ``method``, or continue them.

    The checkpoint ``best`` of its folder is that of the last round; the others have folders ``round-1``, … in it. A
    teacher takes the place of the first round, and ``start`` of all but the last.

    Args:
        run: the run.
        classifier: its trained classifier.
        method: name in ``METHODS``.
        clips: training clips.
        cams: of all their frames; None: the labels come from ``start``.
        validator: measures the decoder after each epoch.
        journal: gets the numbers of each step.
        terms: loss terms besides those of the configuration.
        after_epoch: see :func:`colocam.training.train`.
        start: the model that training starts from, if its own boxes are the labels.
    """
    settings = run.config.stage2(method)
    labels, prior = None, prior_decoder_of(run, method)
    begin = 1
    if start is not None:
        labels = first(partial(_labels_of_start, run, method, start, clips))
        begin = settings.rounds
    elif (teacher := settings.teacher) is not None:
        labels = first(partial(_teacher_labels, run, method, teacher, clips))
        begin = 2
    for index in range(begin, settings.rounds + 1):
        last = index == settings.rounds
        folder = run.folder / method if last else run.folder / method / f"round-{index}"
        phase = method if last else f"{method}, round {index}"
        task = localizer_task(
            run.config, method, classifier, clips, cams, validator, terms, labels=labels, phase=phase, prior=prior
        )
        fit(task, folder, journal, after_epoch)
        if not last:
            labels = first(partial(_labels_of_round, run, classifier, method, clips, folder))


def best_model(
    run: Run,
    classifier: Classifier,
    method: str,
    folder: Path,
    *,
    threshold_from: str = "tags-only",
    presence: Calibration | None = None,
    crop_head: bool = False,
    class_in_map: ReadInMap = False,
) -> Model:
    """The classifier with the best decoder of a finished round, and its threshold; a crop head is not yet fitted."""
    saved = load_checkpoint(folder, "best")
    settings = run.config.stage2(method)
    frames = run.config.frames
    assert saved is not None
    decoder, state = saved
    prior = prior_decoder_of(run, method)
    net = with_prior(
        classifier,
        settings.decoder,
        prior,
        map_size=frames.map_size,
        crop_head=crop_head,
        class_in_map=class_in_map,
    )
    with explain_damage(folder, "best"):
        net.decoder.load_state_dict(decoder)
        threshold = state["threshold"]
        color_mean = state.get("color_mean", settings.most_color_mean)
    card = Card(
        method=method,
        tags=run.catalogue.tags,
        size=frames.crop,
        threshold=threshold,
        threshold_from=threshold_from,
        backbone=classifier.encoder.backbone,
        decoder=settings.decoder,
        presence=presence,
        color_mean=color_mean,
        color_growth=state.get("color_growth"),
        focus=state.get("focus", settings.focus),  # a decoder that stays has those that it was trained with
        chooser=state.get("chooser", settings.chooser),
        class_size=run.config.classifier.size,
        map_size=frames.map_size,
        normalize=classifier.normalize,
        crop_head=crop_head,
        class_in_map=class_in_map,
        looks=settings.looks,
        prior=read_prior(run, method),
        prior_decoder=prior and prior.channels,
    )
    return Model(net, card)


def keep_prior(run: Run, method: str) -> None:
    """Remember which prior a method learns from; refuse another one.

    A teacher, and a model that the run starts from, may have learned from one, too.
    """
    settings, path = run.config.stage2(method), run.folder / method / PRIOR
    prior: LearnedPrior | None
    if settings.prior is not None:
        prior = LearnedPrior(name=settings.prior.stem, digest=file_digest(settings.prior))
    elif settings.teacher is not None:
        prior = read_card(settings.teacher).prior
    else:
        prior = None if run.config.start is None else read_card(start_folder(run.config.start.model)).prior
    begun = read_prior(run, method)
    if path.is_file() and begun != prior:
        raise ColocamError(
            f"{run.folder} was begun with the prior {_named(begun)}, not {_named(prior)}: "
            "give the same file, or choose another folder"
        )
    if prior is not None:
        with explain_os_errors(path):
            path.parent.mkdir(exist_ok=True)
        write_json(path, prior.model_dump())


def read_prior(run: Run, method: str) -> LearnedPrior | None:
    """The prior that a method learns from; None: there is none."""
    path = run.folder / method / PRIOR
    try:
        return LearnedPrior.model_validate(parse_json(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ColocamError(f"{path} is damaged: restore it, or train in another folder") from error


def _named(prior: LearnedPrior | None) -> str:
    return "none" if prior is None else f"{prior.name} (SHA-256 {prior.digest[:12]}…)"


def _labels_of_round(
    run: Run, classifier: Classifier, method: str, clips: Sequence[CachedClip], folder: Path
) -> CamStore:
    model = best_model(run, classifier, method, folder)
    say_color_mean(run, f"{method}, {folder.name.replace('-', ' ')}", model.card)
    with model.net.unweighed():  # labels of weighed maps gain on stills and films, and lose in dense video
        return own_labels(model, clips, folder, run.device)


def say_color_mean(run: Run, phase: str, card: Card) -> None:
    """Print what ``localizer.color_mean: auto`` decided, and why."""
    if run.config.stage2(card.method).color_mean != "auto":
        return
    if card.color_growth is None:
        why = "chosen with the boxes of validation videos"
    else:
        why = f"with it, boxes of held-out videos have {100 * card.color_growth:.0f} % of their size without it"
    say(f"{phase}: color mean {card.color_mean} ({why}), threshold {card.threshold:.3g}")


def open_teacher(folder: Path, tags: Sequence[str]) -> Model:
    """The model of a run folder, if it knows the same ``tags``."""
    model = load_model(folder)
    if model.card.tags != tuple(tags):
        raise ColocamError(
            f"localizer.teacher {folder} knows the tags {', '.join(model.card.tags)}, but the videos have "
            f"{', '.join(tags)}: choose a run with the same tags"
        )
    return model


def _teacher_labels(run: Run, method: str, teacher: Path, clips: Sequence[CachedClip]) -> CamStore:
    """Labels of all frames of ``clips`` from the boxes of the run ``teacher``; the folder of the method keeps them.

    The teacher reads frames of the size that it was trained on, which are cached beside those of the run.
    """
    model = open_teacher(teacher, run.catalogue.tags)
    size = read_config(teacher / "config.yaml").frames.resize
    cached = cache_frames([clip.clip for clip in clips], run.frames, size=size, max_frames=run.config.frames.per_clip)
    folder = run.folder / method / "teacher"
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return own_labels(model, cached, folder, run.device)


def _labels_of_start(run: Run, method: str, start: Model, clips: Sequence[CachedClip]) -> CamStore:
    """Labels of all frames of ``clips`` from the boxes of ``start``, looked at as often as the trained model will."""
    settings, folder = run.config.stage2(method), run.folder / method / OWN
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return own_labels(start, clips, folder, run.device, looks=settings.looks)

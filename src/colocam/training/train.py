"""Train both stages, from videos and tags to a model. Parts that are already done are skipped."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from colocam.cams import CAMS, Cam
from colocam.cams.cam_cache import CamStore, open_cams
from colocam.config import Config, load_config
from colocam.data.batches import labeled_samples, scaled_boxes, spread_samples
from colocam.data.catalogue import Catalogue, read_catalogue
from colocam.data.frame_cache import CachedClip
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError, InterruptedRunError, NearChanceError
from colocam.losses import Term
from colocam.maps.mapper import model_mapper
from colocam.maps.prior import open_prior
from colocam.models import Classifier, LocalizerNet, make_classifier
from colocam.models.localizer_net import check_frames
from colocam.models.model_file import save_model
from colocam.run import Run, create_run, untrained
from colocam.temporal.presence import Calibration
from colocam.training.class_names import with_names
from colocam.training.distributed import alone, first, joined, require_same, world
from colocam.training.frozen_encoder import fit_crop_head
from colocam.training.keep_start import (
    keep_better,
    reading_helps,
    say_time,
    way_of_decoder,
    with_classifier,
    with_settings_of,
)
from colocam.training.loop import AfterEpoch, Journal
from colocam.training.prior_decoder import train_prior_decoder
from colocam.training.rounds import best_model, keep_prior, open_teacher, say_color_mean, train_method
from colocam.training.stage1 import take_over, train_classifier
from colocam.training.stage2 import loss_terms
from colocam.training.start import adopted, default_preset
from colocam.training.validation import Validator
from colocam.types import ReadInMap
from colocam.utils.device import choose_device, is_first, keep_activations
from colocam.utils.files import explain_os_errors
from colocam.utils.locks import clear_dead, locked
from colocam.utils.progress import graceful_stop, listed, say


class Expected(NamedTuple):
    """What a number of tagged videos or shots of each class gave, in percent: right boxes, tag given; right classes."""

    videos: int
    boxes: float
    classes: float


EXPECTED = Expected(2, 47.7, 42.0), Expected(5, 72.8, 65.5), Expected(10, 75.2, 74.4)
"""``colocam study videos`` on YouTube-Objects, preset ``resnet50`` (lab/notes/studies); 20 and more give no more."""
FEW = EXPECTED[-1].videos
"""Videos of a class, or shots of its videos, below which training warns."""
NEAR = 0.25
"""An accuracy nearer to chance than this share of the way to 100 % counts as near."""


def train(
    source: str | Path,
    out: str | Path,
    config: Config | None = None,
    *,
    boxes: str | Path | None = None,
    frames: str | Path | None = None,
    classifier: str | Path | None = None,
    device: str | None = None,
    terms: Sequence[Term] = (),
    after_epoch: AfterEpoch | None = None,
    stop_near_chance: bool = False,
) -> Path:
    """Train both stages on tagged videos, or continue an interrupted run.

    Stage 1 trains a classifier of the tags. Its CAMs of all training frames are stored. Stage 2 trains a decoder for
    each name in ``config.methods``. Ctrl-C stops after the current step; the same call continues, and the result is the
    same as without the interruption. A step whose loss is NaN or infinite is skipped and counted; more than 20 such
    steps in a row, or more than half of an epoch, stop the run. Several processes, started by ``torchrun``, share each
    step and give the same model (docs/guide/several-gpus.md).

    >>> run = train("videos", "runs/pets")                                          # doctest: +SKIP
    >>> term = Term("entropy", 0.1, lambda step: torch.special.entr(step.maps).mean())  # doctest: +SKIP
    >>> train("videos", "runs/entropy", terms=[term])                               # doctest: +SKIP

    Args:
        source: folder ``VIDEOS/<tag>/…``, or a CSV or parquet manifest, see :func:`colocam.data.read_catalogue`.
        out: the run folder. It gets ``config.yaml``, ``data.json`` (tags and clips), ``environment.json``,
            ``metrics.jsonl`` (:mod:`colocam.training.loop`), the checkpoints of each stage, and the model of the
            first method as ``model.json`` and ``model.safetensors``; further methods have a folder each.
        config: what to train; None: the preset ``resnet50`` on a GPU, else ``laptop``, which starts from a ready model.
        boxes: CSV file of true boxes. Those of validation videos then choose the epochs and the threshold; without
            boxes, both are chosen from tags and maps. The weights are never trained on boxes.
        frames: folder of decoded frames, which runs on the same videos may share; None: ``out/frames``.
        classifier: run folder on the same data and with the same stage 1; its classifier and CAMs are used.
        device: ``cpu``, ``cuda`` or ``cuda:<index>``; None: the GPU, if there is one.
        terms: loss terms of stage 2 besides those of the configuration, for every method. Their names and weights are
            stored in the run; to continue the run, pass the same ones. Parameters of a term's module are not trained.
        after_epoch: called after each epoch with its phase (``classifier``, or the method), its number from 0, and a
            :class:`colocam.maps.mapper.Mapper`, which computes maps with the present weights; of several processes,
            in the first. Where it starts from a model, first with the phase ``start`` and that model's decoder.
        stop_near_chance: stop after stage 1 where the class of held-out videos is near chance; else a warning says so.

    Returns:
        The run folder, which ``evaluate``, ``write_report`` and ``Localizer.load`` take.

    Raises:
        ColocamError: something the user can correct: a video, a file, a value, or a run folder of another run or of
            one that is still being trained.
        InterruptedRunError: the run was stopped and can be continued.
        NearChanceError: see ``stop_near_chance``.
    """
    config, out = adopted(config or load_config(default_preset(device))), Path(out)
    with joined(device) as own_device:
        if choose_device(own_device).type == "cpu":  # refuses a wrong one before anything is written
            keep_activations()
        catalogue, truth = first(partial(_check, Path(source), config, boxes, terms))
        cache = Path(frames) if frames else out / "frames"
        with _opened(out):
            create = partial(create_run, out, config, catalogue, frames=cache, device=own_device, terms=terms)
            run = first(partial(create, boxes=truth is not None))
            require_same("run folder", (out / "config.yaml").stat().st_mtime_ns)
            if classifier is not None:
                first(partial(take_over, run, Path(classifier)))
            try:
                with graceful_stop():
                    _train(run, truth, terms, after_epoch, stop_near_chance=stop_near_chance)
            except (InterruptedRunError, KeyboardInterrupt) as stop:
                raise InterruptedRunError(
                    f"{str(stop) or 'stopped'}: run the same command again to continue {run.folder}"
                ) from stop
    return run.folder


def _check(
    source: Path, config: Config, boxes: str | Path | None, terms: Sequence[Term]
) -> tuple[Catalogue, Truth | None]:
    """Read the videos and the boxes, and refuse before hours of training what cannot be trained."""
    loss_terms(config.localizer.losses, terms)  # refuses names that are taken
    if taken := CAMS.keys() & set(config.methods):
        raise ColocamError(f"methods: '{min(taken)}' is also the name of a CAM: choose another name")
    for method in config.methods:
        stage2 = config.stage2(method)
        if world() > max(stage2.batch // stage2.frames, 1):
            raise ColocamError(
                f"localizer.batch ({stage2.batch}) has fewer sequences of {stage2.frames} frames than there are "
                f"processes ({world()}), and a sequence is not divided: raise it, or start fewer processes"
            )
    truth = read_truth(Path(boxes)) if boxes is not None else None
    catalogue = read_catalogue(source, val_fraction=config.frames.val_fraction, seed=config.seed)
    # build the networks now, so that one that cannot be built or take these frames is refused
    net = make_classifier(config, untrained(config), len(catalogue.tags))
    check_frames(net, config.frames.crop)
    for method in config.methods:
        if (teacher := config.stage2(method).teacher) is not None:
            open_teacher(teacher, catalogue.tags)
        if (prior := config.stage2(method).prior) is not None:
            open_prior(prior)
        decoder, map_size = config.stage2(method).decoder, config.frames.map_size
        check_frames(LocalizerNet(net, decoder, map_size=map_size), config.frames.crop)
    if warning := few_videos(catalogue, config):
        say(warning)
    return catalogue, truth


@contextmanager
def _opened(out: Path) -> Iterator[None]:
    """Create the run folder and hold its lock; the first of several processes does so for all."""
    if not is_first():
        yield
        return
    with explain_os_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        for folder in (out, *(path for path in out.iterdir() if path.is_dir())):
            clear_dead(folder)
        yield


def _train(
    run: Run, truth: Truth | None, terms: Sequence[Term], after_epoch: AfterEpoch | None, *, stop_near_chance: bool
) -> None:
    clips = first(lambda: run.clips("train", "val"))
    require_same("frames", [(clip.file.stem, len(clip)) for clip in clips])
    training = [clip for clip in clips if clip.clip.split == "train"]
    validator = _validator(run, [clip for clip in clips if clip.clip.split == "val"], truth)
    journal = Journal(run.folder / "metrics.jsonl" if is_first() else None)
    tags = run.catalogue.tags
    size = run.config.frames.crop
    stage1 = run.folder / "classifier"
    if not (stage1 / "last.json").is_file():
        alone(partial(say_time, run, sum(map(len, training)), len(training)))
    train_classifier(run, training, validator, journal, after_epoch)
    classifier = run.classifier()
    chosen_from = "tags-only" if truth is None else "validation"
    if warning := near_chance(validator.accuracy(classifier), len(tags), run.config):
        if stop_near_chance:
            raise NearChanceError(warning)
        if is_first():
            say(f"warning: {warning}")
    for method in run.config.methods:
        first(partial(keep_prior, run, method))
        train_prior_decoder(run, classifier, method, training, journal)
    main = next(iter(run.config.methods), None)
    if after_epoch is not None and main and (start := with_classifier(run, classifier, main)) is not None:
        alone(partial(after_epoch, "start", 0, model_mapper(start)))

    def all_cams() -> CamStore:
        (source,) = run.sources(run.config.cam)
        return open_cams(source, training, tags, size, stage1 / "cams.npy", run.device)

    presence = validator.presence(classifier)
    cams = None if run.config.start is not None else first(all_cams)
    for method in run.config.methods:
        way = first(partial(way_of_decoder, run, classifier, method, validator, journal))
        start = with_classifier(run, classifier, method) if way == "own" else None
        trained = run if start is None else with_settings_of(run, start.card)
        if way == "train":
            cams = cams or first(all_cams)
        if way != "keep":
            train_method(trained, classifier, method, training, cams, validator, journal, terms, after_epoch, start)
        if start is not None:
            first(partial(keep_better, trained, classifier, method, start, validator))
        alone(partial(_save_model, trained, classifier, method, training, validator, chosen_from, presence))


def _validator(run: Run, clips: Sequence[CachedClip], truth: Truth | None) -> Validator:
    """The validation frames: those with a box, or without boxes frames that are evenly spaced in each clip."""
    if not clips:
        raise ColocamError("no validation video: the manifest's split column must name 'val' for some, or be left out")
    tags, sizes, device = run.catalogue.tags, run.config.frames, run.device
    per_clip = sizes.per_val_clip
    cam = run.config.cam if isinstance(CAMS[run.config.cam], Cam) else "layercam"  # a map of the classifier itself
    if truth is None:
        return Validator(spread_samples(clips, tags, per_clip), None, tags, sizes, device, cam)
    samples = labeled_samples(clips, tags, truth, per_clip, present=True)
    if len(samples) == 0:
        raise ColocamError(
            "the boxes match no frame of a validation video: check the clip names, or leave out the boxes"
        )
    return Validator(samples, scaled_boxes(samples, truth, sizes.map_side), tags, sizes, device, cam)


def _save_model(
    run: Run,
    classifier: Classifier,
    method: str,
    clips: Sequence[CachedClip],
    validator: Validator,
    chosen_from: str,
    presence: Calibration | None,
) -> None:
    """Save the classifier and the best decoder as one model, with the threshold that was chosen for it."""
    folder, settings = run.folder / method, run.config.stage2(method)
    head, asked = settings.crop_head, settings.class_in_map
    in_map: ReadInMap = True if asked == "auto" else asked
    best = partial(best_model, run, classifier, method, folder, threshold_from=chosen_from, presence=presence)
    model = best(crop_head=True) if head else best(class_in_map=in_map)
    if head:
        fit_crop_head(run, model.net.to(run.device).eval(), clips, folder)
        if head == "auto" and not reading_helps(model, validator):
            head, model = False, best(class_in_map=in_map)
    if asked == "auto" and not head and not reading_helps(model, validator):
        model = best()
    if not head:
        model = with_names(run, model, clips, validator)
    save_model(run.model_folder(method), model)
    say_color_mean(run, method, model.card)


def few_videos(catalogue: Catalogue, config: Config) -> str | None:
    """The warning for classes with fewer than :data:`FEW` clips to learn from; None where all have enough."""
    counts = Counter(clip.tag for clip in catalogue.clips if clip.split != "test")
    few = sorted((count, tag) for tag, count in counts.items() if count < FEW)
    if not few:
        return None
    named = listed([f"{tag} {count}" for count, tag in few])
    like = min(EXPECTED[:-1], key=lambda point: abs(point.videos - few[0][0]))
    enough = EXPECTED[-1]
    return (
        f"warning: {len(few)} of {len(counts)} tags have fewer than {FEW} videos or shots ({named}); on real "
        f"videos, pretrained, {like.videos} of each gave {like.boxes:.0f} % right boxes and {like.classes:.0f} % right "
        f"classes, {enough.videos} gave {enough.boxes:.0f} and {enough.classes:.0f} %: add videos with other "
        f"backgrounds{_pretrained(config)}"
    )


def near_chance(accuracy: float, classes: int, config: Config) -> str | None:
    """What is said of a classifier that is hardly better than chance on held-out videos; None for a better one.

    Args:
        accuracy: share of the frames whose class is right, mean over classes, 0–1: chance is 1 / classes.
        classes: their number.
        config: of the run.
    """
    chance = 1 / classes
    if accuracy >= chance + NEAR * (1 - chance):
        return None
    return (
        f"the class is right in {100 * accuracy:.0f} % of the frames of held-out videos, where chance is "
        f"{100 * chance:.0f} %: the maps will hardly show the tags; add videos, choose tags that differ in appearance"
        f"{_pretrained(config)}"
    )


def _pretrained(config: Config) -> str:
    """The advice to use pretrained weights, where the run does not."""
    return (
        ""
        if config.backbone.pretrained or config.start is not None
        else ", or start from a trained model (leave --preset out)"
    )

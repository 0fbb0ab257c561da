"""Both stages from videos and tags to a model. Every part is skipped where it is already done."""

from collections.abc import Sequence
from pathlib import Path

from colocam.cams.cam_cache import open_cams
from colocam.config import Config, Method, load_config
from colocam.data.cache_entry import CachedClip
from colocam.data.catalogue import read_catalogue
from colocam.data.samples import labelled_samples, scaled_boxes, spread_samples
from colocam.data.truth import Truth, read_truth
from colocam.errors import ColocamError, InterruptedRunError
from colocam.models import Classifier, LocalizerNet
from colocam.models.localizer_net import check_frames
from colocam.models.model_file import Card, Model, save_model
from colocam.run import Run, create_run, untrained
from colocam.temporal.presence import Calibration
from colocam.training.journal import Journal
from colocam.training.loop import fit
from colocam.training.presence import frames_with_object
from colocam.training.share import take_over
from colocam.training.stage1 import classifier_task
from colocam.training.stage2 import localizer_task
from colocam.training.validation import Validator
from colocam.utils.checkpoint import load_checkpoint
from colocam.utils.interrupt import graceful_stop


def train(
    source: str | Path,
    out: str | Path,
    config: Config | None = None,
    *,
    boxes: str | Path | None = None,
    frames: str | Path | None = None,
    classifier: str | Path | None = None,
    device: str | None = None,
) -> Path:
    """Train both stages on tagged videos and return the run folder; an interrupted run is continued.

    Args:
        source: folder ``VIDEOS/<tag>/…`` or a CSV/parquet manifest, see :func:`read_catalogue`.
        out: the run folder.
        config: what to train; the preset ``cpu`` if None.
        boxes: a table of true boxes; those of validation videos then choose the epochs and the threshold. Without it
            they are chosen from tags and maps alone.
        frames: folder of the frame cache, ``out/frames`` if None; runs on the same videos may share it.
        classifier: a run on the same data that would train the same stage 1; its classifier and CAMs are taken over.
        device: ``cpu`` or ``cuda``; the GPU if there is one.
    """
    config = config or load_config()
    truth = read_truth(Path(boxes)) if boxes is not None else None
    catalogue = read_catalogue(Path(source), val_fraction=config.frames.val_fraction, seed=config.seed)
    # a network that cannot be built or take these frames should not be found out after the first stage
    check_frames(
        LocalizerNet(Classifier(untrained(config), len(catalogue.tags)), config.localizer.decoder), config.frames.crop
    )
    cache = Path(frames) if frames else Path(out) / "frames"
    run = create_run(Path(out), config, catalogue, frames=cache, device=device, boxes=truth is not None)
    if classifier is not None:
        take_over(run, Path(classifier))
    try:
        with graceful_stop():
            _train(run, truth)
    except (InterruptedRunError, KeyboardInterrupt) as stop:
        raise InterruptedRunError(
            f"{str(stop) or 'stopped'}: run the same command again to continue {run.folder}"
        ) from stop
    return run.folder


def _train(run: Run, truth: Truth | None) -> None:
    clips = run.clips("train", "val")
    training = [clip for clip in clips if clip.clip.split == "train"]
    validator = _validator(run, [clip for clip in clips if clip.clip.split == "val"], truth)
    journal = Journal(run.folder / "metrics.jsonl")
    tags, size = run.catalogue.tags, run.config.frames.crop
    stage1 = run.folder / "classifier"
    fit(classifier_task(run.config, training, tags, validator, stage1), stage1, journal)
    (source,) = run.sources(run.config.cam)
    cams = open_cams(source, training, tags, size, run.folder / "classifier" / "cams.npy", run.device)
    presence, use = validator.presence(run.classifier()), run.config.localizer.presence
    measured = run.folder / "classifier" / "presence.safetensors"
    in_use = None if use == "off" else frames_with_object(use, measured, run.classifier(), training, validator)
    for method in run.config.methods:
        folder = run.folder / method
        fit(localizer_task(run.config, method, run.classifier(), training, cams, validator, in_use), folder, journal)
        _save_model(run, method, "tags-only" if truth is None else "validation", presence)


def _validator(run: Run, clips: Sequence[CachedClip], truth: Truth | None) -> Validator:
    """The validation frames: spread over the clips, or those with a box where a user has some."""
    if not clips:
        raise ColocamError("no validation video: the manifest's split column must name 'val' for some, or be left out")
    tags, per_clip, size = run.catalogue.tags, run.config.frames.per_val_clip, run.config.frames.crop
    device = run.device
    cam = "layercam" if run.config.cam == "clip-es" else run.config.cam
    if truth is None:
        return Validator(spread_samples(clips, tags, per_clip), None, tags, size, device, cam)
    samples = labelled_samples(clips, tags, truth, per_clip, present=True)
    if len(samples) == 0:
        raise ColocamError(
            "the boxes belong to no frame of a validation video: check the clip names, or leave --boxes out"
        )
    return Validator(samples, scaled_boxes(samples, truth, size), tags, size, device, cam)


def _save_model(run: Run, method: Method, chosen_from: str, presence: Calibration | None) -> None:
    """Put the classifier and the best decoder together, with the threshold that was chosen for it."""
    saved = load_checkpoint(run.folder / method, "best")
    assert saved is not None
    decoder, state = saved
    settings = run.config.stage2(method)
    net = LocalizerNet(run.classifier().cpu(), settings.decoder)
    net.decoder.load_state_dict(decoder)
    card = Card(
        method=method,
        tags=run.catalogue.tags,
        size=run.config.frames.crop,
        threshold=state["threshold"],
        threshold_from=chosen_from,
        backbone=net.classifier.encoder.backbone,
        decoder=settings.decoder,
        presence=presence,
        color_mean=settings.color_mean,
        focus=settings.focus,
    )
    save_model(run.model_folder(method), Model(net, card))

"""Labels from the model of another run, which teaches a smaller network (docs/method/teacher.md)."""

from collections.abc import Sequence
from pathlib import Path

from colocam.cams.cam_cache import CamStore
from colocam.config import read_config
from colocam.data.frame_cache import CachedClip, cache_frames
from colocam.errors import ColocamError
from colocam.maps.mapper import decoder_mapper
from colocam.models.model_file import Model, load_model
from colocam.run import Run
from colocam.training.own_labels import own_labels
from colocam.utils.files import explain_os_errors


def open_teacher(folder: Path, tags: Sequence[str]) -> Model:
    """The model of a run folder, if it knows the same ``tags``."""
    model = load_model(folder)
    if model.card.tags != tuple(tags):
        raise ColocamError(
            f"localizer.teacher {folder} knows the tags {', '.join(model.card.tags)}, but the videos have "
            f"{', '.join(tags)}: choose a run with the same tags"
        )
    return model


def teacher_labels(run: Run, teacher: Path, clips: Sequence[CachedClip], folder: Path) -> CamStore:
    """Labels of all frames of ``clips`` from the boxes of ``teacher``, as :func:`own_labels` makes them.

    The teacher reads frames of the size that it was trained on, which are cached beside those of the run.

    Args:
        run: the run that learns.
        teacher: run folder of a trained model.
        clips: training clips.
        folder: keeps the labels.
    """
    model, sizes = open_teacher(teacher, run.catalogue.tags), read_config(teacher / "config.yaml").frames
    net, card = model.net.to(run.device).eval(), model.card
    own = [clip.clip for clip in clips]
    larger = cache_frames(own, run.frames, size=sizes.resize, max_frames=run.config.frames.per_clip)
    with explain_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    mapper = decoder_mapper(net, card.color_mean, focus=card.focus_power(), chooser=card.chooser)
    return own_labels(mapper, net.classifier, card.threshold, larger, card.tags, card.size, folder, run.device)

"""Ready models: trained ones that come with a clone, or with the package ``colocam-models``, and are used by name.

Each is an ONNX file ``models/NAME/NAME.onnx``, so that it runs with and without torch.
"""

import os
from pathlib import Path

from colocam.errors import ColocamError, suggest
from colocam.utils.ready_folders import DEFAULT, ready_folders
from colocam.video.images import IMAGE_ENDINGS, VIDEO_ENDINGS

RUN_FILES = ("model.json", "config.yaml")
"""A run folder has one of them."""
MODEL_ENDINGS = frozenset({".onnx", ".pt", ".pth", ".ckpt", ".safetensors", ".tflite", ".engine"})
"""Files of models; ours end in ``.onnx``, and whoever opens another says so."""
REMEDY = "run 'pip install ./models' in a clone of colocam"


def ready_models() -> dict[str, Path]:
    """Names of the ready models of this installation, and their files."""
    return {
        file.stem: file
        for folder in ready_folders()
        for file in sorted(folder.glob("*/*.onnx"))
        if file.stem == file.parent.name
    }


def find_model(model: str) -> Path:
    """The model that a user names: a run folder, an ONNX file, or a ready model.

    Raises:
        ColocamError: there is none.
    """
    if Path(model).exists():
        return Path(model)
    ready = ready_models()
    if model in ready:
        return ready[model]
    if model == DEFAULT:
        raise ColocamError(f"the ready model {model} is not installed: {REMEDY}")
    known = suggest(model, [*ready]) if ready else ""
    raise ColocamError(f"{model}: there is no run folder, ONNX file or ready model with this name{known}")


def default_model(first: str | None) -> Path:
    """The model of a command that names none; ``first`` is its first word, for the error.

    Raises:
        ColocamError: it is not installed.
    """
    ready = ready_models().get(DEFAULT)
    if ready is None:
        what = "no model is named" if first is None else f"{first} is neither a run folder nor an ONNX file"
        raise ColocamError(f"{what}, and the ready model {DEFAULT} is not installed: name a model, or {REMEDY}")
    return ready


def refuse_no_videos(folder: Path) -> None:
    """Refuse a folder that was taken for videos and holds none, or holds trained models instead.

    Raises:
        ColocamError: the model was probably meant, and its name is wrong.
    """
    for parent, _, files in os.walk(folder):
        if any((Path(parent) / name).is_file() for name in RUN_FILES):
            raise ColocamError(f"{folder} is not a model, but {parent} is: name that")
        if any(Path(name).suffix.lower() in VIDEO_ENDINGS | IMAGE_ENDINGS for name in files):
            return
    raise ColocamError(
        f"{folder} contains neither a model ({RUN_FILES[0]}) nor a video: name a run folder, an ONNX file, or videos"
    )


def looks_like_model(word: str, *, more: bool) -> bool:
    """Whether the first word of a command is its model, not a video.

    Args:
        word: the word.
        more: whether other words may follow it. A name of nothing at all is then a run folder that is misspelled.
    """
    path = Path(word)
    if path.is_dir():
        return any((path / name).is_file() for name in RUN_FILES)
    ending = path.suffix.lower()
    nothing = word != "-" and "://" not in word and ending not in VIDEO_ENDINGS | IMAGE_ENDINGS and not path.exists()
    return ending in MODEL_ENDINGS or (more and nothing)

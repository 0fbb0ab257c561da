"""Ready models: trained ones that come with a clone, or with the package ``colocam-models``, and are used by name.

Each is an ONNX file ``models/NAME/NAME.onnx``, so that it runs with and without torch.
"""

from pathlib import Path

from colocam.errors import ArgumentError, ColocamError, suggest
from colocam.utils.ready_folders import DEFAULT, ready_folders

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
        ArgumentError: there is none.
    """
    if Path(model).exists():
        return Path(model)
    ready = ready_models()
    if model in ready:
        return ready[model]
    if model == DEFAULT:
        raise ArgumentError("model", f"{model}: this ready model is not installed: {REMEDY}")
    known = suggest(model, [*ready]) if ready else ""
    raise ArgumentError("model", f"{model}: no run folder, ONNX file or ready model has this name{known}")


def default_model(first: str | None) -> Path:
    """The model of a command that names none; ``first`` is its first word, for the error.

    Raises:
        ColocamError: it is not installed.
    """
    found = ready_models().get(DEFAULT)
    if found is None:
        what = "no model is named" if first is None else f"{first} is neither a run folder nor an ONNX file"
        raise ColocamError(f"{what}, and the ready model {DEFAULT} is not installed: name a model, or {REMEDY}")
    return found


def looks_like_model(word: str, *, more: bool) -> bool:
    """Whether the first word of a command is its model, not a video.

    Args:
        word: the word.
        more: whether other words may follow it. A name of nothing at all is then a run folder that is misspelled.
    """
    path = Path(word)
    if path.is_dir():
        return any((path / name).is_file() for name in ("model.json", "config.yaml"))
    nothing = word != "-" and "://" not in word and not path.suffix and not path.exists()
    return path.suffix.lower() == ".onnx" or (more and nothing)

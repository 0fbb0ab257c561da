"""Start from a trained model: its encoder stays, its decoder is where stage 2 begins (docs/method/start.md)."""

from pathlib import Path

from colocam.config import Config, read_config
from colocam.config.card import read_card
from colocam.errors import ColocamError
from colocam.models.model_file import Model, load_model
from colocam.utils.device import choose_device
from colocam.utils.ready_folders import ready_folders, ready_run


def start_folder(name: str) -> Path:
    """The run folder of a model to start from, which is named by its folder, or as a ready model.

    Raises:
        ColocamError: there is none.
    """
    path = Path(name)
    if path.suffix == ".onnx" and not (path.is_file() and (path.parent / "model.json").is_file()):
        raise ColocamError(
            f"start.model {name}: an ONNX file cannot be trained further: name the run folder it is from"
        )
    if path.suffix == ".onnx":
        return path.parent
    if (path / "model.json").is_file():
        return path
    if (ready := ready_run(name)) is not None:
        return ready
    known = sorted({card.parent.name for folder in ready_folders() for card in folder.glob("*/model.json")})
    listed = f"of a ready model ({', '.join(known)})" if known else "of a ready model (run 'pip install ./models')"
    raise ColocamError(f"start.model {name}: no such model: give a run folder with model.json, or the name {listed}")


def default_preset(device: str | None = None) -> str:
    """The preset of a training that names none: ``resnet50`` on a GPU, else ``laptop``, which starts from a model."""
    return "resnet50" if choose_device(device).type == "cuda" else "laptop"


def adopted(config: Config) -> Config:
    """The configuration with the network and the sizes of the model that it starts from, if there is one."""
    if config.start is None:
        return config
    folder = start_folder(config.start.model)
    card = read_card(folder)
    resize = read_config(folder / "config.yaml").frames.resize
    sizes = {"resize": resize, "crop": card.size, "map_size": card.map_size}
    changed = {
        "backbone": card.backbone,
        "frames": config.frames.model_copy(update=sizes),
        "classifier": config.classifier.model_copy(update={"size": card.class_size}),
        "localizer": config.localizer.model_copy(update={"decoder": card.decoder}),
    }
    return config.model_copy(update=changed)


def open_start(config: Config) -> Model | None:
    """The model that a configuration starts from, on the CPU; None: it starts from none."""
    return None if config.start is None else load_model(start_folder(config.start.model))

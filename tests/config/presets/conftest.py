"""Shipped presets, trained on tiny frames."""

from collections.abc import Callable
from pathlib import Path

import pytest

from colocam.cli import main
from colocam.config import Backbone, load_config

PRESETS = {
    "demo": ("frames.resize=36", "frames.crop=32", "classifier.epochs=2", "localizer.epochs=2"),
    "resnet50": (
        "frames.resize=72",
        "frames.crop=64",
        "frames.map_size=32",
        "classifier.size=32",
        "classifier.frames_per_clip=2",
        "localizer.epochs=1",
        "localizer.batch=8",
        "localizer.sequences_per_clip=1",
    ),
    "lite0": (
        "frames.resize=108",
        "frames.crop=96",
        "frames.map_size=48",
        "classifier.frames_per_clip=2",
        "localizer.epochs=1",
        "localizer.batch=8",
        "localizer.sequences_per_clip=1",
    ),
    "laptop": (
        "start.decoder=train",
        "classifier.frames_per_clip=2",
        "localizer.epochs=1",
        "localizer.batch=8",
        "localizer.sequences_per_clip=1",
    ),
    "paper": (
        "frames.resize=36",
        "frames.crop=32",
        "backbone.args={layers: [1, 1, 1, 1]}",  # the preset resnet50 has all of the same blocks
        "classifier.epochs=1",
        "localizer.epochs=1",
    ),
}
"""Preset → what makes it tiny: tests/config/presets says which settings these may be. All others are as shipped."""


def random_weights(path: Path, backbone: Backbone) -> None:
    """Store an encoder in place of a download: random, with batch norms that keep its features in a sane range."""
    import torch  # noqa: PLC0415 - torch only for those who need it
    from safetensors.torch import save_file  # noqa: PLC0415

    from colocam.models import Encoder  # noqa: PLC0415

    torch.manual_seed(0)
    network = Encoder(backbone.model_copy(update={"pretrained": False})).network.train()
    for part in network.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.ones_(part.weight)  # timm starts residual blocks at 0: nothing would pass through them
            part.momentum = None  # statistics are those of the one batch below
    with torch.no_grad():
        network(torch.randn(8, 3, 64, 64))
    save_file({name: value.contiguous() for name, value in network.state_dict().items()}, path)


@pytest.fixture(scope="session")
def preset_run(shared, collection) -> Callable[[str], Path]:
    """``preset_run(name)`` is the run folder of a shipped preset, trained by the command on tiny frames; read only.

    The preset ``lite0`` is taught by that of ``resnet50``, as its guide says, and ``laptop`` starts from it.
    """

    def train_preset(folder: Path, preset: str) -> None:
        changes = list(PRESETS[preset])
        backbone = load_config(preset, overrides=changes).backbone
        if backbone.pretrained:
            random_weights(folder / "encoder.safetensors", backbone)
            changes.append(f"backbone.weights={folder / 'encoder.safetensors'}")
        command = ["train", collection.manifest, "--preset", preset, "--out", folder / "run", "--anyway"]
        command += [word for change in changes for word in ("--set", change)]
        if preset == "lite0":
            command += ["--teacher", get("resnet50")]
        elif preset == "laptop":
            command += ["--from", get("lite0")]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["colocam", *map(str, command)])
            with pytest.raises(SystemExit) as stop:
                main()
        assert not stop.value.code

    def get(preset: str) -> Path:
        return shared(f"preset-{preset}", lambda folder: train_preset(folder, preset)) / "run"

    return get

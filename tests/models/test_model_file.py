"""A model folder of a stranger: its sizes are bounded by its weights, and damaged weights are named."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from colocam.config import Backbone
from colocam.config.card import Card
from colocam.errors import ColocamError
from colocam.models import Classifier, LocalizerNet
from colocam.models.model_file import Model, load_model, save_model

BACKBONE = Backbone(name="resnet10t", pretrained=False, args={"channels": [8, 8, 8, 8]})


@contextmanager
def one_gigabyte_more() -> Iterator[None]:
    """Refuse this process more than a gigabyte beyond what it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + (1 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def folder(tmp_path):
    encoder = Classifier(BACKBONE, 2).encoder
    net = LocalizerNet(Classifier(BACKBONE, 2), (8, 8, 8, 8, 8)).eval()
    card = Card(
        method="colocam",
        tags=("cat", "dog"),
        size=64,
        threshold=0.5,
        threshold_from="tags-only",
        backbone=encoder.backbone,
        decoder=(8, 8, 8, 8, 8),
    )
    save_model(tmp_path, Model(net, card))
    return tmp_path


def change(folder, **values):
    path = folder / "model.json"
    card = json.loads(path.read_text())
    card["backbone"] |= values.pop("backbone", {})
    path.write_text(json.dumps(card | values))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"decoder": [60000] * 5}, "does not fit model.safetensors"),
        ({"backbone": {"args": {"channels": [60000] * 4}}}, "does not fit model.safetensors"),
        ({"backbone": {"args": {"channels": [8] * 4, "layers": [60000] * 4}}}, "asks for 240000 blocks"),
        ({"tags": [str(tag) for tag in range(1_000_000)]}, "does not fit model.safetensors"),
        ({"backbone": {"name": "resnet152", "args": {}}}, "does not fit model.safetensors"),
    ],
    ids=["decoder", "channels", "layers", "tags", "backbone"],
)
def test_sizes_are_bounded_by_the_weights(folder, values, told):
    """A network of these sizes would need more than a gigabyte."""
    change(folder, **values)
    with one_gigabyte_more(), pytest.raises(ColocamError, match=told):
        load_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_named(folder, value):
    tensors = load_file(folder / "model.safetensors")
    tensors["classifier.head.bias"][1] = value
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ColocamError, match=r"model\.safetensors: 'classifier\.head\.bias' has NaN or infinite values"):
        load_model(folder)


def test_a_stranger_cannot_name_a_checkpoint(folder, tmp_path):
    change(folder, backbone={"args": {"channels": [8, 8, 8, 8], "checkpoint_path": str(tmp_path / "evil.pth")}})
    with pytest.raises(ColocamError, match=r"^backbone\.args must not hold 'checkpoint_path'"):
        load_model(folder)

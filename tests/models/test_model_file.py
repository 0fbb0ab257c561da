"""Model files: the same after writing and reading, and a stranger's are bounded by their weights and named."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from colocam.config import Backbone
from colocam.config.card import Card
from colocam.errors import ColocamError
from colocam.models import Classifier, LocalizerNet
from colocam.models.model_file import Model, load_model, save_model
from tests.helpers.batch_norms import unsettle

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


def make_model(size=None, *, normalize=False):
    torch.manual_seed(0)
    net = unsettle(LocalizerNet(Classifier(BACKBONE, 2, size=size, normalize=normalize), (8, 8, 8, 8, 8)), 0)
    card = Card(
        method="colocam",
        tags=("Käfer", "猫 2"),
        size=32,
        threshold=0.4375,
        threshold_from="tags-only",
        backbone=net.classifier.encoder.backbone,
        decoder=(8, 8, 8, 8, 8),
        class_size=size,
        normalize=normalize,
    )
    return Model(net, card)


@pytest.fixture
def model():
    return make_model()


@pytest.fixture
def folder(model, tmp_path):
    save_model(tmp_path, model)
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
        ({"tags": ["one"]}, r"'classifier.head.weight' is \(1, 8\) in the first"),
        ({"backbone": {"name": "resnet152", "args": {}}}, "does not fit model.safetensors"),
    ],
    ids=["decoder", "channels", "layers", "tags", "tag", "backbone"],
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


def test_kernels_are_stored_in_half_precision_and_nothing_else(model, tmp_path):
    kernel = model.net.decoder.head.weight
    with torch.no_grad():
        kernel[0, 0, 0, 0] = 1e5  # more than float16 holds
    save_model(tmp_path, model)
    wide = {name for name, value in model.net.state_dict().items() if value.dim() > 1} - {"decoder.head.weight"}
    stored = load_file(tmp_path / "model.safetensors")
    assert {name for name, value in stored.items() if value.dtype == torch.float16} == wide
    for name, value in load_model(tmp_path).net.state_dict().items():
        own = model.net.state_dict()[name]
        assert value.dtype == own.dtype
        assert torch.equal(value, own.half().float() if name in wide else own)


@pytest.mark.parametrize("reading", [{}, {"size": 16}, {"size": 16, "normalize": True}])
def test_a_saved_model_says_the_same_to_the_bit(reading, tmp_path):
    model = make_model(**reading)
    save_model(tmp_path, model)
    save_model(tmp_path, load_model(tmp_path))  # rounded once, the second time changes nothing
    loaded = load_model(tmp_path)
    assert loaded.card == model.card
    for weight in model.net.parameters():
        weight.data = weight.data.half().float() if weight.dim() > 1 else weight.data
    frames = torch.randint(256, (2, 3, 32, 32), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        for found, wanted in zip(loaded.net(frames), model.net.eval()(frames), strict=True):
            assert torch.equal(found, wanted)
    assert not any(module.training for module in loaded.net.modules())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.json", "model.safetensors"]


def test_a_card_that_names_initial_weights_does_not_need_them(model, tmp_path):
    backbone = model.card.backbone.model_copy(update={"pretrained": True, "weights": tmp_path / "gone.pth"})
    save_model(tmp_path, Model(model.net, model.card.model_copy(update={"backbone": backbone})))
    assert load_model(tmp_path).card.backbone.weights == tmp_path / "gone.pth"


def test_a_folder_without_a_card_is_no_model(model, tmp_path):
    with pytest.raises(ColocamError, match=r"no trained model in .*finish 'colocam train' first"):
        load_model(tmp_path)
    save_model(tmp_path, model)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").mkdir()  # the next write of the weights fails
    with pytest.raises(ColocamError, match="there is a folder where a file is needed"):
        save_model(tmp_path, model)
    with pytest.raises(ColocamError, match="no trained model"):
        load_model(tmp_path)

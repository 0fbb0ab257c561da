"""Weight files: read by name, without pickle's code, and refused in one line."""

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.models.convnext import ConvNeXt
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer

from colocam.config import Backbone, load_config
from colocam.errors import ColocamError
from colocam.models import Encoder
from tests.helpers.batch_norms import unsettle


class Bomb:
    """Unpickling this calls a function."""

    def __init__(self, witness):
        self.witness = str(witness)

    def __reduce__(self):
        import os  # noqa: PLC0415

        return os.mkdir, (self.witness,)


@pytest.fixture(scope="module")
def backbone(tiny):
    return load_config(overrides=tiny).backbone


@pytest.fixture(scope="module")
def weights(backbone):
    torch.manual_seed(1)
    state = Encoder(backbone).network.state_dict()
    return {name: torch.randn(tensor.shape).to(tensor.dtype) for name, tensor in state.items()}


def with_weights(backbone, path):
    return Encoder(backbone.model_copy(update={"weights": path}))


@pytest.mark.parametrize("kind", ["w.safetensors", "w.pth", "w.pt"])
def test_weights_are_loaded_by_name_and_the_head_is_left_out(backbone, weights, tmp_path, kind):
    path = tmp_path / kind
    file = {**weights, "fc.weight": torch.zeros(1000, 8), "fc.bias": torch.zeros(1000)}
    save_file(file, path) if path.suffix == ".safetensors" else torch.save(file, path)
    state = with_weights(backbone, path).network.state_dict()
    assert state.keys() == weights.keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in weights.items())


def test_counters_of_old_files_may_be_missing(backbone, weights, tmp_path):
    save_file({n: t for n, t in weights.items() if not n.endswith("num_batches_tracked")}, tmp_path / "w.safetensors")
    state = with_weights(backbone, tmp_path / "w.safetensors").network.state_dict()
    assert all(torch.equal(state[n], t) for n, t in weights.items() if not n.endswith("num_batches_tracked"))


def refused(backbone, path):
    with pytest.raises(ColocamError) as refusal:
        with_weights(backbone, path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_wrong_shapes_and_missing_keys(backbone, weights, tmp_path):
    name = next(n for n in weights if n.endswith("conv1.weight"))
    save_file({**weights, name: torch.zeros(1, 2, 3, 3)}, tmp_path / "shape.safetensors")
    assert f"'{name}' is (1, 2, 3, 3), the network has" in refused(backbone, tmp_path / "shape.safetensors")
    torch.save({n: t for n, t in weights.items() if n != name}, tmp_path / "less.pth")
    assert f"lacks '{name}' and 0 more" in refused(backbone, tmp_path / "less.pth")


@pytest.mark.parametrize(
    "content", [torch.zeros(3), [1, 2], {"state_dict": {"a": 3}}, {"epoch": 3}, {}, {"model": [torch.zeros(1)]}]
)
def test_files_that_hold_something_else(backbone, tmp_path, content):
    torch.save(content, tmp_path / "w.pth")
    assert "is not a plain state dict" in refused(backbone, tmp_path / "w.pth")


@pytest.mark.parametrize("key", ["state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module.", "backbone.", "module.backbone.", "_orig_mod."])
def test_training_checkpoints_are_unwrapped(backbone, weights, tmp_path, key, prefix):
    file = {f"{prefix}{name}": tensor for name, tensor in weights.items()}
    torch.save({"epoch": 3, key: file, "optimizer": {"lr": [0.1]}}, tmp_path / "w.pth")
    state = with_weights(backbone, tmp_path / "w.pth").network.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in weights.items())


SWIN = {"embed_dim": 12, "depths": [1, 1, 1, 1], "img_size": 64, "window_size": 2}
FULL = {
    "resnet18": {"channels": [8, 8, 8, 8]},
    "convnext_atto": {"depths": [1, 1, 1, 1], "dims": [8, 8, 8, 8]},  # stages.0 is stages_0 in timm's extractor
    "mobilenetv3_small_100": {},
    "regnetx_002": {},
    "tresnet_m": {"layers": [1, 1, 1, 1], "width_factor": 0.2},  # body.layer1 is body_layer1 there
    "legacy_xception": {},  # everything lies under body. there
    "swin_tiny_patch4_window7_224": SWIN,
    "vit_tiny_patch16_224": {"depth": 2, "embed_dim": 12, "img_size": 64},
    "vit_medium_patch16_gap_240": {"depth": 2, "embed_dim": 12, "img_size": 64, "num_heads": 2},
}


@pytest.mark.parametrize("name", FULL)
def test_a_whole_classification_network_gives_its_features(name, tmp_path):
    """Saved by timm with its head, loaded here without: the last map is that of timm's own forward pass."""
    torch.manual_seed(2)
    whole = unsettle(timm.create_model(name, num_classes=3, **FULL[name]))
    torch.save(whole.state_dict(), tmp_path / "w.pth")
    backbone = Backbone(name=name, weights=tmp_path / "w.pth", output_stride=32, args=FULL[name])
    encoder = Encoder(backbone).eval()
    frames = torch.randint(256, (1, 3, 64, 64), generator=torch.Generator().manual_seed(0)).float()
    frames = (frames - encoder.mean) / encoder.std
    with torch.inference_mode():
        *_, last = encoder.network(frames)
        match whole:
            case VisionTransformer(fc_norm=norm):
                expected = norm(whole.forward_features(frames))[:, whole.num_prefix_tokens :].mT.unflatten(2, (4, 4))
            case ConvNeXt():
                expected = whole.stages(whole.stem(frames))
            case SwinTransformer():
                expected = whole.layers(whole.patch_embed(frames)).movedim(3, 1)
            case _:
                expected = whole.forward_features(frames)
    torch.testing.assert_close(last, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["vgg11", "inception_v3"])
def test_weights_of_torchvisions_names_fill_all_but_the_added_layers(name, tmp_path):
    """The head and, for InceptionV3, the blocks that are cut off are neither needed nor missed."""
    with torch.device("meta"):
        new = Encoder(Backbone(name=name, pretrained=False)).network
    types = {key: tensor.dtype for key, tensor in new.state_dict().items()}
    trunk = new.features if name == "vgg11" else new.trunk
    prefix = "features." if name == "vgg11" else ""
    file = {f"{prefix}{n}": torch.full(t.shape, 0.25, dtype=torch.half) for n, t in trunk.state_dict().items()}
    head = {"classifier.6.weight": torch.zeros(1000, 4), "Mixed_7a.branch3x3_1.conv.weight": torch.zeros(2)}
    save_file(file | head, tmp_path / "w.safetensors")
    loaded = Encoder(Backbone(name=name, weights=tmp_path / "w.safetensors")).network
    for key, tensor in loaded.state_dict().items():
        assert key.startswith("added.") or bool((tensor == torch.tensor(0.25).to(tensor.dtype)).all())
        assert tensor.dtype == types[key]
    first = next(iter(file))
    save_file({n: t for n, t in file.items() if n != first}, tmp_path / "w.safetensors")
    with pytest.raises(ColocamError, match=rf"lacks '{first}' and 0 more"), torch.device("meta"):
        Encoder(Backbone(name=name, weights=tmp_path / "w.safetensors"))


def test_a_pickle_with_code_is_refused_and_not_run(backbone, tmp_path):
    witness = tmp_path / "ran"
    torch.save({"a": Bomb(witness)}, tmp_path / "w.pth")
    assert "cannot read weights" in refused(backbone, tmp_path / "w.pth")
    assert not witness.exists()


def test_missing_and_damaged_files(backbone, tmp_path):
    assert "no weights at" in refused(backbone, tmp_path / "none.pth")
    for name in ("x.pth", "x.safetensors"):
        (tmp_path / name).write_bytes(b"\x00 not weights")
        assert "cannot read weights" in refused(backbone, tmp_path / name)

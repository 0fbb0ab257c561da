"""The networks: the paper's sizes, features without dilation, and a classifier that stays frozen to the bit."""

import pytest
import timm
import torch
from segmentation_models_pytorch.decoders.unet.decoder import UnetDecoder

from colocam.config import Backbone, load_config
from colocam.errors import ColocamError
from colocam.models import Classifier, Encoder, LocalizerNet
from colocam.models.decoder import UNet
from colocam.models.localizer_net import check_frames

SMALL = {
    "resnet": (Backbone(name="resnet10t", pretrained=False, args={"channels": [8, 8, 8, 8]}), (8, 8, 8, 8, 8)),
    "vgg": (Backbone(name="vgg11_bn", pretrained=False), (8, 8, 8)),
    "vit": (
        Backbone(name="vit_tiny_patch16_224", pretrained=False, args={"depth": 2, "embed_dim": 12, "drop_rate": 0.5}),
        (8, 8, 8, 8),
    ),
    "convnext": (
        Backbone(name="convnext_atto", pretrained=False, args={"depths": [1, 1, 1, 1], "dims": [8, 8, 8, 8]}),
        (8, 8, 8),
    ),
}


@pytest.fixture(scope="module")
def config(tiny):
    return load_config(overrides=tiny)


def frames(count=2, side=32, seed=0):
    return torch.randint(256, (count, 3, side, side), generator=torch.Generator().manual_seed(seed)).float()


@pytest.mark.parametrize(
    ("settings", "last", "total", "learnable"),
    [
        ([], (2048, 28, 28), 32.54, 9.01),
        (["backbone.name=vgg16", "localizer.decoder=[256, 128, 64]"], (1024, 28, 28), 42.57, 23.12),
        (["backbone.name=inception_v3"], (1024, 29, 29), 31.20, 5.70),
    ],
    ids=["resnet50", "vgg16", "inception_v3"],
)
def test_the_papers_networks_have_the_papers_sizes(settings, last, total, learnable):
    config = load_config("paper", None, ["backbone.pretrained=false", *settings])
    with torch.device("meta"):
        net = LocalizerNet(Classifier(config.backbone, 10), config.localizer.decoder)
        out = net(torch.empty(2, 3, 224, 224))
        features = net.classifier(torch.empty(2, 3, 224, 224)).features
    assert round(sum(p.numel() for p in net.parameters()) / 1e6, 2) == total
    assert round(sum(p.numel() for p in net.parameters() if p.requires_grad) / 1e6, 2) == learnable
    assert features[-1].shape == (2, *last)
    assert [f.shape[1] for f in features] == net.classifier.encoder.channels
    assert out.map_logits.shape == (2, 2, 224, 224)
    assert out.class_logits.shape == (2, 10)


@pytest.mark.parametrize("name", ["resnet10t", "resnet18", "resnet26d", "convnext_atto"])
def test_a_cell_looks_at_its_own_place(name):
    """What a cell of the removed strides sees is centered on its own pixels, not half a cell down and right of them."""
    torch.manual_seed(0)
    encoder = Encoder(Backbone(name=name, pretrained=False, output_stride=8)).eval()
    pictures = frames(2, 96).requires_grad_()
    encoder(pictures)[-1][:, :, 6, 6].sum().backward()
    weight = pictures.grad.square().sum((0, 1))
    for axis in (0, 1):
        profile = weight.sum(axis)
        found = float(profile @ torch.arange(96.0) / profile.sum())
        # strided 3×3 kernels are centered on their cell's first pixel, pools and patches on its middle
        assert 8 * 6 - 3 < found < 8 * 6 + 3.5 + 3


IMAGENET = (timm.data.IMAGENET_DEFAULT_MEAN, timm.data.IMAGENET_DEFAULT_STD)
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@pytest.mark.parametrize(
    ("changes", "normalization"),
    [
        ({}, IMAGENET),
        ({"name": "tf_mobilenetv3_small_minimal_100", "args": {}}, HALVES),
        ({"name": "vit_tiny_patch16_224", "args": {"depth": 1, "embed_dim": 12}}, HALVES),
        ({"name": "mixnet_s", "mean": (0.1, 0.2, 0.3), "args": {}}, ((0.1, 0.2, 0.3), IMAGENET[1])),
        ({"mean": HALVES[0], "std": HALVES[1]}, HALVES),
    ],
)
def test_frames_are_normalized_as_the_weights_expect(config, changes, normalization):
    backbone = config.backbone.model_copy(update=changes)
    encoder = Encoder(backbone).eval()
    picture = frames()
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in normalization)
    expected = encoder.network((picture / 255 - mean) / std)
    for found, wanted in zip(encoder(picture), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    for found, wanted in zip(encoder(picture.byte()), encoder(picture), strict=True):
        assert torch.equal(found, wanted)
    # what is written beside the trained model says so outright
    assert (encoder.backbone.mean, encoder.backbone.std) == normalization
    assert encoder.backbone.name == backbone.name
    assert not encoder.backbone.pretrained


def test_a_network_without_a_stated_normalization_needs_the_users(monkeypatch, config):
    monkeypatch.setattr(timm, "get_pretrained_cfg", lambda _: None)
    with pytest.raises(ColocamError, match=r"states no normalization for 'resnet10t': set backbone\.mean"):
        Encoder(config.backbone)
    Encoder(config.backbone.model_copy(update={"mean": HALVES[0], "std": HALVES[1]}))


@pytest.mark.parametrize("kind", SMALL)
def test_frozen_means_frozen(kind):
    torch.manual_seed(0)
    backbone, channels = SMALL[kind]
    net = LocalizerNet(Classifier(backbone, 3), channels).train()
    before = {name: tensor.clone() for name, tensor in net.classifier.state_dict().items()}
    decoder = {name: tensor.clone() for name, tensor in net.decoder.state_dict().items()}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9, weight_decay=0.1)
    for seed in range(2):
        optimizer.zero_grad()
        net(frames(side=32, seed=seed)).map_logits.square().mean().backward()
        optimizer.step()
    after = net.classifier.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert all(p.grad is None for p in net.classifier.parameters())
    changed = {n for n, tensor in net.decoder.state_dict().items() if not torch.equal(tensor, decoder[n])}
    assert {n for n, _ in net.decoder.named_parameters()} <= changed
    assert any("running_mean" in name for name in changed)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "resnt18"}, r"timm has no network 'resnt18'.*did you mean resnet18"),
        ({"name": "0" * 30}, r"timm\.list_models\(\) lists all"),
        ({"args": {"depth": 3}}, "unexpected keyword argument 'depth'"),
        ({"args": {"channels": [8, 8]}}, "timm cannot build 'resnet10t'.*list index out of range"),
        ({"args": {"channels": [8, False, 8, 8]}}, "a layer of 'resnet10t' has no channels with backbone.args"),
        ({"args": {"act_layer": "nope"}}, "timm cannot build 'resnet10t'.*nope"),
        ({"args": {"stem_width": -1}}, "timm cannot build 'resnet10t'.*negative dimension"),
        (
            {"name": "densenet121", "args": {}},
            r"'densenet121' cannot be built with backbone\.output_stride 8: set it to 32",
        ),
        ({"name": "dla46_c", "args": {}}, r"'dla46_c' cannot be built with backbone\.output_stride 8: set it to 32"),
        ({"name": "poolformer_s12", "args": {}}, r"cannot be built with backbone\.output_stride 8: set it to 32"),
        ({"name": "inception_v3", "args": {}, "output_stride": 32}, "set backbone.output_stride to 8 or 16"),
        ({"stride_in_1x1": True}, r"'resnet10t' has no residual bottlenecks: leave backbone\.stride_in_1x1 out"),
        ({"name": "vgg11", "args": {}, "stride_in_1x1": True}, "'vgg11' has no residual bottlenecks"),
        ({"name": "hf-hub:timm/resnet18"}, "timm has no network"),
    ],
)
def test_networks_that_timm_cannot_build(config, changes, says):
    with pytest.raises(ColocamError, match=says) as refused:
        Encoder(config.backbone.model_copy(update=changes))
    assert "\n" not in str(refused.value)


def test_frames_that_a_network_cannot_take_are_refused_before_training():
    swin = Backbone(
        name="swin_tiny_patch4_window7_224",
        pretrained=False,
        output_stride=32,
        args={"embed_dim": 12, "depths": [1, 1, 1, 1], "img_size": 64, "window_size": 2},
    )
    net = LocalizerNet(Classifier(swin, 2), (8, 8, 8, 8))
    check_frames(net, 64)
    with pytest.raises(
        ColocamError, match=r"'swin_tiny.*' cannot take frames of 48×48 pixels \(frames\.crop\): "
    ) as no:
        check_frames(net, 48)
    assert "\n" not in str(no.value)


def test_a_failed_download_names_the_two_ways_out(monkeypatch):
    def offline(*_, **__):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(ColocamError, match=r"could not be downloaded \(no route\): set backbone.weights") as refused:
        Encoder(Backbone(name="resnet18", pretrained=True))
    assert "backbone.pretrained to false" in str(refused.value)


def test_mixed_precision_gives_the_maps_and_gradients_of_the_plain_decoder():
    torch.manual_seed(0)
    decoder = UNet([4, 8, 8], (8, 8, 4))
    plain = UnetDecoder([3, 4, 8, 8], [8, 8, 4], 3).to(memory_format=torch.channels_last)
    plain.load_state_dict(decoder.unet.state_dict())
    frames = torch.zeros(2, 3, 16, 16)
    features = [torch.randn(2, width, side, side).bfloat16() for width, side in ((4, 8), (8, 4), (8, 2))]
    results = []
    for unet in (decoder.unet, plain):
        with torch.autocast("cpu", torch.bfloat16):
            maps = unet([frames, *features])
        results.append([maps, *torch.autograd.grad(maps.float().square().sum(), unet.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))

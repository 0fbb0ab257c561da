"""Convolutional backbones: features as timm's and torchvision's own, strides removed, faster learning at the end."""

import pytest
import timm
import torch
from torch import nn
from torchvision.models import vgg

from colocam.config import Backbone
from colocam.models import Classifier, Encoder, LocalizerNet
from tests.helpers.batch_norms import unsettle


def frames(count=2, side=64, seed=0):
    return torch.randint(256, (count, 3, side, side), generator=torch.Generator().manual_seed(seed)).float()


def encoder(name, stride=8, **rest):
    torch.manual_seed(0)
    return Encoder(Backbone(name=name, pretrained=False, output_stride=stride, **rest)).eval()


@pytest.mark.parametrize(
    ("name", "stride", "reductions"),
    [
        ("resnet18", 8, [2, 4, 8, 8, 8]),
        ("regnetx_002", 8, [2, 4, 8, 8, 8]),
        ("efficientnet_b0", 16, [2, 4, 8, 16, 16]),
        ("mobilenetv3_small_100", 8, [2, 4, 8, 8, 8]),
        ("densenet121", 32, [2, 4, 8, 16, 32]),
        ("convnext_atto", 32, [4, 8, 16, 32]),
        ("swin_tiny_patch4_window7_224", 32, [4, 8, 16, 32]),
        ("hrnet_w18_small", 32, [2, 4, 8, 16, 32]),
        ("xception41", 16, [2, 4, 8, 16, 16]),
        ("darknet53", 8, [1, 2, 4, 8, 8, 8]),
        ("vgg13", 16, [2, 4, 8, 16]),
        ("vgg19_bn", 32, [2, 4, 8, 16, 32]),
    ],
)
def test_any_network_gives_maps_and_a_decoder_takes_them(name, stride, reductions):
    with torch.device("meta"):
        classifier = Classifier(Backbone(name=name, pretrained=False, output_stride=stride), 3)
        net = LocalizerNet(classifier, (8,) * len(reductions))
        picture = torch.empty(2, 3, 224, 224)
        features, out = classifier(picture).features, net(picture)
    assert [f.shape[2:] for f in features] == [(224 // r, 224 // r) for r in reductions]
    assert [f.shape[1] for f in features] == classifier.encoder.channels
    assert out.map_logits.shape == (2, 2, 224, 224)
    assert out.class_logits.shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("resnet18", ["layer4."]),
        ("convnext_atto", ["stages_3."]),
        ("efficientnet_b0", ["blocks.5.", "blocks.6."]),
        ("mobilenetv3_small_100", ["blocks.4.", "blocks.5."]),
        ("xception41", ["blocks_12."]),
        ("vgg11", ["added."]),
        ("inception_v3", ["added."]),
        ("vit_tiny_patch16_224", ["vit.blocks.11.", "vit.norm."]),
    ],
)
def test_the_last_stage_is_what_follows_the_last_but_one_map(name, stage):
    with torch.device("meta"):
        network = Encoder(Backbone(name=name, pretrained=False))
    late = {id(parameter) for parameter in network.last_stage()}
    for parameter_name, parameter in network.network.named_parameters():
        assert (id(parameter) in late) == parameter_name.startswith(tuple(stage)), parameter_name


def test_a_user_may_choose_among_the_maps():
    with torch.device("meta"):
        for indices, sides in (([4], [8]), ([1, 2, 4], [16, 8, 8])):
            classifier = Classifier(Backbone(name="resnet18", pretrained=False, args={"out_indices": indices}), 2)
            assert [f.shape[-1] for f in classifier(torch.empty(1, 3, 64, 64)).features] == sides
            net = LocalizerNet(classifier, (8,) * len(indices))
            assert net(torch.empty(1, 3, 64, 64)).map_logits.shape == (1, 2, 64, 64)
            late = sum(p.numel() for p in classifier.encoder.last_stage())
            assert late == (0 if len(indices) == 1 else sum(p.numel() for p in _stages(classifier, "layer3", "layer4")))


def _stages(classifier, *names):
    return [p for n, p in classifier.encoder.network.named_parameters() if n.startswith(names)]


def test_convnext_with_strides_removed_keeps_its_maps_centered():
    sides = {stride: [f.shape[-1] for f in encoder("convnext_atto", stride)(frames(1, 64))] for stride in (8, 16, 32)}
    assert sides == {8: [16, 8, 9, 8], 16: [16, 8, 4, 5], 32: [16, 8, 4, 2]}


@pytest.mark.parametrize("name", ["vgg11", "vgg11_bn"])
def test_vgg_with_all_pools_is_torchvisions_and_one_convolution(name):
    ours = unsettle(encoder(name, 32))
    theirs = vgg.make_layers(vgg.cfgs["A"], batch_norm=name.endswith("bn")).eval()
    theirs.load_state_dict(ours.network.features.state_dict())
    picture = frames(1, 32)
    with torch.inference_mode():
        *_, last = ours(picture)
        expected = theirs((picture - ours.mean) / ours.std)
        expected = nn.functional.conv2d(expected, *ours.network.added[0].parameters(), padding=1).relu()
    torch.testing.assert_close(last, expected, rtol=1e-4, atol=1e-4)


def test_inception_sees_what_timms_does_away_from_the_edges():
    """Our cell i of the map at half the size is centered on pixel 2i; timm's, without padding, on pixel 2i + 3."""
    with torch.device("meta"):
        start = encoder("inception_v3", 8).network.trunk[:3]
        plain = timm.create_model("inception_v3", features_only=True, out_indices=(0,)).eval()
    unsettle(start.to_empty(device="cpu"))
    for parameter in start.parameters():
        nn.init.normal_(parameter, std=0.2)
    plain.load_state_dict(start.state_dict(), strict=False, assign=True)
    for name in ("Conv2d_1a_3x3", "Conv2d_2a_3x3"):
        assert plain.get_submodule(name).conv.padding == (0, 0)
    picture = frames(1, 64) / 128 - 1
    with torch.inference_mode():
        half = start(picture)
        (theirs,) = plain(picture[:, :, 1:, 1:])  # now centered on pixel 2i + 4
    assert half.shape[-1] == 32
    assert theirs.shape[-1] == 29
    torch.testing.assert_close(half[:, :, 3:-2, 3:-2], theirs[:, :, 1:-1, 1:-1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("stride", "sides"), [(8, [48, 25, 13, 13, 13]), (16, [48, 25, 13, 7, 7])])
def test_inceptions_maps(stride, sides):
    with torch.device("meta"):
        classifier = Classifier(Backbone(name="inception_v3", pretrained=False, output_stride=stride), 2)
        features = classifier(torch.empty(1, 3, 96, 96)).features
        maps = LocalizerNet(classifier, (8, 8, 8, 8, 8))(torch.empty(1, 3, 75, 75)).map_logits
    assert [f.shape[-1] for f in features] == sides
    assert [f.shape[1] for f in features] == classifier.encoder.channels == [64, 80, 288, 768, 1024]
    assert maps.shape == (1, 2, 75, 75)  # odd sizes all the way


def test_strides_move_to_the_1x1_convolution_where_asked():
    ours = encoder("resnet26", 16, args={"channels": [8, 8, 8, 8]}, stride_in_1x1=True)
    other = encoder("resnet26", 16, args={"channels": [8, 8, 8, 8]})
    strides = {n: m.stride for n, m in ours.network.named_modules() if isinstance(m, nn.Conv2d) and m.stride == (2, 2)}
    assert set(strides) == {
        "conv1",
        *(f"layer{stage}.0.{conv}" for stage in (2, 3) for conv in ("conv1", "downsample.0")),
    }
    # the same network with torchvision's recipe for such weights
    for stage in (other.network.layer2, other.network.layer3):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    for found, wanted in zip(ours(frames()), other(frames()), strict=True):
        assert torch.equal(found, wanted)

"""Arguments of a backbone are plain numbers, words and lists; nothing that opens a file reaches timm."""

import pytest
import timm

from colocam.config import Backbone
from colocam.errors import ColocamError
from colocam.models import Encoder


@pytest.mark.parametrize(
    "name",
    [
        "checkpoint_path",
        "pretrained",
        "pretrained_cfg",
        "pretrained_cfg_overlay",
        "pretrained_strict",
        "cache_dir",
        "features_only",
        "feature_cls",
        "num_classes",
        "in_chans",
        "output_stride",
        "scriptable",
        "x" * 300,
    ],
)
def test_other_arguments_never_reach_timm(name, monkeypatch):
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: pytest.fail("timm was called"))
    backbone = Backbone(name="resnet10t", pretrained=False, args={name: "evil.pth"})
    with pytest.raises(ColocamError, match=rf"^backbone\.args must not hold '{name}'"):
        Encoder(backbone)


def refusal(network, argument):
    with pytest.raises(ColocamError) as raised:
        Encoder(Backbone(name=network, pretrained=False, output_stride=32, args={argument: 1}))
    return str(raised.value)


def test_an_error_names_arguments_that_the_network_takes():
    message = refusal("efficientnet_lite0", "checkpoint_path")
    assert "did you mean" not in message
    assert "drop_rate" in message
    timm.create_model("efficientnet_lite0", drop_rate=0.1)
    assert "zero_init_last" not in message
    with pytest.raises(TypeError, match="zero_init_last"):
        timm.create_model("efficientnet_lite0", zero_init_last=True)
    assert "zero_init_last" in refusal("resnet10t", "checkpoint_path")
    assert refusal("resnet10t", "chanels").endswith(": did you mean 'channels'?")


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        10**9,
        -(10**40),
        "../file",
        "a" * 65,
        {"a": 1},
        [1] * 65,
        [[[[1]]]],
    ],
)
def test_values_are_plain(value, monkeypatch):
    monkeypatch.setattr(timm, "create_model", lambda *_, **__: pytest.fail("timm was called"))
    backbone = Backbone(name="resnet10t", pretrained=False, args={"channels": value})
    with pytest.raises(ColocamError, match=r"^backbone\.args\.channels must be a finite number") as raised:
        Encoder(backbone)
    assert "\n" not in str(raised.value)


def test_a_network_from_outside_has_its_own_arguments():
    def outside_resnet(pretrained=False, wide=8, **others):
        return timm.create_model("resnet10t", pretrained=pretrained, channels=[wide] * 4, **others)

    timm.models.register_model(outside_resnet)
    args = {"wide": 16}
    settings = {"pretrained": False, "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "output_stride": 32}
    encoder = Encoder(Backbone(name="outside_resnet", args=args, **settings))
    assert encoder.channels[-1] == 16
    with pytest.raises(ColocamError, match=r"must not hold 'checkpoint_path'"):
        Encoder(Backbone(name="outside_resnet", args={"checkpoint_path": "x"}, **settings))

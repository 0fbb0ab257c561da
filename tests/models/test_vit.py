"""A plain transformer as the backbone: tokens in their places, frames of any size, maps at the frame's resolution."""

import pytest
import torch
from torch import nn

from colocam.config import Backbone, load_config
from colocam.errors import ColocamError
from colocam.models import Classifier, Encoder, LocalizerNet
from colocam.models.model_file import load_model
from colocam.training import train

ARGS = {"depth": 2, "embed_dim": 24, "num_heads": 2}
TINY = Backbone(name="vit_tiny_patch16_224", pretrained=False, args={**ARGS, "patch_size": 8, "img_size": 64})


def frames(count=2, height=64, width=64, seed=0):
    return torch.randint(256, (count, 3, height, width), generator=torch.Generator().manual_seed(seed)).float()


@pytest.fixture
def net():
    torch.manual_seed(0)
    return LocalizerNet(Classifier(TINY, 3), (16, 8, 8)).eval()


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("vit_small_patch16_224.dino", 1),
        ("vit_small_patch14_dinov2", 1),
        ("vit_small_patch14_reg4_dinov2", 5),
        ("vit_small_patch16_dinov3", 5),
        ("deit_tiny_distilled_patch16_224", 2),
        ("vit_medium_patch16_gap_240", 0),
        ("vit_base_patch16_siglip_224", 0),
    ],
)
def test_features_are_the_normed_patch_tokens(name, prefix):
    torch.manual_seed(0)
    encoder = Encoder(Backbone(name=name, pretrained=False, args=ARGS)).eval()
    vit = encoder.network.vit
    patch = vit.patch_embed.patch_size[0]
    picture = frames(1, 4 * patch, 5 * patch)
    [features] = encoder(picture)
    assert features.shape == (1, 24, 4, 5)
    assert encoder.channels == [24]
    normalized = (picture - encoder.mean) / encoder.std
    tokens = vit.forward_features(normalized)[:, prefix:]
    assert torch.equal(features.flatten(2), tokens.transpose(1, 2))
    # layer norm with its first parameters: each token has mean 0 and deviation 1 over its channels
    torch.testing.assert_close(features.mean(1), torch.zeros(1, 4, 5), atol=1e-5, rtol=0)
    torch.testing.assert_close(features.std(1, correction=0), torch.ones(1, 4, 5), atol=1e-3, rtol=0)


@pytest.mark.parametrize("blocks", [1, 3, 4, 6])
def test_maps_and_logits_of_frames_of_two_sizes(blocks):
    net = LocalizerNet(Classifier(TINY, 3), (8,) * blocks).eval()
    for height, width in ((64, 64), (32, 48)):
        out = net(frames(2, height, width))
        assert out.map_logits.shape == (2, 2, height, width)
        assert torch.equal(out.class_logits, net.classifier(frames(2, height, width)).logits)


def test_a_token_lights_up_its_own_patch(net):
    """With symmetric kernels, what one token changes in the maps is centered on the middle of its patch."""
    for module in net.decoder.modules():
        if isinstance(module, nn.Conv2d):
            module.weight.data += module.weight.data.flip(2)
            module.weight.data += module.weight.data.flip(3)
    tokens = torch.zeros(1, 24, 8, 8)
    tokens[:, :, 3, 4] = torch.rand(24, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        maps = net.decoder(frames(1), [tokens]) - net.decoder(frames(1), [torch.zeros_like(tokens)])
    change, places = maps.square().sum((0, 1)), torch.arange(64.0)
    assert float(change.sum(1) @ places / change.sum()) == pytest.approx(3 * 8 + 3.5, abs=0.01)
    assert float(change.sum(0) @ places / change.sum()) == pytest.approx(4 * 8 + 3.5, abs=0.01)


def test_frames_that_do_not_divide_into_patches(net):
    with pytest.raises(
        ColocamError, match=r"60×64 pixels do not divide into patches of 8×8: set frames\.crop to a mul"
    ):
        net(frames(1, 64, 60))


def test_both_stages_train_on_a_transformer(tmp_path, tiny, collection, frame_cache):
    settings = [setting for setting in tiny if not setting.startswith(("backbone", "localizer.decoder"))]
    config = load_config(
        overrides=[
            *settings,
            "backbone.name=vit_tiny_patch16_224",
            "backbone.args={depth: 2, embed_dim: 12, num_heads: 2, patch_size: 8}",
            "localizer.decoder=[8, 8, 8]",
            "classifier.epochs=1",
            "localizer.epochs=1",
        ]
    )
    run = train(collection.manifest, tmp_path / "run", config, frames=frame_cache)
    model = load_model(run)
    assert model.card.backbone.name == "vit_tiny_patch16_224"
    torch.manual_seed(config.seed)
    untrained = LocalizerNet(Classifier(model.card.backbone, 3), (8, 8, 8)).state_dict()
    trained = model.net.state_dict()
    assert not torch.equal(trained["decoder.head.weight"], untrained["decoder.head.weight"])
    maps = model.net(frames(1, 32, 32)).map_logits
    assert maps.shape == (1, 2, 32, 32)
    assert maps.isfinite().all()

"""Softmax-GradCAM against hooks on the whole network, and where CLIP is certain."""

import copy

import pytest
import torch
import torch.nn.functional as F

from colocam.cams.clip import TEMPLATE, fill, softmax_gradcam

CLASSES = torch.tensor([0, 1, 2, 0, 1])


@pytest.fixture(scope="module")
def texts(encoder, tags):
    return encoder.texts(fill(TEMPLATE, [*tags, "sky", "tree"]))


def last_block(encoder, activations, class_token, texts):
    """Probabilities (…, T) from the activations (…, 1+N, C) before the last attention; float64, from the weights."""
    state = {name: value.double() for name, value in encoder.model.state_dict().items()}
    number = encoder.model.config.vision_config.num_hidden_layers - 1
    heads = encoder.model.config.vision_config.num_attention_heads

    def linear(name, x):
        return F.linear(x, state[f"{name}.weight"], state.get(f"{name}.bias"))

    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"])

    block = f"vision_model.encoder.layers.{number}"
    query, key, value = (
        linear(f"{block}.self_attn.{part}_proj", activations).unflatten(-1, (heads, -1)).transpose(-2, -3)
        for part in "qkv"
    )
    weights = (query[..., :1, :] @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    token = class_token + linear(f"{block}.self_attn.out_proj", (weights @ value)[..., 0, :].flatten(-2))
    hidden = linear(f"{block}.mlp.fc1", norm(f"{block}.layer_norm2", token))
    token = token + linear(f"{block}.mlp.fc2", hidden * torch.sigmoid(1.702 * hidden))
    frame = linear("visual_projection", norm("vision_model.post_layernorm", token))
    return (encoder.scale * F.normalize(frame, dim=-1) @ F.normalize(texts.double(), dim=1).T).softmax(-1)


def by_hooks(encoder, frames, texts, classes):
    """The same by one backward pass per frame through the whole network, with hooks on its last layer_norm1."""
    maps = []
    vision = encoder.model.vision_model
    for frame, chosen in zip(frames, classes, strict=True):
        kept = {}

        def keep(_module, _inputs, output, kept=kept):
            kept["A"] = output.requires_grad_()

        handle = vision.encoder.layers[-1].layer_norm1.register_forward_hook(keep)
        pixels, grid = encoder._pixels(frame[None])
        features = encoder.model.get_image_features(pixels, interpolate_pos_encoding=True).pooler_output
        handle.remove()
        probability = (encoder.scale * F.normalize(features, dim=1) @ texts.T).softmax(1)[0, chosen]
        (gradient,) = torch.autograd.grad(probability, kept["A"])
        maps.append((kept["A"][0, 1:] @ gradient[0, 1:].mean(0)).clamp(min=0).detach().view(grid))
    return torch.stack(maps)


@pytest.mark.parametrize("size", [(32, 32), (40, 24), (27, 45)])
def test_against_hooks_frame_by_frame(encoder, texts, size):
    frames = torch.randint(256, (4, 3, *size), generator=torch.Generator().manual_seed(2)).float()
    expected = by_hooks(encoder, frames, texts, CLASSES[:4])
    found = softmax_gradcam(encoder, encoder.view(frames), texts, CLASSES[None, :4])[0]
    scale = expected.amax((1, 2), keepdim=True).clamp(min=1e-12)
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=2e-4)
    assert float(expected.max()) > 0


def test_certainty_does_not_round_the_direction_away(encoder, frames, texts):
    sure = copy.copy(encoder)
    sure.scale = 10 * encoder.scale
    view = sure.view(frames)
    activations, token = view.activations.double().requires_grad_(), view.class_token.double()
    probabilities = last_block(sure, activations, token, texts)
    best, classes = probabilities.max(1)
    certain = best.float() == 1
    assert certain.sum() >= 2

    others = 1 - F.one_hot(classes, texts.shape[0])
    gradient = -torch.autograd.grad((probabilities * others).sum(), activations)[0][:, 1:].mean(1)
    expected = torch.einsum("bnc,bc->bn", activations[:, 1:], gradient).clamp(min=0).view(5, 4, 4).detach()
    found = softmax_gradcam(sure, view, texts, classes[None])[0].double()
    assert (found[certain].amax((1, 2)) > 0).any()
    scale = expected.amax((1, 2), keepdim=True).clamp(min=1e-300)
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=1e-3)

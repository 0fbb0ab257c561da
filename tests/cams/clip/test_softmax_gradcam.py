"""Softmax-GradCAM against hooks on the whole network, and where CLIP is certain."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colocam.cams.clip import TEMPLATE, fill, log_odds, softmax_gradcam

CLASSES = torch.tensor([0, 1, 2, 0, 1])


@pytest.fixture(scope="module")
def texts(encoder, tags):
    return encoder.texts(fill(TEMPLATE, [*tags, "sky", "tree"]))


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


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(np.float64, (3, 4), elements=st.floats(-15, 15)), st.integers(0, 3))
def test_log_odds_are_those_of_the_softmax_also_where_it_is_certain(values, chosen):
    logits = torch.from_numpy(values)
    probabilities = logits.softmax(1)
    others = probabilities[:, [number for number in range(4) if number != chosen]].sum(1)
    expected = (probabilities[:, chosen] / others).log()
    torch.testing.assert_close(log_odds(logits, torch.full((3,), chosen)), expected, rtol=1e-9, atol=1e-9)
    sure = torch.tensor([[200.0, 0, 0, 0]])  # the probability rounds to 1
    assert log_odds(sure, torch.tensor([0])).item() == pytest.approx(200 - np.log(3))

"""The class is read from features that are weighted by the map."""

import numpy as np
import pytest
import torch

from colocam.config import load_config
from colocam.models import LocalizerNet, make_classifier


@pytest.fixture
def nets(tiny):
    """The same network, which reads the class in whole frames and in the map."""
    config = load_config(overrides=[*tiny, "classifier.fit=logistic"])
    torch.manual_seed(3)
    classifier = make_classifier(config, config.backbone, 3)
    with torch.no_grad():
        classifier.head.weight.mul_(100)  # so that the logits of the two differ
    plain = LocalizerNet(classifier, config.localizer.decoder).eval()
    in_map = LocalizerNet(classifier, config.localizer.decoder, class_in_map=True).eval()
    in_map.load_state_dict(plain.state_dict())
    return plain, in_map


@torch.inference_mode()
def test_the_features_are_weighted_by_the_map(nets):
    plain, in_map = nets
    frames = torch.randint(0, 256, (2, 3, 32, 32), generator=torch.Generator().manual_seed(1)).float()
    seen, before = in_map(frames), plain(frames)
    assert torch.equal(seen.map_logits, before.map_logits)
    last = plain.classifier.encoder(frames)[-1].double().numpy()
    head = plain.classifier.head
    for row in range(2):
        background, foreground = seen.map_logits[row].double().numpy()
        maps = 1 / (1 + np.exp(background - foreground))
        side = last.shape[-1]
        cells = maps.reshape(side, len(maps) // side, side, -1).mean((1, 3))
        pooled = np.einsum("chw,hw->c", last[row], cells)
        pooled /= np.linalg.norm(pooled)
        expected = head.weight.double().numpy() @ pooled + head.bias.double().numpy()
        np.testing.assert_allclose(seen.class_logits[row].numpy(), expected, atol=1e-3)
    assert not torch.equal(seen.class_logits, before.class_logits)
    torch.testing.assert_close(in_map.classifier.head(in_map.class_features(frames)), seen.class_logits)
    torch.testing.assert_close(plain.classifier.head(plain.class_features(frames)), before.class_logits)

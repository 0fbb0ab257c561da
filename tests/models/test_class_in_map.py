"""The class is read from features that are weighted by the map, in PyTorch and in an ONNX file."""

import json

import numpy as np
import pytest
import torch

from colocam.inference.network import open_onnx
from colocam.integrations.onnx_export import export_onnx
from colocam.models import LocalizerNet
from colocam.models.model_file import load_model
from tests.helpers.lessons import read_class_in_map


@pytest.fixture
def in_map(own_run):
    """A run whose model reads the class in maps with a peak."""
    read_class_in_map(own_run)
    return own_run


@pytest.fixture
def large(own_run):
    """The same, the more, the larger the object."""
    read_class_in_map(own_run, "large")
    return own_run


@pytest.fixture
def frames(own_run):
    """(6, S, S, 3): noise, of which each frame is brighter in another place."""
    side = load_model(own_run).card.size
    made = np.random.default_rng(0).integers(0, 256, (6, side, side, 3))
    for index in range(6):
        row, column = divmod(index, 3)
        made[index, row * side // 2 :, column * side // 3 :] += 100
    return made.clip(0, 255).astype(np.uint8)


def expected_logits(net, frames):
    """(N, K) by numpy, from the features and maps of the network, and the cells' weights (N, h, w)."""
    classifier = net.classifier
    with torch.inference_mode():
        pictures = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
        features = classifier.encoder(pictures)
        last = features[-1].double().numpy()
        background, foreground = net.decode(pictures, features).double().numpy().transpose(1, 0, 2, 3)
    maps = 1 / (1 + np.exp(background - foreground))
    side = last.shape[-1]
    step = maps.shape[-1] // side
    cells = maps.reshape(len(maps), side, step, side, step).mean((2, 4))
    norm = (lambda x: x / np.linalg.norm(x, axis=1, keepdims=True)) if classifier.normalize else np.asarray
    pooled = norm(np.einsum("nchw,nhw->nc", last, cells) / cells.sum((1, 2))[:, None])
    if net.class_in_map == "large":
        columns, rows = (np.array([one.max(axis).mean() for one in maps])[:, None] for axis in (0, 1))
        larger = np.where(columns > rows, columns, rows)
        pooled = norm(larger * pooled + (1 - larger) * norm(last.mean((2, 3))))
    head = classifier.head
    return pooled @ head.weight.double().numpy().T + head.bias.double().numpy(), cells


def answers(net, frames):
    with torch.inference_mode():
        return net(torch.from_numpy(frames).permute(0, 3, 1, 2))


@pytest.mark.parametrize("normalize", [False, True])
def test_the_features_are_weighted_by_the_map(in_map, frames, normalize):
    net = load_model(in_map).net
    net.classifier.normalize = normalize
    expected, cells = expected_logits(net, frames)
    assert min(np.ptp(one) for one in cells) > 0.5  # every map has a peak
    seen = answers(net, frames)
    np.testing.assert_allclose(seen.class_logits, expected, atol=1e-4)
    pictures = torch.from_numpy(frames).permute(0, 3, 1, 2)
    with torch.inference_mode():
        head_input = net.class_features(pictures)
        whole = net.classifier.logits(pictures)
        torch.testing.assert_close(net.classifier.head(head_input), seen.class_logits)
    assert (whole - seen.class_logits).abs().amax(1).min() > 1e-3  # what whole frames would say


@pytest.mark.parametrize("normalize", [False, True])
def test_the_whole_frame_counts_less_the_larger_the_object_is(large, frames, normalize):
    net = load_model(large).net
    net.classifier.normalize = normalize
    expected, _ = expected_logits(net, frames)
    np.testing.assert_allclose(answers(net, frames).class_logits, expected, atol=1e-4)
    net.class_in_map = True
    in_map, _ = expected_logits(net, frames)
    with torch.inference_mode():
        whole = net.classifier.logits(torch.from_numpy(frames).permute(0, 3, 1, 2)).numpy()
    for other in (in_map, whole):
        assert np.abs(other - expected).max() > 1e-3


def test_maps_and_presence_stay_as_they_are(in_map, frames):
    model = load_model(in_map)
    net = model.net
    card = model.card
    plain = LocalizerNet(net.classifier, card.decoder, map_size=card.map_size).eval()
    plain.load_state_dict(net.state_dict())
    seen, before = answers(net, frames), answers(plain, frames)
    for name in ("map_logits", "peaks", "activations"):
        assert torch.equal(getattr(seen, name), getattr(before, name)), name
    with torch.inference_mode():
        pictures = torch.from_numpy(frames).permute(0, 3, 1, 2)
        torch.testing.assert_close(plain.classifier.head(plain.class_features(pictures)), before.class_logits)


def test_a_class_that_is_read_at_another_size(in_map, frames):
    """The map weights the features of the smaller frames."""
    net = load_model(in_map).net
    net.classifier.size = frames.shape[1] // 2
    with torch.inference_mode():
        pictures = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
        small = torch.nn.functional.avg_pool2d(pictures, 2)
        last = net.classifier.encoder(small)[-1]
        maps = answers(net, frames).map_logits.softmax(1)[:, 1]
        step = maps.shape[-1] // last.shape[-1]
        weights = torch.nn.functional.avg_pool2d(maps[:, None], step)
        pooled = (last * weights).sum((2, 3)) / weights.sum((2, 3))
        expected = net.classifier.head(pooled)
        torch.testing.assert_close(answers(net, frames).class_logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("how", [True, "large"])
def test_an_onnx_file_names_the_same_classes(own_run, how, frames, tmp_path):
    """Its logits are those of numpy; what runs the file needs no PyTorch (tests/test_without_torch.py)."""
    read_class_in_map(own_run, how)
    network, card = open_onnx(export_onnx(own_run, tmp_path / "model.onnx"))
    assert card.class_in_map == how
    expected, _ = expected_logits(load_model(own_run).net, frames)
    for count in (1, 6):
        output = network.submit([frames[:count]], np.zeros((count, 2), np.int64)).result()
        np.testing.assert_allclose(output.logits, expected[:count], atol=1e-4)


def test_a_card_of_before_reads_the_class_in_whole_frames(own_run):
    path = own_run / "model.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    del stored["class_in_map"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    model = load_model(own_run)
    assert not model.card.class_in_map
    assert not model.net.class_in_map

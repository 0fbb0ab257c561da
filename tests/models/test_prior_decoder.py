"""A prior decoder weighs maps as the formula says, in PyTorch, when folded, in a model file and in an ONNX file."""

import json

import numpy as np
import pytest
import torch

from colocam.config.card import read_card
from colocam.errors import ColocamError
from colocam.inference.network import open_onnx
from colocam.inference.torch_network import TorchNetwork
from colocam.integrations.onnx_export import export_onnx
from colocam.models import LocalizerNet, foreground
from colocam.models.model_file import Model, load_model, save_model
from colocam.models.prior_decoder import weighed
from tests.helpers.lessons import peak_maps

SIDE = 24


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def weighed_by_hand(maps, seen):
    """(S s)^0.7, scaled to the maximum of S, where both correlate by 0.3 or more: frame by frame, in float64."""
    expected = []
    for one, prior in zip(maps.astype(np.float64), seen.astype(np.float64), strict=True):
        product = (one * prior) ** 0.7
        varies = one.std() > 0 and prior.std() > 0
        agrees = varies and np.corrcoef(one.ravel(), prior.ravel())[0, 1] >= 0.3
        expected.append(product * one.max() / product.max() if agrees else one)
    return np.stack(expected)


def blob(row, column):
    """Log-odds of a map with its peak at a place."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    return 4 - ((rows - row) ** 2 + (columns - column) ** 2) / 12.0


@pytest.mark.parametrize("channels", [1, 2])
def test_maps_are_weighed_where_both_agree(channels):
    maps = np.stack([blob(8, 8), blob(8, 8), blob(12, 12), np.full((SIDE, SIDE), 0.3)])
    seen = np.stack([blob(9, 11), blob(20, 20), np.full((SIDE, SIDE), -1.0), blob(8, 8)])
    expected = weighed_by_hand(sigmoid(maps), sigmoid(seen))
    changed = [not np.allclose(one, other) for one, other in zip(expected, sigmoid(maps), strict=True)]
    assert changed == [True, False, False, False]  # agrees, sees something else, sees nothing, no map

    def logits(one):
        difference = torch.from_numpy(one)[:, None].float()
        background = torch.randn(difference.shape, generator=torch.Generator().manual_seed(0))
        return difference if channels == 1 else torch.cat([background, difference + background], 1)

    result = foreground(weighed(logits(maps), logits(seen))).numpy()
    np.testing.assert_allclose(result, expected, atol=2e-4)


def test_a_map_that_is_certain_gives_no_infinite_logits():
    certain = torch.full((1, 1, SIDE, SIDE), -60.0)
    certain[:, :, :9, :9] = 60.0
    assert weighed(certain, certain).isfinite().all()


@pytest.fixture
def weighed_run(own_run):
    """A run whose model has a prior decoder that agrees with its decoder in some frames."""
    model = load_model(own_run)
    card = model.card
    channels = tuple(width // 2 for width in card.decoder)
    torch.manual_seed(1)
    net = LocalizerNet(model.net.classifier, card.decoder, map_size=card.map_size, prior=channels).eval()
    net.decoder.load_state_dict(model.net.decoder.state_dict())
    decoder, net.prior, prior = net.decoder, None, net.prior
    peak_maps(net, card.size)
    net.decoder = prior
    peak_maps(net, card.size)
    net.decoder, net.prior = decoder, prior
    save_model(own_run, Model(net, card.model_copy(update={"prior_decoder": channels})))
    return own_run


@pytest.fixture
def frames(weighed_run):
    side = load_model(weighed_run).card.size
    made = np.random.default_rng(0).integers(0, 256, (6, side, side, 3))
    made[:, side // 3 :, side // 4 :] //= 3
    return made.astype(np.uint8)


def maps_by_hand(net, frames):
    """The maps of both decoders by themselves, weighed in float64."""
    with torch.inference_mode():
        pictures = torch.from_numpy(frames).permute(0, 3, 1, 2).float()
        features = net.classifier.encoder(pictures)
        step = 1 if net.map_size is None else pictures.shape[-1] // net.map_size
        small = pictures[:, :, ::step, ::step]
        maps, seen = (foreground(decoder(small, features)).numpy() for decoder in (net.decoder, net.prior))
    return weighed_by_hand(maps, seen)


def test_a_model_file_keeps_the_prior_decoder(weighed_run, frames):
    net = load_model(weighed_run).net
    with torch.inference_mode():
        found = foreground(net(torch.from_numpy(frames).permute(0, 3, 1, 2)).map_logits).numpy()
    np.testing.assert_allclose(found, maps_by_hand(net, frames), atol=1e-3)
    assert not net.train().prior.training  # its batch norms are frozen, too


def test_the_network_of_a_run_folder_and_an_onnx_file_weigh_alike(weighed_run, frames, tmp_path):
    expected = maps_by_hand(load_model(weighed_run).net, frames)
    ids = np.zeros((len(frames), 2), np.int64)
    model = load_model(weighed_run)
    ours = TorchNetwork(model.net, torch.device("cpu"), size=model.card.size).submit([frames], ids).result()
    network, card = open_onnx(export_onnx(weighed_run, tmp_path / "model.onnx"))
    assert card.prior_decoder == model.card.prior_decoder
    for output in (ours, network.submit([frames], ids).result()):
        np.testing.assert_allclose(np.asarray(output.maps), expected, atol=1e-3)


def test_a_card_that_fits_other_weights_is_refused(weighed_run):
    card = json.loads((weighed_run / "model.json").read_text())
    (weighed_run / "model.json").write_text(json.dumps(card | {"prior_decoder": None}))
    with pytest.raises(ColocamError, match=r"does not fit .*'prior\."):
        load_model(weighed_run)


def test_a_card_of_before_has_none(own_run):
    card = json.loads((own_run / "model.json").read_text())
    del card["prior_decoder"]
    (own_run / "model.json").write_text(json.dumps(card))
    assert read_card(own_run).prior_decoder is None


def test_the_decoder_can_be_asked_by_itself(weighed_run, frames):
    net = load_model(weighed_run).net
    pictures = torch.from_numpy(frames).permute(0, 3, 1, 2)
    with torch.inference_mode():
        before = net(pictures).map_logits
        with net.unweighed():
            alone = net(pictures).map_logits
        features = net.classifier.encoder(pictures)
        step = pictures.shape[-1] // (net.map_size or pictures.shape[-1])
        torch.testing.assert_close(alone, net.decoder(pictures[:, :, ::step, ::step], features))
        assert torch.equal(net(pictures).map_logits, before)

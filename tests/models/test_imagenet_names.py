"""Tags are matched to ImageNet's classes, and their probabilities refine the head's as the formula says."""

from pathlib import Path

import numpy as np
import pytest
import timm.data
import torch

from colocam.errors import ColocamError
from colocam.inference.network import open_onnx
from colocam.inference.torch_network import TorchNetwork
from colocam.integrations.onnx_export import export_onnx
from colocam.models import LocalizerNet
from colocam.models.imagenet_names import CLASSES, NAMES, ImagenetNames, named_classes, tells_apart
from colocam.models.localizer_net import foreground
from colocam.models.model_file import Model, load_model, save_model
from colocam.training.learning.heads import grown_model

OTHER_THINGS = {
    "custard apple", "punching ball", "punchball", "koala bear", "kangaroo bear", "native bear", "cat bear", "bear cat",
    "panda bear", "coon bear", "teddy bear", "day bed", "freight car", "passenger car", "tow car", "trolley car",
    "madagascar cat", "prairie chicken", "measuring cup", "hyena dog", "african hunting dog", "cape hunting dog",
    "hot dog", "lacewing fly",
    "river horse", "sea lion", "mountain lion", "guinea pig", "plane", "carpenter's plane", "woodworking plane",
    "sea wolf", "prairie wolf", "brush wolf",
}  # fmt: skip
"""What ends in the name of something else."""


def test_the_table_agrees_with_the_names_that_timm_lists():
    """A class one of whose names is, or ends in, a name of the table belongs to it: a green snake is a snake."""
    folder = Path(timm.data.__file__).parent / "_info"
    lemmas = dict(line.split("\t") for line in (folder / "imagenet_synset_to_lemma.txt").read_text().splitlines())
    synsets = (folder / "imagenet_synsets.txt").read_text().split()
    assert len(synsets) == CLASSES
    for name, classes in NAMES.items():
        assert len(set(classes)) == len(classes)
        named = {
            one
            for one, synset in enumerate(synsets)
            for word in lemmas[synset].casefold().split(", ")
            if (word == name or word.endswith(f" {name}")) and word not in OTHER_THINGS
        }
        assert named <= set(classes), name


def test_tags_have_many_spellings_and_the_narrower_one_counts():
    assert len(named_classes(["bird"])[0]) == 59
    assert len(named_classes(["dog"])[0]) == 118
    assert named_classes(["Fire_Engines", "aeroplane", "TV"]) == named_classes(["fire truck", "plane", "television"])
    birds, owl = named_classes(["birds", "owl"])
    assert owl == (24,)
    assert len(birds) == 58
    assert named_classes(["mouse", "Heffalump", ""]) == [(), (), ()]
    assert tells_apart(["cat", "dog", "Heffalump"])
    assert not tells_apart(["cat", "Heffalump"])


TAGS = ("cat", "heffalump", "owl", "bird")


@pytest.fixture(params=[5, 7])
def names(request):
    """With a convolution before the classes, and without."""
    torch.manual_seed(0)
    made = ImagenetNames(5, request.param, TAGS)
    made.scale.fill_(0.8)
    made.shift.copy_(torch.tensor([0.3, 9.0, -0.2, 0.1]))
    return made


@pytest.fixture
def read():
    """Logits, a feature map, and weights of its cells."""
    rng = torch.Generator().manual_seed(1)
    last, weights = torch.randn(3, 5, 2, 2, generator=rng), torch.rand(3, 1, 2, 2, generator=rng)
    return torch.randn(3, 4, generator=rng), last, weights / weights.sum((2, 3), keepdim=True)


def by_hand(names, logits, last, weights):
    """Frame by frame, in float64."""
    result = []
    for given, features, weight in zip(*(one.double().numpy() for one in (logits, last, weights)), strict=True):
        cells, own = features, np.exp(given) / np.exp(given).sum()
        if names.conv is not None:
            kernel, bias = names.conv.weight[:, :, 0, 0].double().numpy(), names.conv.bias.double().numpy()
            cells = np.clip(np.einsum("oc,chw->ohw", kernel, features) + bias[:, None, None], 0, 6)
        scores = names.classes.weight.double().numpy() @ (cells * weight).sum((1, 2)) + names.classes.bias.numpy()
        meant = named_classes(TAGS)
        powers = np.exp(scores)
        every = sum(powers[list(classes)].sum() for classes in meant)
        mixed = np.zeros(4)
        for tag, classes in enumerate(meant):
            if classes:
                told = 0.8 * np.log(powers[list(classes)].sum() / every + 1e-4) + float(names.shift[tag])
                mixed[tag] = np.sqrt(own[tag]) * np.exp(told / 2)
        mixed *= (1 - own[1]) / mixed.sum()
        mixed[1] = own[1]
        result.append(mixed)
    return np.stack(result)


def test_the_named_share_their_probability_by_what_imagenet_knows(names, read):
    found = names(*read).softmax(1).numpy()
    np.testing.assert_allclose(found, by_hand(names, *read), atol=1e-5)
    assert np.abs(found - read[0].softmax(1).numpy()).max() > 0.05
    names.forget_others()
    assert names.classes.out_features == 5 + 59
    np.testing.assert_allclose(names(*read).softmax(1).numpy(), found, atol=1e-6)


@pytest.fixture
def named_run(own_run):
    """A run whose model asks the names of ImageNet's classes, in the map."""
    torch.manual_seed(0)
    model = load_model(own_run)
    card, classifier = model.card, model.net.classifier
    made = ImagenetNames(classifier.encoder.channels[-1], 9, ("cat", "dog", "bird"))
    made.shift.copy_(torch.tensor([1.0, 0.0, -1.0]))
    net = LocalizerNet(classifier, card.decoder, map_size=card.map_size, class_in_map="large", names=made).eval()
    net.decoder.load_state_dict(model.net.decoder.state_dict())
    changed = {"tags": ("cat", "dog", "bird"), "imagenet": 9, "class_in_map": "large"}
    save_model(own_run, Model(net, card.model_copy(update=changed)))
    return own_run


def test_a_run_folder_and_an_onnx_file_ask_the_names_alike(named_run, tmp_path):
    model = load_model(named_run)
    side = model.card.size
    frames = np.random.default_rng(0).integers(0, 256, (5, side, side, 3)).astype(np.uint8)
    pictures = torch.from_numpy(frames).permute(0, 3, 1, 2)
    with torch.inference_mode():
        expected = model.net(pictures).class_logits
        names, model.net.names = model.net.names, None
        own = model.net(pictures).class_logits
        model.net.names = names
        features = model.net.classifier.encoder(pictures)
        maps = foreground(model.net.decode(pictures, features)).numpy()
        side = torch.tensor([max(one.max(0).mean(), one.max(1).mean()) for one in maps])[:, None, None, None]
        small = torch.nn.functional.adaptive_avg_pool2d(torch.from_numpy(maps)[:, None], features[-1].shape[-1])
        cells = small.shape[-1] ** 2
        weights = side * small / small.sum((2, 3), keepdim=True) + (1 - side) / cells
        torch.testing.assert_close(names(own, features[-1], weights), expected)
    assert (expected.softmax(1) - own.softmax(1)).abs().max() > 0.01
    ids = np.zeros((len(frames), 2), np.int64)
    ours = TorchNetwork(model.net, torch.device("cpu"), size=model.card.size).submit([frames], ids).result()
    network, card = open_onnx(export_onnx(named_run, tmp_path / "model.onnx"))
    assert card.imagenet == 9
    for output in (ours, network.submit([frames], ids).result()):
        probabilities = torch.from_numpy(np.asarray(output.logits)).softmax(1)
        torch.testing.assert_close(probabilities, expected.softmax(1), atol=1e-3, rtol=0)


def test_a_class_that_is_added_changes_nothing_before_it_is_learned(named_run):
    model = load_model(named_run)
    side = model.card.size
    frames = torch.randint(0, 256, (4, 3, side, side), generator=torch.Generator().manual_seed(0)).float()
    with torch.inference_mode():
        before = model.net(frames).class_logits.softmax(1)
        for new in ("heffalump", "horse"):
            after = grown_model(model, (*model.card.tags, new)).net(frames).class_logits.softmax(1)
            torch.testing.assert_close(after[:, :3], before, atol=1e-5, rtol=0)
            assert after[:, 3].max() < 1e-6


def test_names_and_crops_exclude_each_other(named_run):
    path = named_run / "model.json"
    path.write_text(path.read_text().replace('"crop_head": false', '"crop_head": true'))
    with pytest.raises(ColocamError, match="imagenet and crop_head exclude each other"):
        load_model(named_run)

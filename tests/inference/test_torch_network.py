"""The network as it is run after training: folded, in batches, on either device, it says what it said before."""

import copy
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from colocam.config import load_config
from colocam.inference import torch_network
from colocam.inference.network import OutputShape, PostProcessing
from colocam.inference.passes import GROUP, Passes
from colocam.inference.remote import RemoteNetwork, ServedWorker
from colocam.inference.torch_network import TorchNetwork, rows_of
from colocam.maps.foreground import array_foreground_of
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.models.folding import ConvReLU, fold_batch_norms, fuse_relus
from colocam.models.localizer_net import crop_boxes
from tests.helpers.batch_norms import unsettle
from tests.helpers.one_buffer import OneBuffer
from tests.helpers.one_pass import ids_of, one_pass

CPU = torch.device("cpu")
SIDE = 64


@pytest.fixture(scope="module")
def network(tiny):
    """``network(size=…, …)``: a small one, as if it were trained; the class may be read at another size."""

    def build(size=None, **reading):
        torch.manual_seed(0)
        config = load_config("demo", overrides=tiny)
        classifier = Classifier(config.backbone, 3, size=size, normalize=size is not None)
        return unsettle(LocalizerNet(classifier, config.localizer.decoder, **reading))

    return build


@pytest.fixture(scope="module")
def small(network):
    return network()


def count(kind, net):
    return sum(isinstance(module, kind) for module in net.modules())


@pytest.mark.parametrize(
    ("backbone", "size", "norms", "relus"),
    [
        ("resnet18", 16, 0, 0),
        ("resnet26", None, 0, 0),
        ("ecaresnet26t", None, 0, None),
        ("vgg11_bn", None, 0, 0),
        ("mobilenetv3_small_100", None, None, None),  # its norms hold their activation
    ],
)
def test_folded_norms_and_fused_convolutions_change_nothing(backbone, size, norms, relus):
    blocks = "[8, 8, 8]" if backbone == "vgg11_bn" else "[16, 8, 8, 8, 4]"
    own = [f"backbone.name={backbone}", f"localizer.decoder={blocks}", "frames.resize=40", "frames.crop=32"]
    config = load_config("demo", overrides=["backbone.pretrained=false", *own])
    torch.manual_seed(0)
    net = unsettle(LocalizerNet(Classifier(config.backbone, 3, size=size), config.localizer.decoder))
    frames = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    folded = fold_batch_norms(copy.deepcopy(net), frames[:1])
    fused = copy.deepcopy(folded)
    fuse_relus(fused, frames[:1])
    assert count(ConvReLU, fused) > 4
    assert count(nn.BatchNorm2d, folded) < count(nn.BatchNorm2d, net)
    assert norms is None or count(nn.BatchNorm2d, folded) == norms
    assert relus is None or count(nn.ReLU, fused) == relus
    with torch.no_grad():
        for one, two, three in zip(net(frames), folded(frames), fused(frames), strict=True):
            torch.testing.assert_close(two, three, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-4)


class Odd(nn.Module):
    """Convolutions that feed two norms or, however often, the same one; norms after an activation or of two names."""

    def __init__(self):
        super().__init__()
        self.twice, self.once, self.same = (nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))
        self.first, self.second, self.third, self.last, self.own = (nn.BatchNorm2d(3) for _ in range(5))
        self.pair = nn.Sequential(self.same, self.own)

    def forward(self, x):
        x = self.second(self.twice(self.first(self.twice(x))))
        x = self.last(torch.relu(self.third(self.once(x))))
        return self.own(self.same(x)) + self.pair(x[..., ::2, ::2]).mean()


def test_a_norm_is_folded_where_its_convolution_feeds_it_alone():
    net, x = unsettle(Odd()), torch.rand(2, 3, 8, 8)
    folded = fold_batch_norms(copy.deepcopy(net), x)
    left = [name for name, module in folded.named_modules() if isinstance(module, nn.BatchNorm2d)]
    assert left == ["first", "second", "last"]
    with torch.no_grad():
        torch.testing.assert_close(folded(x), net(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("images", [1, 5])
@pytest.mark.parametrize(
    ("size", "reading"),
    [(None, {}), (SIDE // 2, {}), (SIDE // 2, {"crop_head": True}), (None, {"class_in_map": True})],
    ids=["the usual", "the class at another size", "with a head for crops", "the class in the map"],
)
def test_answers_are_those_of_the_trained_network(network, size, reading, images):
    net = network(size, **reading)
    pictures = np.random.default_rng(0).integers(0, 256, (images, SIDE, SIDE, 3)).astype(np.uint8)
    folded = TorchNetwork(copy.deepcopy(net), CPU, size=SIDE)
    assert count(nn.BatchNorm2d, folded.net) == 0
    logits, maps, peaks, activations, frames, ids = one_pass(folded, pictures)
    np.testing.assert_array_equal(ids, ids_of(pictures))
    with torch.no_grad():
        seen = net(torch.from_numpy(pictures).permute(0, 3, 1, 2))
    np.testing.assert_allclose(logits, seen.class_logits.numpy(), atol=1e-4)
    np.testing.assert_allclose(maps, foreground(seen.map_logits).numpy(), atol=1e-5)
    np.testing.assert_allclose(peaks, seen.peaks.numpy(), atol=1e-4)
    rounded = 1e-7 if size is None else 1e-4
    np.testing.assert_allclose(activations, seen.activations.numpy(), rtol=rounded, atol=1e-4)
    np.testing.assert_array_equal(frames.permute(0, 2, 3, 1).numpy(), pictures)
    assert {logits.dtype, maps.dtype, peaks.dtype, activations.dtype} == {torch.float32}


def test_nobody_elses_threads_change(small):
    """Networks side by side share torch's threads; what others have, in this thread and in new ones, stays."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        run = TorchNetwork(copy.deepcopy(small), CPU, size=SIDE)
        one_pass(run, np.zeros((2, SIDE, SIDE, 3), np.uint8))
        assert torch.get_num_threads() == 3
        with ThreadPoolExecutor(1) as new:
            assert new.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def recorded(small, monkeypatch):
    """A network that works as on a GPU: one recorded pass, whose buffers all threads share."""
    monkeypatch.setattr(torch_network, "Recorded", OneBuffer)
    monkeypatch.setattr(torch_network, "mark_end", lambda _: SimpleNamespace(synchronize=lambda: None))
    return as_on_a_gpu(TorchNetwork(copy.deepcopy(small), CPU, size=SIDE))


def as_on_a_gpu(network):
    network.on_gpu, network.rows = True, 2 * GROUP
    return network


def patches(rng, rows):
    """Images (rows, S, S, 3) of 4 × 4 colors each: their outputs differ far more than rounding does."""
    colors = rng.integers(0, 256, (rows, 4, 4, 3), np.uint8)
    return colors.repeat(SIDE // 4, 1).repeat(SIDE // 4, 2)


@pytest.mark.parametrize("rows", [GROUP, 2 * GROUP])
def test_a_video_gets_its_own_rows_whoever_shares_the_recorded_pass(small, recorded, rows):
    shape = OutputShape(3, SIDE, SIDE)
    passes = Passes(recorded, shape)

    def drive(video):
        remote = None
        served = ServedWorker(passes, lambda message: remote.receive(message), int)  # noqa: PLW0108 - made below
        remote = RemoteNetwork(served.receive, passes.rows, shape, served.file)
        rng = np.random.default_rng(video)
        found = []
        for turn in range(4):
            images, ids = patches(rng, rows), np.stack([np.full(rows, video), turn * rows + np.arange(rows)], 1)
            output = remote.postprocess([remote.submit(images, ids, slice(0, rows))], PostProcessing())()
            np.testing.assert_array_equal(output.ids, ids)
            found.append((images, output.logits, output.maps, output.foreground))
        served.close()
        return found

    with ThreadPoolExecutor(8) as pool:
        videos = list(pool.map(drive, range(8)))
    for images, logits, maps, sure in (one for video in videos for one in video):
        with torch.no_grad():
            expected = small(torch.from_numpy(images).permute(0, 3, 1, 2))
        np.testing.assert_allclose(logits, expected.class_logits, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(maps, foreground(expected.map_logits), rtol=0, atol=1e-4)
        np.testing.assert_array_equal(sure, array_foreground_of(maps))


def test_another_thread_than_the_owner_is_refused(recorded):
    one_pass(recorded, np.zeros((2, SIDE, SIDE, 3), np.uint8))
    with ThreadPoolExecutor(1) as other, pytest.raises(RuntimeError, match="another thread owns this network"):
        other.submit(one_pass, recorded, np.zeros((2, SIDE, SIDE, 3), np.uint8)).result()


@pytest.mark.usefixtures("recorded")
def test_crops_are_read_by_the_thread_that_owns_the_network(network):
    """Also while passes run; a thread that reads crops past it is refused."""
    net = network(crop_head=True)
    owned, shape = as_on_a_gpu(TorchNetwork(copy.deepcopy(net), CPU, size=SIDE)), OutputShape(3, SIDE, SIDE)
    images, boxes = patches(np.random.default_rng(0), 20), np.tile(np.array([0, 0, 1, 1], np.float32), (20, 1))
    expected = Passes(TorchNetwork(net, CPU, size=SIDE), shape).classify_crops(images, boxes)
    passes, rows = Passes(owned, shape), slice(0, 2 * GROUP)
    with ThreadPoolExecutor(3) as pool:
        under_way = [passes.submit(images[rows], ids_of(images[rows]), rows) for _ in range(3)]
        for found in pool.map(lambda _: passes.classify_crops(images, boxes), range(3)):
            np.testing.assert_array_equal(found, expected)
    for one in under_way:
        passes.postprocess([one], PostProcessing())()
    with pytest.raises(RuntimeError, match="another thread owns this network"):
        owned.classify(images[:16], boxes[:16])


def test_classes_of_crops_are_those_of_the_crop_head_however_many_they_are(network):
    """Against crops that the network as it was trained classifies one by one."""
    net = network(crop_head=True)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, SIDE, SIDE, 3), np.uint8)
    boxes = np.tile(np.array([0.25, 0.25, 0.75, 0.75], np.float32), (20, 1))  # 1.2 times as large: 0.2 to 0.8
    boxes[1::2] = 0, 0, 1, 1  # larger than the frame: the frame
    larger = torch.tensor([[0.0, 0, 1, 1] if i % 2 else [0.2, 0.2, 0.8, 0.8] for i in range(20)])
    with torch.no_grad():
        cut = crop_boxes(torch.from_numpy(images).permute(0, 3, 1, 2).float(), larger, SIDE)
        features = [net.classifier.encoder(one[None])[-1].mean((2, 3)) for one in cut]
        expected = torch.cat([net.crop_head(one / one.norm()) for one in features]).numpy()
    passes = Passes(TorchNetwork(copy.deepcopy(net), CPU, size=SIDE), OutputShape(3, SIDE, SIDE))
    assert passes.reads_crops
    found = passes.classify_crops(images, boxes)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.ptp(expected, axis=0).min() > 0.01  # crops differ
    for i in (0, 7, 19):
        np.testing.assert_array_equal(passes.classify_crops(images[i : i + 1], boxes[i : i + 1])[0], found[i])


def test_a_pass_of_larger_frames_has_no_more_pixels(monkeypatch):
    cuda = torch.device("cuda")
    assert [rows_of(cuda, size) for size in (96, 224, 448, 10_000)] == [64, 64, 32, 1]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 16)
    assert [rows_of(CPU, size) for size in (96, 224, 320, 448)] == [32, 32, 15, 8]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert [rows_of(CPU, size) for size in (96, 224, 320, 448, 2000)] == [32, 8, 3, 2, 1]

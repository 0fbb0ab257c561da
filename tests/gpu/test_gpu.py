"""Everything that runs differently on a GPU, tested on a GPU: ``pytest -m gpu``, or ``python tests/gpu/test_gpu.py``.

No data and no trained weights are needed; without a CUDA device all tests are skipped.
"""

import copy
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import cv2
import numpy as np
import torch
from torch import nn

from colocam.boxes.blobs import bounding_box, largest_blob
from colocam.boxes.quantize import otsu_levels, to_8bit
from colocam.config import load_config
from colocam.config.card import Card
from colocam.config.options import Options
from colocam.data.batches import spread_samples
from colocam.inference.localize import localize_videos
from colocam.inference.localizer import Localizer
from colocam.inference.network import OutputShape
from colocam.inference.passes import GROUP, Passes
from colocam.inference.results import Writing
from colocam.inference.torch_network import TorchNetwork
from colocam.losses import CoLocLoss, CRFLoss, Term
from colocam.losses.affinity import (
    bilateral_product,
    color_product,
    dense_bilateral_product,
    dense_color_product,
    engine,
)
from colocam.maps import torch_prior
from colocam.maps.foreground import array_foreground_of, foreground_of
from colocam.maps.postprocess import arrays_with_color_mean, with_color_mean
from colocam.maps.prior import open_prior
from colocam.models import Classifier, LocalizerNet, make_classifier
from colocam.models.folding import fold_batch_norms, fuse_relus
from colocam.models.model_file import Model, save_model
from colocam.segment.refine import mask_candidates, refine
from colocam.segment.sam import MobileSam, MobileSamNet
from colocam.segment.segmenter import Prompts
from colocam.training import stage2
from colocam.training.frozen_encoder import fit_logistic
from colocam.training.validation import Validator
from colocam.types import VideoFrame
from colocam.utils import cuda_graphs
from colocam.utils.cuda_graphs import Recorded, RecordedLoss
from lab.measuring import make_frames
from lab.training_step import CLASSES, _cached_clips, _smooth_cams
from tests.helpers import shared_step
from tests.helpers.batch_norms import unsettle
from tests.helpers.deep_prior import write_deep_prior
from tests.helpers.forked_processes import free_port
from tests.helpers.one_pass import ids_of, one_pass

CPU, GPU = torch.device("cpu"), torch.device("cuda")
SMALL = [
    "backbone.name=resnet18",
    "backbone.pretrained=false",
    "backbone.output_stride=16",
    "frames.resize=72",
    "frames.crop=64",
    "localizer.decoder=[32, 16, 16, 8, 8]",
]

try:
    import pytest
except ImportError:  # a machine with a GPU need not have it: see main
    pytest = None
if pytest is not None:
    if __name__ != "__main__" and not torch.cuda.is_available():
        pytest.skip("no CUDA device", allow_module_level=True)
    pytestmark = pytest.mark.gpu


def relative_error(found, exact):
    found, exact = found.detach().double().cpu(), exact.detach().double().cpu()
    return ((found - exact).norm() / exact.norm()).item()


def cosine(found, exact):
    return torch.cosine_similarity(found.detach().double().flatten(), exact.detach().double().flatten(), dim=0).item()


def frames_and_maps(count, size, kind):
    """A scene, noise, or a smooth image with colors between the levels; on the GPU."""
    frames, maps = make_frames(count, size, "noise" if kind == "noise" else "scene")
    if kind == "smooth":
        coarse = 255 * torch.rand(count, 3, 5, 5, generator=torch.Generator().manual_seed(2))
        frames = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear", align_corners=True)
    return frames.to(GPU), maps.to(GPU)


def some_rows(pixels, count=150):
    return torch.randperm(pixels, generator=torch.Generator().manual_seed(0))[:count].to(GPU)


# Products of the affinity against the exact sums in float64


def test_color_products_and_gradients_are_near_the_exact_ones():
    for kind, count in (("scene", 1), ("scene", 4), ("scene", 64), ("noise", 1), ("noise", 16), ("smooth", 4)):
        frames, maps = frames_and_maps(count, 224, kind)
        rows = some_rows(maps.numel())
        colors = frames.transpose(0, 1).flatten(1).T
        values = torch.stack([torch.ones_like(maps), maps, maps - 0.5], dim=-1).flatten(0, 2)
        exact = dense_color_product(colors, values, rows=rows)
        found = color_product(colors, values[:, :2])[rows]
        for channel in range(2):
            error = relative_error(found[:, channel], exact[:, channel])
            assert error <= 0.005, (kind, count, channel, error)
        if count > 1:
            s = maps.clone().requires_grad_()
            ids = torch.zeros(count, dtype=torch.int64, device=GPU)
            CoLocLoss()(frames, s, ids, 1).backward()
            assert cosine(s.grad.flatten()[rows], -exact[:, 2]) >= 0.9999, (kind, count)


def test_bilateral_products_and_gradients_are_near_the_exact_ones():
    for kind, count in (("scene", 1), ("scene", 3), ("noise", 2), ("smooth", 2)):
        frames, maps = frames_and_maps(count, 224, kind)
        rows = some_rows(maps[0].numel(), 100)
        values = torch.stack([torch.ones_like(maps), maps, maps - 0.5], dim=1)
        exact = dense_bilateral_product(frames, values, rows=rows)
        found = bilateral_product(frames, values[:, :2]).flatten(2)[:, :, rows]
        for channel in range(2):
            error = relative_error(found[:, channel], exact[:, channel])
            assert error <= 0.01, (kind, count, channel, error)
        s = maps.clone().requires_grad_()
        CRFLoss()(frames, s).backward()
        assert cosine(s.grad.flatten(1)[:, rows], -exact[:, 2]) >= 0.9999, (kind, count)


def test_frames_of_odd_sizes_and_narrow_gaussians():
    for height, width, sigma_xy in ((37, 53, 100.0), (1, 9, 100.0), (40, 33, 2.0), (64, 64, 15.0)):
        generator = torch.Generator().manual_seed(height)
        frames = torch.randint(0, 256, (2, 3, height, width), generator=generator, dtype=torch.uint8).to(GPU)
        values = torch.rand(2, 3, height, width, generator=generator).to(GPU)
        exact = dense_bilateral_product(frames, values, 15.0, sigma_xy).view_as(values)
        error = relative_error(bilateral_product(frames, values, 15.0, sigma_xy), exact)
        assert error <= 0.01, (height, width, sigma_xy, error)


def test_any_layout_type_and_grouping_gives_the_product_of_the_cpu():
    generator = torch.Generator().manual_seed(0)
    rgb = torch.randint(0, 256, (6, 3, 1500), generator=generator, dtype=torch.uint8)
    rgb[0, :, :1000] = 7  # long runs of one color
    values = torch.rand(6, 3, 1500, generator=generator)
    group = torch.tensor([2, 0, 2, 1, 0, 3])
    for tol, bound in ((5e-3, 2e-3), (1.5e-3, 1e-4)):
        gaussian = engine.Gaussian(40.0, tol)
        exact = engine.product(rgb, values.double(), group, 4, gaussian)
        strided = rgb.transpose(1, 2).contiguous().transpose(1, 2)
        for colors in (rgb, strided, rgb.float(), rgb.int()):
            found = engine.product(colors.to(GPU), values.to(GPU), group.to(GPU), 4, gaussian)
            assert relative_error(found, exact) <= bound, (tol, colors.dtype, colors.stride())


def test_losses_and_gradients_are_those_of_the_cpu_in_float64():
    frames, maps = make_frames(9, 48, "scene")
    sequences = torch.tensor([1, 0, 1, 2, 0, 1, 0, 3, 3])  # sequence 2 has one frame
    losses = {
        "adaptive": (CoLocLoss(), (sequences, 4)),
        "energy": (CoLocLoss(divisor="energy"), (sequences, 4)),
        "constant": (CoLocLoss(weighting="constant"), (sequences, 4)),
        "no pairs": (CoLocLoss(), (torch.arange(9), 9)),
        "crf": (CRFLoss(), ()),
        "narrow crf": (CRFLoss(15.0, 2.0), ()),
    }
    for name, (loss, arguments) in losses.items():
        on_gpu = [x.to(GPU) if isinstance(x, torch.Tensor) else x for x in arguments]
        for dtype in (torch.float32, torch.bfloat16):
            exact = maps.to(dtype).double().requires_grad_()
            expected = loss(frames, exact, *arguments)
            expected.backward()
            s = maps.to(GPU, dtype, copy=True).requires_grad_()
            value = loss(frames.to(GPU).float(), s, *on_gpu)
            assert value.dtype == torch.float32
            value.backward()
            assert s.grad.dtype == dtype
            if name == "no pairs":
                assert value.item() == 0
                assert not s.grad.any()
                continue
            assert abs(value.item() - expected.item()) <= 0.01 * abs(expected.item()), (name, dtype)
            assert relative_error(s.grad, exact.grad) <= 0.02, (name, dtype)
            if arguments:
                assert not s.grad[3].any(), name


def test_half_precision_does_not_overflow():
    colors = torch.full((100_000, 3), 7, dtype=torch.uint8, device=GPU)
    for dtype in (torch.float16, torch.bfloat16):
        found = color_product(colors, torch.ones(100_000, 1, dtype=dtype, device=GPU))
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, torch.full_like(found, 100_000), rtol=5e-3, atol=0)


def test_nan_in_the_input_makes_the_result_nan():
    frames, maps = (x.to(GPU) for x in make_frames(2, 32, "scene"))
    maps[1, 3, 4] = torch.nan
    ids = torch.zeros(2, dtype=torch.int64, device=GPU)
    assert CoLocLoss()(frames, maps, ids, 1).isnan()
    assert CRFLoss()(frames, maps).isnan()
    assert color_product(frames.flatten(2).transpose(1, 2), maps.flatten(1)[..., None]).isnan().any()


def test_products_are_the_same_in_every_run():
    frames, maps = (x.to(GPU) for x in make_frames(32, 224, "scene"))
    colors, values = frames.flatten(2).transpose(1, 2).reshape(1, -1, 3), maps.reshape(1, -1, 1)
    first = color_product(colors, values)
    assert all(torch.equal(color_product(colors, values), first) for _ in range(5))


def test_the_foreground_of_maps_is_that_of_the_host():
    """To the last bit, for one frame and for many, as levels and as floats, and the host does not wait."""
    for count, side in ((1, 64), (5, 224), (64, 112)):
        maps = torch.rand(count, side, side, generator=torch.Generator().manual_seed(side)) ** 4
        for given in (maps, to_8bit(maps)):
            there = given.to(GPU)
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            try:
                found = foreground_of(there)
            finally:
                torch.cuda.set_sync_debug_mode("default")
            np.testing.assert_array_equal(found.cpu().numpy(), array_foreground_of(given.numpy()))


def test_the_losses_never_make_the_host_wait():
    frames, maps = (x.to(GPU) for x in make_frames(4, 64, "scene"))
    maps.requires_grad_()
    ids = torch.tensor([0, 0, 1, 1], device=GPU)
    losses = CoLocLoss(), CRFLoss()

    def step():
        torch.autograd.grad(losses[0](frames, maps, ids, 2) + losses[1](frames, maps), maps)

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


# Streams and threads


def loss_and_gradient(frames, maps, ids):
    s = maps.clone().requires_grad_()  # at an address of its own
    value = CoLocLoss()(frames, s, ids, 2) + 1e-9 * CRFLoss()(frames, s)
    return value.detach(), torch.autograd.grad(value, s)[0]


def inputs_of(seed):
    frames, maps = (x.to(GPU) for x in make_frames(4, 64, "scene", seed))
    return frames.float(), maps, torch.tensor([0, 1, 0, 1], device=GPU)


def assert_same(found, expected, name=""):
    """Equal but for the order of atomic additions."""
    torch.testing.assert_close(found[0], expected[0], rtol=1e-4, atol=1e-7, msg=lambda m: f"{name}: {m}")
    assert relative_error(found[1], expected[1]) <= 1e-3, name


def in_threads(*functions):
    """Run functions at the same time, each in a thread and a CUDA stream of its own; raise what they raise."""
    errors, start = [], threading.Barrier(len(functions))

    def run(function):
        try:
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                start.wait()
                function()
            stream.synchronize()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_losses_in_two_threads_and_streams():
    sets = [inputs_of(seed) for seed in range(4)]
    expected = [loss_and_gradient(*inputs) for inputs in sets]
    torch.cuda.synchronize()
    found = {0: [], 1: []}

    def work(thread):
        for turn in range(16):
            index = 2 * thread + turn % 2
            fresh = tuple(x.clone() for x in sets[index])
            found[thread].append((index, loss_and_gradient(*fresh)))

    in_threads(lambda: work(0), lambda: work(1))
    torch.cuda.synchronize()
    for thread, results in found.items():
        assert len(results) == 16
        for index, result in results:
            assert_same(result, expected[index], f"thread {thread}, set {index}")


# The recorder of CUDA graphs


def convolutions():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1)).to(GPU).eval()

    def compute(tensors):
        out = net(tensors["frames"].float() / 255)
        return out, out.mean((1, 2, 3)) + tensors["offset"], tensors["frames"].amax((1, 2, 3))

    return compute


def batch_of(rows, seed):
    generator = torch.Generator().manual_seed(seed)
    frames = torch.randint(0, 256, (rows, 3, 16, 16), generator=generator, dtype=torch.uint8)
    return {"frames": frames.to(GPU), "offset": torch.rand(rows, generator=generator).to(GPU)}


def assert_recorded_equals_direct(sizes=(3, 5, 1, 4, 5, 7, 2)):
    compute = convolutions()
    recorded = Recorded(compute, 5, GPU)
    for seed, rows in enumerate(sizes):
        batch = batch_of(rows, seed)
        with torch.no_grad():
            expected = [x.clone() for x in compute(batch)]
        for one, other in zip(recorded(batch), expected, strict=True):
            assert one.shape == other.shape
            assert not one.requires_grad
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_a_recorded_function_equals_the_direct_one_for_batches_of_any_size():
    with mock.patch.object(cuda_graphs, "capture", wraps=cuda_graphs.capture) as capture:
        assert_recorded_equals_direct()
    assert capture.call_count == 1


def test_two_threads_record_and_replay_at_the_same_time():
    """Each has a function of its own; the recordings themselves are made one after the other."""
    in_threads(assert_recorded_equals_direct, assert_recorded_equals_direct)


def test_a_function_that_makes_the_host_wait_is_called_directly():
    def compute(tensors):
        return (tensors["offset"] * float(tensors["offset"].sum().item() > -1),)

    with mock.patch.object(cuda_graphs, "say") as say:
        recorded = Recorded(compute, 5, GPU)
        for rows in (5, 3):
            batch = batch_of(rows, rows)
            torch.testing.assert_close(recorded(batch)[0], batch["offset"])
    say.assert_called_once()


class LossOfBatchNorm(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 3))
        self.unused = nn.Linear(2, 2)

    def forward(self, frames, offset):
        return (self.net(frames.float() / 255).mean((1, 2, 3)) - offset).square().mean()


def test_recorded_losses_have_the_gradients_and_statistics_of_direct_ones():
    loss, plain = LossOfBatchNorm().to(GPU), LossOfBatchNorm().to(GPU)
    with mock.patch.object(cuda_graphs, "capture", wraps=cuda_graphs.capture) as capture:
        recorded = RecordedLoss(loss, GPU)
        values = []
        for seed, rows in enumerate((5, 5, 3, 5)):
            batch = batch_of(rows, seed)
            for module, call in ((loss, recorded), (plain, plain)):
                module.zero_grad(set_to_none=True)
                values.append(call(**batch))
                (3 * values[-1]).backward()
            for one, other in zip(loss.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-5)
            for one, other in zip(loss.buffers(), plain.buffers(), strict=True):
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    assert capture.call_count == 1
    for one, other in zip(values[::2], values[1::2], strict=True):  # a later call leaves earlier values alone
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


# Seeds


def largest_by_opencv(mask):
    """The largest 4-connected region; of equal ones, the first in reading order."""
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=4)
    if count == 1:
        return mask
    sizes = np.bincount(labels[mask], minlength=count)
    first = [np.flatnonzero(labels == label)[0] for label in range(1, count)]
    best = max(range(1, count), key=lambda label: (sizes[label], -first[label - 1]))
    return labels == best


def winding(side):
    """One region that passes through the whole image."""
    mask = np.zeros((side, side), bool)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    return mask


def test_the_largest_region_is_that_of_opencv():
    rng = np.random.default_rng(0)
    batches = [rng.random((6, 56, 56)) < density for density in (0.05, 0.4, 0.55, 0.6, 0.8)]
    batches += [rng.random((3, 224, 224)) < 0.6, rng.random((5, 7, 33)) < 0.5]
    batches += [
        np.stack([winding(97), ~winding(97), winding(97).T]),
        np.zeros((2, 9, 9), bool),
        np.ones((2, 9, 9), bool),
    ]
    for masks in batches:
        found = largest_blob(torch.from_numpy(masks).to(GPU)).cpu().numpy()
        for one, mask in zip(found, masks, strict=True):
            assert (one == largest_by_opencv(mask)).all(), masks.shape
    strided = torch.from_numpy(batches[5]).to(GPU)[:, :, ::2]
    assert torch.equal(largest_blob(strided), largest_blob(strided.contiguous()))


def test_thresholds_and_boxes_are_those_of_the_cpu():
    generator = torch.Generator().manual_seed(0)
    maps = torch.rand(8, 56, 56, generator=generator) ** torch.linspace(0.3, 4, 8)[:, None, None]
    maps[7] = 0.5  # no threshold
    for found, expected in zip(otsu_levels(maps.to(GPU)), otsu_levels(maps), strict=True):
        assert torch.equal(found.cpu(), expected)
    assert torch.equal(to_8bit(maps.to(GPU)).cpu(), to_8bit(maps))
    masks = maps > 0.97
    assert torch.equal(bounding_box(masks.to(GPU)).cpu(), bounding_box(masks))


# Training


def stage2_task(folder, recorded, seen):
    """Stage 2 on synthetic clips with a term that notes the tensors of each step."""
    chosen = ["localizer.batch=6", "localizer.frames=3", "localizer.sampler=adjacent", "localizer.losses.coloc=0.5"]
    config = load_config("demo", overrides=[*SMALL, *chosen])
    clips = _cached_clips(Path(folder), config.frames.resize)[:14]
    torch.manual_seed(0)
    classifier = Classifier(config.backbone, len(CLASSES)).to(GPU).eval()
    cams = _smooth_cams(classifier, clips, config, GPU)
    validator = Validator(spread_samples(clips[:1], CLASSES, 1), None, CLASSES, config.frames, GPU)

    def note(step):
        seen.append([x.detach().clone() for x in (step.frames, step.labels, step.maps)])
        return 0 * step.maps.sum()

    room = Recorded if recorded else lambda compute, rows, _: Recorded(compute, rows, CPU)
    with mock.patch.object(stage2, "Recorded", room):
        return stage2.localizer_task(config, "colocam", classifier, clips, cams, validator, [Term("note", 1.0, note)])


def test_recorded_and_plain_training_steps_are_equal():
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for recorded in (False, True):
            seen, found = [], []
            with mock.patch.object(cuda_graphs, "capture", wraps=cuda_graphs.capture) as capture:
                task = stage2_task(folder, recorded, seen)
                task.module.train()
                steps = [indices for epoch in range(2) for indices in task.plan(epoch)]
                for number, indices in enumerate(steps):
                    task.module.zero_grad(set_to_none=True)
                    loaded = {name: t.to(GPU) for name, t in task.load(indices, number).items()}
                    terms = task.terms(indices, loaded, number, 0)
                    torch.stack(list(terms.values())).sum().backward()
                    slopes = torch.cat([p.grad.flatten() for p in task.module.parameters() if p.grad is not None])
                    found.append(({name: term.item() for name, term in terms.items()}, slopes.clone()))
            assert capture.call_count == int(recorded)
            results[recorded] = seen, found
    (plain_seen, plain), (recorded_seen, recorded_found) = results[False], results[True]
    assert len({len(frames) for frames, *_ in plain_seen}) > 1, "steps of several sizes"
    for number, (expected, tensors) in enumerate(zip(plain_seen, recorded_seen, strict=True)):
        assert torch.equal(tensors[0], expected[0]), f"frames of step {number}"
        assert torch.equal(tensors[1], expected[1]), f"labels of step {number}"
        # Features are bfloat16, and another number of rows may round them differently.
        difference = (tensors[2] - expected[2]).abs()
        assert difference.mean() <= 5e-3, (number, difference.mean())
        assert difference.max() <= 0.1, (number, difference.max())
    for number, ((terms, slopes), (other, others)) in enumerate(zip(plain, recorded_found, strict=True)):
        assert set(terms) == {"seeds", "crf", "size", "coloc", "note"}
        for name, value in terms.items():
            assert abs(other[name] - value) <= 0.02 * abs(value) + 1e-6, (number, name, value, other[name])
        assert cosine(others, slopes) >= 0.98, number


def test_batch_norms_of_two_processes_are_those_of_one():
    expected = shared_step.norm_parts(shared_step.INDICES)
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        call = f"from tests.helpers import shared_step; shared_step.save_norms_of_one_gpu({folder!r})"
        shared = {"WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        paths = {"PYTHONPATH": os.pathsep.join([str(Path(shared_step.__file__).parents[2]), *sys.path])}
        started = [
            subprocess.Popen([sys.executable, "-c", call], env={**os.environ, **shared, **paths, "RANK": str(rank)})
            for rank in range(2)
        ]
        assert [process.wait(timeout=120) for process in started] == [0, 0]
        parts = [torch.load(Path(folder) / f"{rank}.pt", map_location="cpu") for rank in range(2)]
    for name, (per_frame, of_weights, state) in expected.items():
        for index, one in enumerate(per_frame):
            torch.testing.assert_close(torch.cat([part[name][0][index] for part in parts]), one, rtol=1e-4, atol=1e-4)
        for index, one in enumerate(of_weights):
            torch.testing.assert_close(sum(part[name][1][index] for part in parts), one, rtol=1e-4, atol=1e-4)
        for part in parts:
            torch.testing.assert_close(part[name][2], state, rtol=1e-4, atol=1e-4)


# Inference


def localizer(**reading):
    """A network of random weights whose batch norms have statistics and weights of their own, as after training."""
    torch.manual_seed(0)
    config = load_config("demo", overrides=SMALL)
    return unsettle(LocalizerNet(Classifier(config.backbone, 3, **reading), config.localizer.decoder))


def images(count, seed=0):
    return make_frames(count, 64, "scene", seed)[0].permute(0, 2, 3, 1).contiguous().numpy()


@contextmanager
def full_precision():
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def test_fused_convolutions_change_nothing():
    frames = torch.from_numpy(images(4)).permute(0, 3, 1, 2).to(GPU)
    net = fold_batch_norms(localizer().to(GPU), frames[:1])
    with full_precision(), torch.no_grad():
        expected = net(frames)
        fuse_relus(net, frames[:1])
        assert not any(isinstance(module, nn.ReLU) for module in net.modules())
        for one, other in zip(net(frames), expected, strict=True):
            assert relative_error(one, other) <= 1e-4


def test_recorded_inference_equals_eager():
    network = TorchNetwork(localizer(), GPU, size=64)
    for count in (8, 8, 5, 8):
        frames = torch.from_numpy(images(count, count)).to(GPU).permute(0, 3, 1, 2)
        with torch.no_grad():
            *expected, ids = network.eager(frames, torch.from_numpy(ids_of(images(count))).to(GPU))
        output = one_pass(network, images(count, count))
        assert torch.equal(output.ids, ids)
        found = output[:4]
        for one, other in zip(found, expected, strict=True):
            if other.dtype == torch.uint8:
                difference = (one.int() - other.int()).abs()
                assert difference.max() <= 1, count
                assert (difference == 0).float().mean() >= 0.99, count
            else:
                assert relative_error(one, other) <= 1e-2, count


def test_a_class_read_at_half_the_size_is_recorded_and_equals_the_cpu():
    net = localizer(size=32, normalize=True)
    on_cpu, on_gpu = TorchNetwork(copy.deepcopy(net), CPU, size=64), TorchNetwork(net, GPU, size=64)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in on_gpu.net.modules())
    expected = one_pass(on_cpu, images(6))
    for _ in range(2):
        logits, levels, peaks, activations, *_ = one_pass(on_gpu, images(6))
        assert (levels.cpu().float() / 255 - expected.maps).abs().mean() <= 0.02
        assert relative_error(logits, expected.logits) <= 0.05
        assert relative_error(peaks, expected.peaks) <= 0.05
        assert relative_error(activations, expected.activations) <= 0.05


def test_the_logistic_regression_of_the_gpu_is_that_of_the_cpu():
    rng = torch.Generator().manual_seed(0)
    classes = torch.arange(300) % 3
    features = torch.randn(300, 8, generator=rng) + torch.randn(3, 8, generator=rng)[classes]
    given = features, classes, torch.rand(300, generator=rng)
    expected = fit_logistic(*given, 3, 1e-2)
    found = fit_logistic(*(part.to(GPU) for part in given), 3, 1e-2)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=1e-4)


def test_boxes_do_not_depend_on_the_batch():
    config = load_config("demo", overrides=SMALL)
    card = Card(
        method="colocam", tags=("a", "b", "c"), size=64, threshold=0.5, threshold_from="tags-only",
        backbone=config.backbone, decoder=config.localizer.decoder, presence=(1.0, 0.0), color_mean="clip", focus=True,
    )  # fmt: skip
    first, second = images(40, 1), images(30, 2)  # a shot longer than a window, and a cut
    moving = [np.roll(first[0], at, axis=1) for at in range(40)] + [np.roll(second[0], at, axis=0) for at in range(30)]
    video = [VideoFrame(index, index / 25, np.ascontiguousarray(image)) for index, image in enumerate(moving)]

    def boxes(batch):
        network = TorchNetwork(localizer(), GPU, size=64)
        stream = Localizer(network, card, options=Options(batch=batch)).stream(video)
        return [(found.tag, found.probability, found.box, found.score, found.track) for _, found in stream]

    expected = boxes(None)
    assert len(expected) == 70
    for batch in (1, 7, 32, 128):
        assert boxes(batch) == expected, batch


def test_videos_share_the_passes_of_the_published_network():
    """Its rows are rounded alike; otherwise a video of 32 frames would take a whole pass."""
    config = load_config("paper", overrides=["backbone.pretrained=false"])
    torch.manual_seed(0)
    classifier = make_classifier(config, config.backbone, 3)
    network = TorchNetwork(LocalizerNet(classifier, config.stage2("colocam").decoder).eval(), GPU, size=224)
    passes = Passes(network, OutputShape(3, 224, 224))
    assert (network.rows, passes._group(network.rows)) == (64, GROUP)


def segmenter(device, side=256):
    torch.manual_seed(0)
    net = MobileSamNet()
    nn.init.normal_(net.prompt_encoder.pe_layer.positional_encoding_gaussian_matrix)
    return MobileSam(net, device, side=side)


def some_prompts(count, side=256):
    points = np.random.default_rng(0).uniform(0, side, (count, 6, 2, 2)).astype(np.float32)
    points[:, :5].sort(axis=2)
    return Prompts(points, np.tile([*[[2, 3]] * 5, [1, -1]], (count, 1, 1)))


SIZES = ((427, 240), (1280, 720), (1920, 1080))


def shipped_run(folder, preset="resnet50"):
    """A run folder with the network of a preset as it is shipped, but for its weights, which are random."""
    config = load_config(preset, overrides=["backbone.pretrained=false"])
    settings, tags = config.localizer, tuple(f"class {number}" for number in range(10))
    logistic = config.classifier.fit == "logistic"
    torch.manual_seed(0)
    classifier = Classifier(config.backbone, len(tags), size=config.classifier.size, normalize=logistic)
    crop_head, map_size = settings.crop_head, config.frames.map_size
    net = unsettle(LocalizerNet(classifier, settings.decoder, map_size=map_size, crop_head=crop_head))
    card = Card(
        method="colocam",
        tags=tags,
        size=config.frames.crop,
        threshold=settings.threshold,
        threshold_from="tags-only",
        backbone=config.backbone,
        decoder=settings.decoder,
        presence=(1.0, 0.0),
        color_mean=settings.most_color_mean,
        focus=settings.focus,
        chooser=settings.chooser,
        class_size=config.classifier.size,
        map_size=map_size,
        normalize=logistic,
        crop_head=crop_head,
    )
    save_model(folder, Model(net, card))
    return folder


def write_videos(folder, count, least=40, most=100):
    """Videos of moving patches, of all sizes and lengths in turn; no two frames are alike."""
    import av  # noqa: PLC0415 - this test alone reads video files

    def write(number):
        rng = np.random.default_rng(number)
        width, height = SIZES[number % len(SIZES)]
        patches = cv2.resize(rng.integers(0, 256, (12, 16, 3), np.uint8), (2 * width, 2 * height))
        with av.open(str(folder / f"{number:03}.mp4"), "w") as output:
            stream = output.add_stream("libx264", rate=25, options={"preset": "ultrafast"})
            stream.width, stream.height, stream.pix_fmt = width // 2 * 2, height // 2 * 2, "yuv420p"
            for frame in range(int(rng.integers(least, most + 1))):
                x, y = (int(abs(np.sin((frame + number) / 17 + k)) * side) for k, side in ((0, width), (1, height)))
                image = np.ascontiguousarray(patches[y : y + stream.height, x : x + stream.width])
                output.mux(stream.encode(av.VideoFrame.from_ndarray(image, "rgb24")))
            output.mux(stream.encode(None))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(count)))


def tables(run, videos, out, workers):
    """Rows of the tables of videos by the videos' names."""
    writing = Writing(annotate=False)
    list(localize_videos(run, videos, out, writing, options=Options("cuda"), workers=workers))
    return {path.stem: path.read_text().splitlines()[1:] for path in sorted(out.glob("*.csv"))}


def differing_rows(found, expected):
    assert found.keys() == expected.keys()
    assert {name: len(rows) for name, rows in found.items()} == {name: len(rows) for name, rows in expected.items()}
    return sum(a != b for name, rows in expected.items() for a, b in zip(found[name], rows, strict=True))


def test_videos_of_the_shipped_preset_do_not_mix():
    """Large frames have passes of one group, which many threads submit; each row must be that of its video alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("run", "videos"):
            (folder / part).mkdir()
        run = shipped_run(folder / "run")
        write_videos(folder / "videos", 48)
        videos = sorted((folder / "videos").iterdir())
        random.Random(0).shuffle(videos)
        alone = tables(run, videos, folder / "alone", 1)
        rows = sum(map(len, alone.values()))
        assert rows > 48 * 40
        assert len({row.partition(",")[2] for table in alone.values() for row in table}) > rows * 0.9
        for turn in range(2):
            random.Random(turn + 1).shuffle(videos)
            differ = differing_rows(tables(run, videos, folder / f"many-{turn}", None), alone)
            assert differ == 0, f"{differ} of {rows} rows are not those of the video alone"


def test_python_threads_that_share_a_localizer_do_not_mix():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        localizer = Localizer.load(shipped_run(folder), "cuda")
        rng = np.random.default_rng(0)
        shots = [
            [
                VideoFrame(index, index / 25, cv2.resize(colors + np.uint8(index), (427, 240)))
                for index in range(50 + number)
            ]
            for number, colors in enumerate(rng.integers(0, 200, (8, 12, 16, 3), np.uint8))
        ]

        def localize(frames):
            return [(found.tag, found.probability, found.box, found.score) for _, found in localizer.stream(frames)]

        alone = [localize(frames) for frames in shots]
        for _ in range(2):
            with ThreadPoolExecutor(len(shots)) as pool:
                assert list(pool.map(localize, shots)) == alone


def test_a_segmenter_gives_what_it_gives_on_the_cpu():
    frames = np.random.default_rng(1).integers(0, 256, (3, 256, 256, 3), np.uint8)
    on_cpu, on_gpu = segmenter(CPU), segmenter(GPU)
    expected, found = on_cpu.embed(frames), on_gpu.embed(frames)
    assert found.is_cuda
    assert relative_error(found, expected) <= 0.05
    logits, quality = on_cpu.masks(expected, some_prompts(3))
    found_logits, found_quality = on_gpu.masks(found, some_prompts(3))
    assert found_logits.shape == (3, 6, 3, 64, 64)
    assert found_logits.dtype == torch.float32
    assert relative_error(found_logits, logits) <= 0.1
    assert relative_error(found_quality, quality) <= 0.1


def test_masks_of_a_frame_do_not_depend_on_the_frames_after_it():
    frames = np.random.default_rng(2).integers(0, 256, (11, 256, 256, 3), np.uint8)
    one, prompts = segmenter(GPU), some_prompts(11)
    whole = one.masks(one.embed(frames), prompts)
    for count in (1, 5, 8, 9):
        part = one.masks(one.embed(frames[:count]), Prompts(prompts.points[:count], prompts.labels[:count]))
        assert torch.equal(part.logits, whole.logits[:count]), count
        assert torch.equal(part.quality, whole.quality[:count]), count


def test_a_recorded_segmenter_gives_what_its_kernels_give_one_by_one():
    """To the last bit, in threads that share it, with two numbers of prompts."""
    frames = np.random.default_rng(3).integers(0, 256, (20, 256, 256, 3), np.uint8)
    one, prompts = segmenter(GPU), some_prompts(20)
    fewer = Prompts(prompts.points[:, :2], prompts.labels[:, :2])
    asked = [(slice(at, at + 5), given) for at in range(0, 20, 5) for given in (prompts, fewer)]

    def ask(rows, given):
        found = one.masks(one.embed(frames[rows]), Prompts(given.points[rows], given.labels[rows]))
        return [part.cpu() for part in found]

    with ThreadPoolExecutor(4) as pool:
        recorded = list(pool.map(lambda words: ask(*words), asked))
    for each in (one._embed, *one._masks.values()):
        assert each._recording is not None
        each._rows = 0  # computes directly
    for words, found in zip(asked, recorded, strict=True):
        assert all(torch.equal(*pair) for pair in zip(ask(*words), found, strict=True))


def window_to_refine(count, width, height):
    frames = [np.random.default_rng(at).integers(0, 256, (height, width, 3), np.uint8) for at in range(count)]
    levels = np.zeros((count, 112, 112), np.uint8)
    levels[:, 20:44, 10:40] = 230
    return frames, levels


def test_refined_windows_keep_their_tensors_on_the_gpu():
    frames, levels = window_to_refine(10, 160, 90)
    one = segmenter(GPU)
    found = mask_candidates(one, frames, levels)
    assert all(logits.is_cuda for logits in found.logits)
    assert found.overlaps.shape == (10, 18)
    for at in (0, 7, 8, 9):
        alone = mask_candidates(one, frames[at : at + 1], levels[at : at + 1])
        assert torch.equal(alone.logits[0], found.logits[at])
    assert len(refine(one, frames, levels)) == 10


def test_the_color_mean_is_that_of_arrays():
    frames, maps = make_frames(6, 64, "scene")
    sequences = torch.tensor([0, 0, 0, 1, 1, 0])
    expected = arrays_with_color_mean(frames.permute(0, 2, 3, 1).contiguous().numpy(), maps.numpy(), sequences.numpy())
    found = with_color_mean(frames.to(GPU), maps.to(GPU), sequences)
    assert (found.cpu() - torch.from_numpy(expected)).abs().max() <= 5e-3


def test_a_prior_sees_what_it_sees_on_the_cpu():
    with tempfile.TemporaryDirectory() as folder:
        path = write_deep_prior(Path(folder) / "prior.onnx")
        images = np.random.default_rng(0).integers(0, 256, (40, 48, 48, 3), np.uint8)
        prior, expected = open_prior(path, GPU), open_prior(path).maps(images)
    assert prior.gpu is not None
    seen = prior.maps(images)
    assert np.abs(seen.astype(int) - expected).max() <= torch_prior.TOLERANCE
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(prior.map, images))
    np.testing.assert_array_equal(seen, alone)


def main():
    """Run every test of this file without pytest; the exit status is 1 if one fails."""
    if not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 0
    tests = [(name, value) for name, value in globals().items() if name.startswith("test_") and callable(value)]
    chosen = [(name, test) for name, test in tests if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    failed = []
    for name, test in chosen:
        start = time.perf_counter()
        try:
            test()
            torch.cuda.synchronize()
        except Exception:  # noqa: BLE001 - the others are still to run
            failed.append(name)
            traceback.print_exc()
        print(f"{'FAILED' if name in failed else 'ok'} {name} {time.perf_counter() - start:.1f} s", flush=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}")
    print(f"{len(chosen) - len(failed)} passed" + (f", {len(failed)} failed: {', '.join(failed)}" if failed else ""))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

"""One step of stage 2 and its parts, and one of stage 1: from the frame cache to the new weights."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from colocam.cams.cam_cache import CamStore
from colocam.config import Config, load_config
from colocam.data.augment import crop
from colocam.data.batches import BatchIndices
from colocam.data.cache_entry import ROW, CachedClip
from colocam.data.samples import spread_samples
from colocam.lab.measuring import timing
from colocam.lab.measuring.record import conditions, headline, keep
from colocam.lab.measuring.synthetic_frames import make_frames
from colocam.losses import StepTensors
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.training.loop import Task, sgd_step
from colocam.training.optimiser import make_sgd
from colocam.training.seeds import sample_seeds, seed_noise
from colocam.training.stage1 import classifier_task
from colocam.training.stage2 import localizer_task, loss_terms
from colocam.training.validation import Validator
from colocam.types import Clip
from colocam.utils.prefetch import prefetch

CLIPS, LENGTH = 64, 16
CLASSES = tuple(f"class {i}" for i in range(10))
PUBLISHED_MS = 840.0
"""A step of 32 frames on an A100, by the paper."""

Steps = Sequence[tuple[int, BatchIndices]]
"""Number and frames of each step."""


def run(
    device: str = "cpu", json_path: Path | None = None, config: Config | None = None, steps: int = 0
) -> dict[str, Any]:
    """Measure, print, and write to ``json_path``: the preset ``paper`` on a GPU, ``cpu`` on a CPU, random weights."""
    where = torch.device(device)
    preset = "paper" if where.type == "cuda" else "cpu"
    config = config or load_config(preset, overrides=["backbone.pretrained=false"])
    steps = steps or default_steps(where)
    with both_stages(config, where) as (stage1, stage2, classifier):
        what = f"stage 2, {config.backbone.name}, {config.frames.crop}², {config.localizer.batch} frames a step"
        result = {
            **conditions(what, where),
            "published_step_ms": PUBLISHED_MS,
            **whole_step(stage2, where, steps),
            "parts_ms": _parts(stage2, config, classifier, where),
            "stage1": whole_step(stage1, where, steps),
        }
    print(headline(result))
    _print_step(result)
    for name, ms in result["parts_ms"].items():
        print(f"  {name:16} {ms:.2f} ms")
    print(f"stage 1, {config.classifier.batch} frames a step")
    _print_step(result["stage1"])
    return keep(result, json_path)


def default_steps(device: torch.device) -> int:
    """Steps that are timed where nobody says how many."""
    return 100 if device.type == "cuda" else 5


@contextmanager
def both_stages(config: Config, device: torch.device) -> Iterator[tuple[Task, Task, Classifier]]:
    """Stage 1, stage 2 (CoLo-CAM) and the classifier that stage 2 stands on, over clips in a cache of their own."""
    with TemporaryDirectory() as folder:
        clips = _cached_clips(Path(folder), config.frames.resize)
        classifier = Classifier(config.backbone, len(CLASSES)).to(device).eval()
        cams = _smooth_cams(classifier, clips, config, device)
        validator = Validator(spread_samples(clips[:1], CLASSES, 1), None, CLASSES, config.frames.crop, device)
        stage1 = classifier_task(config, clips, CLASSES, validator)
        stage2 = localizer_task(config, "colocam", classifier, clips, cams, validator)
        yield stage1, stage2, classifier


def _print_step(measured: dict[str, Any]) -> None:
    for name in ("step_ms", "frames_per_s", "gpu_busy_percent", "host_waits"):
        if name in measured:
            print(f"{name:18} {measured[name]:.2f}")


def _cached_clips(folder: Path, size: int) -> list[CachedClip]:
    """Clips in a frame cache, as decoding leaves them."""
    frames = make_frames(LENGTH, size, "scene")[0].permute(0, 2, 3, 1).contiguous().numpy()
    rows = np.array([(i, i / 25, size, size) for i in range(LENGTH)], ROW)
    clips = []
    for number in range(CLIPS):
        file = folder / f"{number}.rgb"
        frames.tofile(file)
        clip = Clip(f"clip {number}", CLASSES[number % len(CLASSES)], "train", file, f"video {number}")
        clips.append(CachedClip(clip, file, size, rows))
    return clips


def _smooth_cams(classifier: Classifier, clips: list[CachedClip], config: Config, device: torch.device) -> CamStore:
    """Maps of one wandering blob at the resolution of the features."""
    side = config.frames.crop
    with torch.inference_mode():
        cells = classifier(torch.zeros(1, 3, side, side, device=device)).features[-1].shape[-1]
    maps = F.adaptive_avg_pool2d(make_frames(LENGTH, side, "noise")[1], cells).half().numpy()
    return CamStore(np.tile(maps, (len(clips), 1, 1)), [len(clip) for clip in clips])


def _steps(task: Task) -> Iterator[tuple[int, BatchIndices]]:
    """Step after step, epoch after epoch, without end."""
    numbers = count()
    for epoch in count():
        for indices in task.plan(epoch):
            yield next(numbers), indices


def whole_step(task: Task, device: torch.device, steps: int) -> dict[str, Any]:
    """Wall-clock time of a step as the loop runs it, reading ahead included."""
    optimiser = make_sgd(task.groups, task.settings)
    task.module.train()

    def launch(planned: Steps) -> None:
        for step, indices, tensors in prefetch(planned, task.load, device):
            sgd_step(task, optimiser, partial(task.terms, indices, tensors, step, 0))

    def take(planned: Steps) -> float:
        """Seconds that these steps take."""
        start = time.perf_counter()
        launch(planned)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    coming = _steps(task)
    take(list(islice(coming, max(1, steps // 5))))
    timed = list(islice(coming, steps))
    seconds = take(timed)
    frames = sum(len(indices.clips) for _, indices in timed)
    result = {"step_ms": 1e3 * seconds / steps, "frames_per_s": frames / seconds}
    if device.type == "cuda":
        result |= {"gpu_busy_percent": _busy(take, timed[:30]), "host_waits": _host_waits(launch, timed[:1])}
    return result


def _busy(take: Callable[[Steps], float], steps: Steps) -> float:
    """Share of the time in which the device works, in percent.

    The device's time comes from a profile, the whole from a run of the same steps without one: to note the beginning
    and end of every kernel takes time between them.
    """
    seconds = take(steps)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        take(steps)
    kernels = sum(event.self_device_time_total for event in profile.key_averages())
    return float(100 * kernels / (1e6 * seconds))


def _host_waits(launch: Callable[[Steps], None], steps: Steps) -> int:
    """How many times a step makes the host wait for the device; torch raises at the first."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        launch(steps)
    except RuntimeError as error:
        print(f"the step waits: {error}")
        return 1
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return 0


def _parts(task: Task, config: Config, classifier: Classifier, device: torch.device) -> dict[str, float]:
    """Each part by itself, warm, median; on a GPU what the device needs for it, however long the host takes to launch.

    Reading and copying overlap with the other parts.
    """
    settings, size = config.stage2("colocam"), config.frames.crop
    indices = task.plan(0)[0]
    host = task.load(indices, 0)
    loaded = {name: tensor.to(device) for name, tensor in host.items()}
    frames = crop(loaded["frames"], loaded["crops"], size).float()
    full = F.interpolate(loaded["cams"][:, None], size=config.frames.resize, mode="bilinear", align_corners=False)
    cams = crop(full, loaded["crops"], size)[:, 0]
    noise = seed_noise(cams.shape, torch.Generator(device).manual_seed(0))
    labels = sample_seeds(cams, settings.seeds, *noise)
    net = LocalizerNet(classifier, settings.decoder).to(device).train()
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    with torch.no_grad(), half():
        features = classifier(frames).features
    logits = torch.zeros(len(frames), 2, size, size, device=device, requires_grad=True)
    maps = foreground(logits).detach().requires_grad_()
    inputs = StepTensors(frames, maps, logits, labels, loaded["sequences"], indices.count, epoch=0)
    terms = {term.name: term.module for term in loss_terms(settings.losses)}

    def encoder(_: int) -> None:
        with torch.no_grad(), half():
            classifier(frames)

    def decoder(_: int) -> None:
        with half():
            out = net.decoder(frames, features)
        out.float().square().mean().backward()

    parts: dict[str, Callable[[int], object]] = {
        "read": lambda _: task.load(indices, 0),
        "copy": lambda _: {name: tensor.to(device) for name, tensor in host.items()},
        "crop": lambda _: crop(loaded["frames"], loaded["crops"], size).float(),
        "seeds": lambda _: sample_seeds(cams, settings.seeds, *noise),
        "encoder": encoder,
        "decoder": decoder,
        "partial CE": lambda _: torch.autograd.backward(terms["seeds"](inputs)),
        "CRF": lambda _: torch.autograd.backward(terms["crf"](inputs)),
        "colour": lambda _: torch.autograd.backward(terms["coloc"](inputs)),
    }
    if device.type != "cuda":
        return {name: timing.median_ms(part, device, 3) for name, part in parts.items()}
    by_host = {"read", "copy"}
    return {
        name: (timing.median_ms if name in by_host else timing.graph_ms)(part, device, 30)
        for name, part in parts.items()
    }

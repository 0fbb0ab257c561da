"""One step of stage 2 and its parts: from the frame cache to the new weights."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from colocam.bench import timing
from colocam.bench.frames import make_frames
from colocam.bench.record import conditions, headline, keep
from colocam.cams.store import CamStore
from colocam.config import Config, load_config
from colocam.data.augment import crop
from colocam.data.batches import Picks
from colocam.data.samples import spread_samples
from colocam.data.store import ROW, CachedClip
from colocam.losses import CRFLoss, PartialCrossEntropy
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.seeds import draw_seeds
from colocam.training.loop import Task, sgd_step
from colocam.training.optimiser import make_sgd
from colocam.training.prefetch import Tensors, prefetch
from colocam.training.stage2 import color_term, localizer_task
from colocam.training.validation import Judge
from colocam.types import Clip

CLIPS, LENGTH = 64, 16
CLASSES = tuple(f"class {i}" for i in range(10))
PUBLISHED_MS = 840.0
"""A step of 32 frames on an A100, by the paper."""


def run(
    device: str = "cpu", json_path: Path | None = None, config: Config | None = None, steps: int = 0
) -> dict[str, Any]:
    """Measure, print, and write to ``json_path``: the preset ``paper`` on a GPU, ``cpu`` on a CPU, random weights."""
    where = torch.device(device)
    preset = "paper" if where.type == "cuda" else "cpu"
    config = config or load_config(preset, overrides=["backbone.pretrained=false"])
    steps = steps or (100 if where.type == "cuda" else 5)
    with TemporaryDirectory() as folder:
        clips = _cached_clips(Path(folder), config.frames.resize)
        classifier = Classifier(config.backbone, len(CLASSES)).to(where).eval()
        cams = _smooth_cams(classifier, clips, config, where)
        judge = Judge(spread_samples(clips[:1], CLASSES, 1), None, CLASSES, config.frames.crop, where)
        task = localizer_task(config, "colocam", classifier, clips, cams, judge)
        what = f"stage 2, {config.backbone.name}, {config.frames.crop}², {config.localizer.batch} frames a step"
        result = {
            **conditions(what, where),
            "published_step_ms": PUBLISHED_MS,
            **_whole_step(task, where, steps),
            "parts_ms": _parts(task, config, classifier, where),
        }
    print(headline(result))
    for name in ("step_ms", "frames_per_s", "gpu_busy_percent", "host_waits"):
        if name in result:
            print(f"{name:18} {result[name]:.2f}")
    for name, ms in result["parts_ms"].items():
        print(f"  {name:16} {ms:.2f} ms")
    return keep(result, json_path)


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


def _steps(task: Task) -> Iterator[tuple[int, Picks]]:
    """Step after step, epoch after epoch, without end."""
    numbers = count()
    for epoch in count():
        for picks in task.plan(epoch):
            yield next(numbers), picks


def _whole_step(task: Task, device: torch.device, steps: int) -> dict[str, Any]:
    """Wall-clock time of a step as the loop runs it, reading ahead included."""
    optimiser = make_sgd(task.groups, task.settings)
    task.module.train()
    source = prefetch(_steps(task), task.load, device)

    def advance(number: int) -> int:
        frames = 0
        for step, picks, tensors in islice(source, number):
            sgd_step(task, optimiser, partial(task.terms, picks, tensors, step, 0))
            frames += len(picks.clips)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return frames

    advance(max(3, steps // 5))
    start = time.perf_counter()
    frames = advance(steps)
    seconds = time.perf_counter() - start
    result = {"step_ms": 1e3 * seconds / steps, "frames_per_s": frames / seconds}
    if device.type == "cuda":
        result |= {"gpu_busy_percent": _busy(advance), "host_waits": _host_waits(task, optimiser, source)}
    source.close()  # type: ignore[attr-defined]  # a generator
    return result


def _busy(advance: Callable[[int], int]) -> float:
    """Share of the time in which a kernel runs, in percent."""
    steps = 20
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        start = time.perf_counter()
        advance(steps)
        seconds = time.perf_counter() - start
    kernels = sum(event.self_device_time_total for event in profile.key_averages())
    return float(100 * kernels / (1e6 * seconds))


def _host_waits(task: Task, optimiser: torch.optim.SGD, source: Iterator[tuple[int, Picks, Tensors]]) -> int:
    """How many times a step makes the host wait for the device; torch raises at the first."""
    step, picks, tensors = next(source)
    torch.cuda.set_sync_debug_mode("error")
    try:
        sgd_step(task, optimiser, partial(task.terms, picks, tensors, step, 0))
    except RuntimeError as error:
        print(f"the step waits: {error}")
        return 1
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return 0


def _parts(task: Task, config: Config, classifier: Classifier, device: torch.device) -> dict[str, float]:
    """Each part by itself, warm, median; the parts of the step overlap, so their sum is more than the step."""
    settings, size = config.stage2("colocam"), config.frames.crop
    picks = task.plan(0)[0]
    host = task.load(picks, 0)
    loaded = {name: tensor.to(device) for name, tensor in host.items()}
    frames = crop(loaded["frames"], loaded["crops"], size).float()
    full = F.interpolate(loaded["cams"][:, None], size=config.frames.resize, mode="bilinear", align_corners=False)
    cams = crop(full, loaded["crops"], size)[:, 0]
    rng = torch.Generator(device).manual_seed(0)
    labels = draw_seeds(cams, settings.seeds, rng)
    net = LocalizerNet(classifier, settings.decoder).to(device).train()
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    with torch.no_grad(), half():
        features = classifier(frames).features
    logits = torch.zeros(len(frames), 2, size, size, device=device, requires_grad=True)
    maps = foreground(logits).detach().requires_grad_()
    losses = settings.losses
    seed_loss, crf_loss, color_loss = (
        PartialCrossEntropy(),
        CRFLoss(losses.sigma_rgb, losses.sigma_xy),
        color_term(losses),
    )

    def encoder(_: int) -> None:
        with torch.no_grad(), half():
            classifier(frames)

    def decoder(_: int) -> None:
        with half():
            out = net.decoder(frames, features)
        out.float().square().mean().backward()

    parts: dict[str, Callable[[int], object]] = {
        "read": lambda _: task.load(picks, 0),
        "copy": lambda _: {name: tensor.to(device) for name, tensor in host.items()},
        "crop": lambda _: crop(loaded["frames"], loaded["crops"], size).float(),
        "seeds": lambda _: draw_seeds(cams, settings.seeds, rng),
        "encoder": encoder,
        "decoder": decoder,
        "partial CE": lambda _: seed_loss(logits, labels).backward(),
        "CRF": lambda _: crf_loss(frames, maps).backward(),
        "colour": lambda _: color_loss(frames, maps, loaded["sequences"], picks.count).backward(),
    }
    repeats = 30 if device.type == "cuda" else 3
    return {name: timing.median_ms(part, device, repeats) for name, part in parts.items()}

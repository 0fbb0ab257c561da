"""One training step of either stage on synthetic clips: the tasks, and their time."""

import time
from collections.abc import Iterator, Sequence
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
from colocam.config import Config
from colocam.data.augment import whole
from colocam.data.batches import BatchIndices, read_frames, spread_samples
from colocam.data.frame_cache import ROW, CachedClip
from colocam.models import Classifier, make_classifier
from colocam.training.frozen_encoder import BATCH, fit_logistic
from colocam.training.loop import Task, make_sgd, sgd_step
from colocam.training.stage1 import classifier_task
from colocam.training.stage2 import localizer_task
from colocam.training.validation import Validator
from colocam.types import Clip
from colocam.utils.prefetch import prefetch
from lab.measuring import make_frames

CLIPS, LENGTH = 64, 16
"""Number of clips, and of frames in each."""
CLASSES = tuple(f"class {i}" for i in range(10))

Steps = Sequence[tuple[int, BatchIndices]]
"""Index and frames of each step."""


def default_steps(device: torch.device) -> int:
    """Number of timed steps on a device."""
    return 100 if device.type == "cuda" else 5


@contextmanager
def both_stages(config: Config, device: torch.device) -> Iterator[tuple[Task | None, Task, Classifier]]:
    """Tasks of stage 1 and stage 2 (CoLo-CAM) and the classifier of stage 2, over clips in a temporary frame cache.

    A stage 1 by logistic regression has no steps: None.
    """
    with TemporaryDirectory() as folder:
        clips = _cached_clips(Path(folder), config.frames.resize)
        classifier = make_classifier(config, config.backbone, len(CLASSES)).to(device).eval()
        cams = _smooth_cams(classifier, clips, config, device)
        validator = Validator(spread_samples(clips[:1], CLASSES, 1), None, CLASSES, config.frames, device)
        sgd = config.classifier.fit == "sgd"
        stage1 = classifier_task(config, clips, CLASSES, validator) if sgd else None
        stage2 = localizer_task(config, "colocam", classifier, clips, cams, validator)
        yield stage1, stage2, classifier


def _cached_clips(folder: Path, size: int) -> list[CachedClip]:
    """Clips in a frame cache, as decoding writes them."""
    frames = make_frames(LENGTH, size, "scene")[0].permute(0, 2, 3, 1).contiguous().numpy()
    rows = np.array([(i, i / 25, size, size) for i in range(LENGTH)], ROW)
    clips = []
    for i in range(CLIPS):
        file = folder / f"{i}.rgb"
        frames.tofile(file)
        clip = Clip(f"clip {i}", CLASSES[i % len(CLASSES)], "train", file, f"video {i}")
        clips.append(CachedClip(clip, file, size, rows))
    return clips


def _smooth_cams(classifier: Classifier, clips: list[CachedClip], config: Config, device: torch.device) -> CamStore:
    """CAMs of one moving blob at the resolution of the features."""
    side = config.frames.crop
    with torch.inference_mode():
        cells = classifier.encoder(torch.zeros(1, 3, side, side, device=device))[-1].shape[-1]
    maps = F.adaptive_avg_pool2d(make_frames(LENGTH, side, "noise")[1], cells).half().numpy()
    return CamStore(np.tile(maps, (len(clips), 1, 1)), [len(clip) for clip in clips])


def _steps(task: Task) -> Iterator[tuple[int, BatchIndices]]:
    """Endless steps, epoch after epoch."""
    index = count()
    for epoch in count():
        for indices in task.plan(epoch):
            yield next(index), indices


def whole_step(task: Task, device: torch.device, steps: int) -> dict[str, Any]:
    """Wall-clock time of a step as the training loop runs it, with prefetching."""
    optimizer = make_sgd(task.groups, task.settings)
    task.module.train()

    def take(planned: Steps) -> float:
        """Seconds of these steps."""
        start = time.perf_counter()
        for step, indices, tensors in prefetch(planned, task.load, device):
            sgd_step(task, optimizer, partial(task.terms, indices, tensors, step, 0))
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
        # A profile adds time between the kernels, so the total time is of a run without one.
        seconds = take(timed[:30])
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            take(timed[:30])
        kernels = sum(event.self_device_time_total for event in profile.key_averages())
        result["gpu_busy_percent"] = float(100 * kernels / (1e6 * seconds))
    return result


def time_logistic(config: Config, device: torch.device) -> dict[str, Any]:
    """Stage 1 by logistic regression: frames per second from the frame cache to features, and seconds of the fit."""
    with TemporaryDirectory() as folder:
        clips = _cached_clips(Path(folder), config.frames.resize)
        classifier = make_classifier(config, config.backbone, len(CLASSES)).to(device).eval()
        samples = spread_samples(clips, CLASSES, LENGTH if device.type == "cuda" else 1)
        starts = range(0, len(samples), BATCH)

        def encode(batches: int | None) -> torch.Tensor:
            """Features of the first batches, or of all."""
            parts = enumerate(samples.indices.part(slice(start, start + BATCH)) for start in starts)
            read = prefetch(parts, lambda indices, _: {"frames": read_frames(samples.clips, indices)}, device)
            found = []
            for _, _, loaded in islice(read, batches):
                images = classifier.class_frames(whole(loaded["frames"], config.frames.crop))
                found.append(classifier.pooled(classifier.encoder(images)[-1]))
            return torch.cat(found).cpu()  # waits for the device

        with torch.no_grad():
            encode(2)  # a warm-up
            began = time.perf_counter()
            encoded = encode(None)
        seconds = time.perf_counter() - began
    views = config.classifier.views
    features = encoded.to(device).repeat(views, 1)
    features += 0.1 * features.std() * torch.randn_like(features)
    classes, began = samples.classes.repeat(views).to(device), time.perf_counter()
    weight, _ = fit_logistic(features, classes, torch.ones_like(classes), len(CLASSES), config.classifier.penalty)
    weight.cpu()
    fit_s = time.perf_counter() - began
    return {"frames_per_s": len(samples) / seconds, "features": len(features), "fit_s": fit_s}

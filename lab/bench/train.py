"""Benchmark of training: a step of stage 2 and its parts, and a step of stage 1 or its logistic regression."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from colocam.config import Config, load_config
from colocam.data.augment import crop
from colocam.losses import StepTensors
from colocam.models import Classifier, LocalizerNet, foreground
from colocam.models.classifier import at_side
from colocam.training.loop import Task
from colocam.training.seeds import sample_seeds, seed_noise
from colocam.training.stage2 import loss_terms
from lab import measuring as timing
from lab.measuring import conditions, headline, keep
from lab.training_step import both_stages, default_steps, time_logistic, whole_step

PUBLISHED_MS = 840.0
"""The paper's step of 32 frames on an A100."""
PRESETS = {"cuda": ("resnet50", "paper"), "cpu": ("demo",)}


def run(
    device: str = "cpu",
    json_path: Path | None = None,
    presets: Sequence[str] = (),
    steps: int = 0,
    configs: Mapping[str, Config] | None = None,
) -> dict[str, Any]:
    """Measure, print, and write to ``json_path``.

    Args:
        device: ``cpu`` or ``cuda``.
        json_path: file of the result.
        presets: to measure, with random weights; by default the one that is shipped for the device, and on a GPU also
            the paper's.
        steps: of each stage; 0: as many as suit the device.
        configs: to measure instead, by name.
    """
    where = torch.device(device)
    names = presets or PRESETS[where.type]
    configs = configs or {name: load_config(name, overrides=["backbone.pretrained=false"]) for name in names}
    result = {**conditions("a training step", where), "published_step_ms": PUBLISHED_MS, "cases": []}
    print(headline(result))
    for name, config in configs.items():
        result["cases"].append(_case(name, config, where, steps or default_steps(where)))
    return keep(result, json_path)


def _case(name: str, config: Config, device: torch.device, steps: int) -> dict[str, Any]:
    with both_stages(config, device) as (stage1, stage2, classifier):
        what = f"{name}: stage 2, {config.backbone.name}, {config.frames.crop}², {config.localizer.batch} frames a step"
        row = {"name": name, "what": what, **whole_step(stage2, device, steps)}
        _print_step(what, row)
        row["parts_ms"] = _parts(stage2, config, classifier, device)
        for part, ms in row["parts_ms"].items():
            print(f"  {part:16} {ms:.2f} ms", flush=True)
        row["stage1"] = whole_step(stage1, device, steps) if stage1 else None
    if row["stage1"]:
        _print_step(f"{name}: stage 1, {config.classifier.batch} frames a step", row["stage1"])
    else:
        row["logistic"] = time_logistic(config, device)
        told = "{frames_per_s:.1f} frames/s to features; {features} features in {fit_s:.2f} s to the head"
        print(f"{name}: stage 1, logistic regression: {told.format(**row['logistic'])}", flush=True)
    return row


def _print_step(what: str, measured: dict[str, Any]) -> None:
    print(what)
    for name in ("step_ms", "frames_per_s", "gpu_busy_percent"):
        if name in measured:
            print(f"{name:24} {measured[name]:.2f}", flush=True)


def _parts(task: Task, config: Config, classifier: Classifier, device: torch.device) -> dict[str, float]:
    """Median milliseconds of each part by itself, after warm-up; on a GPU the device's time without the launches.

    In training, reading and copying overlap with the other parts.
    """
    settings, size, side = config.stage2("colocam"), config.frames.crop, config.frames.map_side
    indices = task.plan(0)[0]
    host = task.load(indices, 0)
    loaded = {name: tensor.to(device) for name, tensor in host.items()}
    frames = crop(loaded["frames"], loaded["crops"], size).float()
    full = F.interpolate(loaded["cams"][:, None], size=config.frames.resize, mode="bilinear", align_corners=False)
    cams = at_side(crop(full, loaded["crops"], size), side)[:, 0]
    noise = seed_noise(cams.shape, torch.Generator(device).manual_seed(0))
    labels = sample_seeds(cams, settings.seeds, *noise)
    net = LocalizerNet(classifier, settings.decoder, map_size=config.frames.map_size).to(device).train()
    half = partial(torch.autocast, device.type, torch.bfloat16, enabled=device.type == "cuda")
    with torch.no_grad(), half():
        features = classifier.encoder(frames)
    logits = torch.zeros(len(frames), 2, side, side, device=device, requires_grad=True)
    maps = foreground(logits).detach().requires_grad_()
    inputs = StepTensors(at_side(frames, side), maps, logits, labels, loaded["sequences"], indices.count, epoch=0)
    terms = {term.name: term.module for term in loss_terms(settings.losses)}

    def encoder(_: int) -> None:
        with torch.no_grad(), half():
            classifier.encoder(frames)

    def decoder(_: int) -> None:
        with half():
            out = net.decode(frames, features)
        torch.autograd.backward(out.float().square().mean())

    parts: dict[str, Callable[[int], object]] = {
        "read": lambda _: task.load(indices, 0),
        "copy": lambda _: {name: tensor.to(device) for name, tensor in host.items()},
        "crop": lambda _: crop(loaded["frames"], loaded["crops"], size).float(),
        "seeds": lambda _: sample_seeds(cams, settings.seeds, *noise),
        "encoder": encoder,
        "decoder": decoder,
        "partial CE": lambda _: torch.autograd.backward(terms["seeds"](inputs)),
        "CRF": lambda _: torch.autograd.backward(terms["crf"](inputs)),
        "size": lambda _: torch.autograd.backward(terms["size"](inputs)),
        "color": lambda _: torch.autograd.backward(terms["coloc"](inputs)),
    }
    repeats = 30 if device.type == "cuda" else 3
    on_device = parts.keys() - {"read", "copy"} if device.type == "cuda" else set()
    return {
        name: (timing.graph_ms if name in on_device else timing.median_ms)(part, device, repeats)
        for name, part in parts.items()
    }

"""Benchmark of a training step: a step of stage 2 and its parts, and a step of stage 1, where it has steps."""

from collections.abc import Callable
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
from lab.training_step import both_stages, default_steps, whole_step

PUBLISHED_MS = 840.0
"""The paper's step of 32 frames on an A100."""


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
            "stage1": whole_step(stage1, where, steps) if stage1 else None,
        }
    print(headline(result))
    _print_step(result)
    for name, ms in result["parts_ms"].items():
        print(f"  {name:16} {ms:.2f} ms")
    if result["stage1"]:
        print(f"stage 1, {config.classifier.batch} frames a step")
        _print_step(result["stage1"])
    else:
        print("stage 1 is a logistic regression (classifier.fit) and has no steps")
    return keep(result, json_path)


def _print_step(measured: dict[str, Any]) -> None:
    for name in ("step_ms", "frames_per_s", "gpu_busy_percent", "host_waits"):
        if name in measured:
            print(f"{name:24} {measured[name]:.2f}")


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
        "colour": lambda _: torch.autograd.backward(terms["coloc"](inputs)),
    }
    if device.type != "cuda":
        return {name: timing.median_ms(part, device, 3) for name, part in parts.items()}
    by_host = {"read", "copy"}
    return {
        name: (timing.median_ms if name in by_host else timing.graph_ms)(part, device, 30)
        for name, part in parts.items()
    }

"""Benchmark of the CAM methods: time of a batch, beside the classifier alone."""

from pathlib import Path
from typing import Any

import torch

from colocam.cams import CAMS, classifier_cams, extract
from colocam.config import Config, load_config
from colocam.models import make_classifier
from lab import measuring as timing
from lab.measuring import conditions, headline, keep, make_frames

CLASSES = 10


def run(device: str = "cpu", json_path: Path | None = None, config: Config | None = None) -> dict[str, Any]:
    """Measure, print, and write to ``json_path``: the preset ``paper`` on a GPU, ``demo`` on a CPU, random weights."""
    where = torch.device(device)
    preset = "paper" if where.type == "cuda" else "demo"
    config = config or load_config(preset, overrides=["backbone.pretrained=false"])
    batch, size = config.localizer.batch, config.frames.crop
    classifier = make_classifier(config, config.backbone, CLASSES).to(where).eval()
    frames = make_frames(batch, size, "scene")[0].to(where)
    classes = torch.arange(batch, device=where) % CLASSES

    def maps(method: str) -> None:
        with torch.inference_mode(), torch.autocast(where.type, torch.bfloat16, enabled=where.type == "cuda"):
            if method in CAMS:
                extract(method, classifier, frames, classes)
            else:
                classifier(frames)

    repeats, names = 30 if where.type == "cuda" else 3, ["classifier alone", *classifier_cams()]
    times = {name: timing.median_ms(lambda _, name=name: maps(name), where, repeats) for name in names}  # type: ignore[misc]
    result = {
        **conditions(f"class activation maps, {config.backbone.name}, {size}², {batch} frames a batch", where),
        "batch_ms": times,
        "frames_per_s": {name: 1e3 * batch / ms for name, ms in times.items()},
    }
    print(headline(result))
    for name, ms in times.items():
        print(f"  {name:18} {ms:9.2f} ms, {1e3 * batch / ms:9.1f} frames/s")
    return keep(result, json_path)

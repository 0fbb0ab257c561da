"""Cells that measure time and size of a frame, a step and the colour term, with random weights."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from colocam.cams import CAMS, extract
from colocam.config import Config
from colocam.inference.torch_network import TorchNetwork
from colocam.lab.measuring import timing
from colocam.lab.measuring.synthetic_frames import make_frames
from colocam.lab.measuring.training_step import both_stages, default_steps, whole_step
from colocam.lab.study.cells import CannotRunError, Result
from colocam.lab.study.workplace import Lab, device_name
from colocam.losses import CoLocLoss
from colocam.models import LocalizerNet, make_classifier
from colocam.run import untrained
from colocam.utils.device import choose_device
from colocam.utils.progress import say

CLASSES = 10
THROUGHPUT_BATCH = 64
"""Batch size for frames per second."""


@dataclass(frozen=True, slots=True)
class FrameTime:
    """Milliseconds of a single frame at the model's size: ``{"ms": …}``.

    ``method`` is a CAM, or ``localizer`` for the trained methods, which share one network.
    """

    method: str

    seeded = False

    @property
    def label(self) -> str:
        """Title of the measurement."""
        return f"time per frame, {self.method}"

    def identity(self, lab: Lab, seed: int) -> Result:  # noqa: ARG002 - the cells' signature
        """Network, size and device."""
        return {"time": self.method, **_network(lab)}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002
        """Median of repeated calls."""
        network = Network(lab.config(), lab.where)
        return {"ms": network.milliseconds(self.method, 1, 3 if lab.smoke else 20)}


@dataclass(frozen=True, slots=True)
class Cost:
    """Column of the complexity table for ``layercam`` or ``colocam``, with the keys of ``published.yaml``."""

    method: str

    seeded = False

    @property
    def label(self) -> str:
        """Title of the measurement."""
        return f"cost, {self.method}"

    def identity(self, lab: Lab, seed: int) -> Result:  # noqa: ARG002
        """Network, size, device and the configuration of a step."""
        return {"cost": self.method, "config": lab.config().model_dump(mode="json"), **_network(lab)}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002
        """Count and time."""
        config, device = lab.config(methods=("colocam",)), lab.where
        network = Network(config, device)
        module = network.net if self.method == "colocam" else network.net.classifier
        kind, repeats = ("localizer" if self.method == "colocam" else self.method), 3 if lab.smoke else 20
        batch = 4 if lab.smoke else THROUGHPUT_BATCH
        flops = network.flops(kind)
        sizes = [parameter.numel() for parameter in module.parameters()]
        # Within the localizer the classifier is frozen; alone, for LayerCAM, all of it is trained.
        learnable = [p.numel() for p in network.net.decoder.parameters()] if self.method == "colocam" else sizes
        say(f"{self.label}: a step")  # takes minutes on a CPU
        step_ms = self._step(config, device, smoke=lab.smoke)
        say(f"{self.label}: one frame, then {batch} at once")
        return {
            "step_s": step_ms / 1e3,
            "frame_ms": network.milliseconds(kind, 1, repeats),
            "frames_per_s": 1e3 * batch / network.milliseconds(kind, batch, repeats),
            "parameters_m": sum(sizes) / 1e6,
            "learnable_m": sum(learnable) / 1e6,
            "gflops": flops / 1e9,
            "gmacs": flops / 2e9,
            "backbone": config.backbone.name,
            "size": config.frames.crop,
        }

    def _step(self, config: Config, device: torch.device, *, smoke: bool) -> float:
        """Milliseconds of one SGD step: stage 2 with all its losses, or the classifier's."""
        plain = config.model_copy(update={"backbone": untrained(config)})
        with both_stages(plain, device) as (stage1, stage2, _):
            task = stage2 if self.method == "colocam" else stage1
            if task is None:
                raise CannotRunError(
                    f"{self.label} was not measured: a logistic regression has no steps; give --set classifier.fit=sgd"
                )
            steps = 2 if smoke else default_steps(device)
            return float(whole_step(task, device, steps)["step_ms"])


@dataclass(frozen=True, slots=True)
class LossTime:
    """Milliseconds of the colour term and its gradient on one sequence of n frames: ``{"ms": …}``."""

    device: str
    n: int
    size: int = 224

    seeded = False

    @property
    def label(self) -> str:
        """Title of the measurement."""
        return f"colour term, {self.device}, n = {self.n}"

    def identity(self, lab: Lab, seed: int) -> Result:  # noqa: ARG002
        """Size and device."""
        return {"colour term": self.n, "size": self.size, "device": device_name(choose_device(self.device))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002
        """Median of repeated calls."""
        device, loss = choose_device(self.device), CoLocLoss()
        frames, maps = (part.to(device) for part in make_frames(self.n, self.size, "scene"))
        maps.requires_grad_()
        sequence = torch.zeros(self.n, dtype=torch.int64, device=device)

        def step(_: int) -> None:
            torch.autograd.grad(loss(frames, maps, sequence, 1), maps)

        repeats = 2 if lab.smoke else 50 if device.type == "cuda" else 5
        return {"ms": timing.median_ms(step, device, repeats), "device": device_name(device)}


class Network:
    """A classifier and its decoder with random weights.

    CAMs are timed as the evaluation computes them, the localizer as ``colocam localize`` runs it. Frames are on the
    device.
    """

    def __init__(self, config: Config, device: torch.device) -> None:
        self.size, self.device = config.frames.crop, device
        classifier = make_classifier(config, untrained(config), CLASSES)
        self.net = LocalizerNet(classifier, config.localizer.decoder, map_size=config.frames.map_size).to(device).eval()

    def milliseconds(self, kind: str, batch: int, repeats: int) -> float:
        """Median time of ``batch`` frames."""
        frames = make_frames(batch, self.size, "scene")[0].to(self.device)
        if kind in CAMS:
            images = frames.float()
            return timing.median_ms(lambda _: self._maps(kind, images), self.device, repeats)
        network = TorchNetwork(copy.deepcopy(self.net), self.device, size=self.size)
        images = frames.to(memory_format=torch.channels_last)
        return timing.median_ms(lambda _: network.infer(images), self.device, repeats)

    def flops(self, kind: str) -> int:
        """Floating-point operations of one frame: convolutions and matrix products, two for each multiply-add."""
        frames = torch.zeros(1, 3, self.size, self.size, device=self.device)
        with FlopCounterMode(display=False) as counter:
            self._maps(kind, frames)
        return int(counter.get_total_flops())

    def _maps(self, kind: str, frames: torch.Tensor) -> Any:  # noqa: ANN401 - only its time counts
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            if kind in CAMS:
                return extract(
                    kind, self.net.classifier, frames, torch.zeros(len(frames), dtype=torch.int64).to(self.device)
                )
            return self.net(frames).map_logits


def _network(lab: Lab) -> Result:
    config = lab.config()
    return {
        "backbone": untrained(config).model_dump(mode="json"),
        "decoder": list(config.localizer.decoder),
        "size": config.frames.crop,
        "device": device_name(lab.where),
    }

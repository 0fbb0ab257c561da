"""What it costs: cells that measure time and size of a frame, a step and the color term, and their two studies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from colocam.cams import CAMS, extract
from colocam.config import Config
from colocam.models import LocalizerNet, make_classifier
from colocam.run import untrained
from colocam.utils.cuda_graphs import Recorded
from colocam.utils.device import choose_device
from colocam.utils.progress import say
from lab import measuring as timing
from lab.measuring import device_name, make_frames
from lab.study.cells import CannotRunError, Cell, Result
from lab.study.figures import Bars, Lines, Series
from lab.study.recipe import Findings, Results, Study, published
from lab.study.tables import Entry, Table
from lab.study.workplace import Lab
from lab.training_step import both_stages, default_steps, whole_step

CLASSES = 10
THROUGHPUT_BATCH = 64
"""Batch size for frames per second."""


@dataclass(frozen=True, slots=True)
class FrameTime(Cell):
    """Milliseconds of a single frame at the model's size: ``{"ms": …}``.

    ``method`` is a CAM, or ``localizer`` for the trained methods, which share one network.
    """

    method: str

    title = "time per frame, {cell.method}"
    seeded = False

    def identity(self, lab: Lab, seed: int) -> Result:  # noqa: ARG002 - the cells' signature
        """Network, size and device."""
        return {"time": self.method, **_network(lab)}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002
        """Median of repeated calls."""
        network = Network(lab.config(), lab.where)
        return {"ms": network.milliseconds(self.method, 1, 3 if lab.smoke else 20)}


@dataclass(frozen=True, slots=True)
class Cost(Cell):
    """Column of the complexity table for ``layercam`` or ``colocam``, with the keys of ``published.yaml``."""

    method: str

    title = "cost, {cell.method}"
    seeded = False

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
class LossTime(Cell):
    """Milliseconds of the color term and its gradient on one sequence of n frames: ``{"ms": …}``."""

    device: str
    n: int

    title = "color term, {cell.device}, n = {cell.n}"
    seeded = False

    def identity(self, lab: Lab, seed: int) -> Result:  # noqa: ARG002
        """Size and device."""
        return {"color term": self.n, "size": SIZE, "device": device_name(choose_device(self.device))}

    def run(self, lab: Lab, seed: int, folder: Path) -> Result:  # noqa: ARG002
        """Median of repeated calls."""
        device = choose_device(self.device)
        step = timing.loss_step(self.n, SIZE, [0] * self.n, "scene", device)
        repeats = 2 if lab.smoke else 50 if device.type == "cuda" else 5
        return {"ms": timing.median_ms(step, device, repeats), "device": device_name(device)}


class Network:
    """A classifier and its decoder with random weights.

    CAMs and the localizer are timed in one way: the plain network (batch norms not folded; on a GPU in bfloat16 where
    autocast allows it, and recorded as one CUDA graph), with frames on the device.
    """

    def __init__(self, config: Config, device: torch.device) -> None:
        self.size, self.device = config.frames.crop, device
        classifier = make_classifier(config, untrained(config), CLASSES)
        self.net = LocalizerNet(classifier, config.localizer.decoder, map_size=config.frames.map_size).to(device).eval()

    def milliseconds(self, kind: str, batch: int, repeats: int) -> float:
        """Median time of ``batch`` frames."""
        frames = {"frames": make_frames(batch, self.size, "scene")[0].to(self.device).float()}
        recorded = Recorded(lambda given: (self._maps(kind, given["frames"]),), batch, self.device)
        return timing.median_ms(lambda _: recorded(frames), self.device, repeats)

    def flops(self, kind: str) -> int:
        """Floating-point operations of one frame: convolutions and matrix products, two for each multiply-add."""
        frames = torch.zeros(1, 3, self.size, self.size, device=self.device)
        with FlopCounterMode(display=False) as counter:
            self._maps(kind, frames)
        return int(counter.get_total_flops())

    def _maps(self, kind: str, frames: torch.Tensor) -> Any:  # noqa: ANN401 - only its time counts
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            if kind in CAMS:
                classes = torch.zeros(len(frames), dtype=torch.int64, device=self.device)
                return extract(kind, self.net.classifier, frames, classes)
            return self.net(frames).map_logits


def _network(lab: Lab) -> Result:
    config = lab.config()
    return {
        "backbone": untrained(config).model_dump(mode="json"),
        "decoder": list(config.localizer.decoder),
        "size": config.frames.crop,
        "device": device_name(lab.where),
        "pass": "recorded, plain network",  # earlier versions timed each method in its own way
    }


SIZE = 224
"""Side of the frames of the color term."""
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def devices(lab: Lab) -> list[str]:
    """The CPU, and the GPU if there is one and the CPU was not requested."""
    return ["cpu"] if lab.device == "cpu" or not torch.cuda.is_available() else ["cpu", lab.device or "cuda"]


def read_loss_time(lab: Lab, results: Results) -> Findings:
    """A curve for each device."""
    lengths, numbers = lab.few(COUNTS), published("loss-time")["ms"]
    theirs = [numbers.get(n) for n in lengths]
    ours = {}
    for device in devices(lab):
        name = next((found["device"] for n in lengths for found in results.of(LossTime(device, n))), device)
        ours[f"ours, {name}, ms"] = [results.value(LossTime(device, n), "ms") for n in lengths]
    table = Table(
        "table",
        f"Color term, value and gradient over the maps, one sequence of n frames of {SIZE}², median",
        ("frames", *ours, "published, ms"),
        tuple((f"n = {n}", *row) for n, *row in zip(lengths, *ours.values(), theirs, strict=True)),
        digits=2,
    )
    series = [*(Series(title, column) for title, column in ours.items()), Series("published", theirs, published=True)]
    lines = Lines("frames n", "milliseconds", tuple(map(float, lengths)), tuple(series), log=True)
    return Findings([table], [lines])


LOSS_TIME = Study(
    "loss-time",
    "What does the color term cost?",
    lambda lab: [LossTime(device, n) for device in devices(lab) for n in lab.few(COUNTS)],
    read_loss_time,
    (
        "Ours: scenes with the statistics of photographs, default tolerance (0.5 % of the exact product).",
        "The published time is of a lattice on CPU and GPU; the paper does not say whether it includes the gradient.",
    ),
)


ROWS = {
    "step_s": "SGD step, s",
    "frame_ms": "inference of one frame, ms",
    "frames_per_s": "inference, frames/s",
    "parameters_m": "parameters, M",
    "learnable_m": "learnable parameters, M",
    "gflops": "FLOPs of one frame, G",
    "gmacs": "MACs of one frame, G",
}
LAYERCAM, COLOCAM = Cost("layercam"), Cost("colocam")


def read_cost(lab: Lab, results: Results) -> Findings:
    """Both methods beside the published ones, and CoLo-CAM relative to LayerCAM as bars."""
    numbers = published("cost")["rows"]
    rows: list[tuple[Entry, ...]] = []
    ratios: list[Entry] = []
    for key, title in ROWS.items():
        layercam, colocam = results.value(LAYERCAM, key), results.value(COLOCAM, key)
        theirs = numbers[key]
        rows.append((title, layercam, colocam, theirs["layercam"], theirs["colocam"]))
        ratios.append(colocam.mean / layercam.mean if colocam and layercam else None)
    found = next(iter(results.of(COLOCAM)), {})
    where = f"{found.get('backbone')}, {found.get('size')}², {found.get('device')}"
    settings = lab.config()
    table = Table(
        "table",
        f"Ours: {where}, steps of {settings.classifier.batch} (LayerCAM), {settings.localizer.batch} (CoLo-CAM); "
        "published: ResNet50, 224², A100, steps of 32",
        ("quantity", "LayerCAM, ours", "CoLo-CAM, ours", "LayerCAM, published", "CoLo-CAM, published"),
        tuple(rows),
        digits=3,
    )
    published_ratios = [numbers[key]["colocam"] / numbers[key]["layercam"] for key in ROWS]
    bars = Bars(
        "CoLo-CAM relative to LayerCAM",
        tuple(ROWS.values()),
        (Series("ours", ratios), Series("published", published_ratios, published=True)),
    )
    return Findings([table], [bars])


COST = Study(
    "cost",
    "What do training and inference cost?",
    lambda _: [LAYERCAM, COLOCAM],
    read_cost,
    (
        "LayerCAM is one pass without gradients here (docs/guide/cams.md); the published one differentiates.",
        "LayerCAM's step is one of stage 1, CoLo-CAM's one of stage 2 with all losses.",
        "Inference: a plain pass, recorded on a GPU; 'colocam localize' is faster (lab/notes/speed.md).",
        "FLOPs: convolutions and matrix products (torch.utils.flop_counter), two for each multiply-add.",
        "The preset decides backbone and size: --preset paper gives the published network.",
    ),
)

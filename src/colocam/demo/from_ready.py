"""The end of the demo: start from the ready model, as users without a GPU do, and compare that with learning alone.

Tests: tests/demo/test_run_demo.py.
"""

import csv
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from colocam.config import load_config
from colocam.demo.world import World
from colocam.evaluation.glance import Glances, Right, right_in
from colocam.training import train
from colocam.utils.files import write_text
from colocam.utils.progress import say
from colocam.utils.ready_folders import DEFAULT, ready_run

VIDEOS = 10
"""Training videos of each class: half of those that the model from nothing learns from."""
SHORTER = (
    "classifier.frames_per_clip=4",
    "classifier.views=2",
    "localizer.looks=1",
    "start.decoder=keep",  # training it on its own boxes would take minutes
)
"""What the demo takes from the preset ``laptop``, to end within its ten minutes."""


def start_from_ready(out: Path, run: Path, world: World, minutes: float, *, seed: int, sets: Sequence[str]) -> None:
    """Train from the ready model on half of the demo's training videos; print both models side by side.

    Args:
        out: the demo's folder; gets ``start.csv`` and the run ``start-<seed>``.
        run: the model that was trained from nothing.
        world: the videos.
        minutes: that its training took.
        seed: of the training.
        sets: further overrides of the preset ``laptop``.
    """
    if ready_run(DEFAULT) is None:
        say(f"skipped: the ready model {DEFAULT} is not installed; 'pip install ./models' installs it")
        return
    folder = out / f"start-{seed}"
    config = load_config("laptop", overrides=[f"seed={seed}", *SHORTER, *sets])
    pictures = Glances(folder / "picture.jpg", folder, world.truth, {"start": 1, "colocam": 1})
    begin = time.monotonic()
    train(_fewer_videos(world.manifest, out / "start.csv"), folder, config, frames=out / "frames", after_epoch=pictures)
    say(f"training took {(time.monotonic() - begin) / 60:.1f} minutes, from scratch {minutes:.1f}")
    _print_both([world.manifest, out / "start.csv"], [right_in(path, world.truth) for path in (run, folder)])


def _fewer_videos(manifest: Path, path: Path) -> Path:
    """Write a manifest with the first :data:`VIDEOS` training videos of each class, and all others."""
    with manifest.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    seen: Counter[str] = Counter()
    lines = [",".join(rows[0])]
    for row in rows:
        seen[row["tag"]] += row["split"] == "train"
        if row["split"] != "train" or seen[row["tag"]] <= VIDEOS:
            lines.append(",".join(row.values()))
    write_text(path, "\n".join(lines) + "\n")
    return path


def _print_both(manifests: Sequence[Path], rights: Sequence[Right]) -> None:
    table = Table("", "trained from scratch", "started from the ready model")
    table.add_row("training videos", *(str(path.read_text(encoding="utf-8").count(",train,")) for path in manifests))
    table.add_row("box right, tag given", *(f"{right.boxes:.0f} %" for right in rights))
    table.add_row("class right", *(f"{right.classes:.0f} %" for right in rights))
    console = Console()
    console.print(f"with a model to start from and without one: {rights[0].frames} frames of the test videos")
    console.print(table)

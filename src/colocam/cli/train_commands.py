"""The commands that train: ``demo`` on videos that it generates, ``train`` on the user's own."""

import json
from pathlib import Path
from typing import Annotated

import typer

from colocam.cli.shared_options import ConfigFile, Device, Frames, Overrides, Preset
from colocam.utils.device import is_first
from colocam.utils.progress import say


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the videos and the run.")] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the training; it does not change the videos.")] = 0,
    world_seed: Annotated[
        int, typer.Option(help="Seed of the videos. The default settings were not tuned on the videos of seed 1.")
    ] = 1,
    *,
    videos_only: Annotated[bool, typer.Option("--videos-only", help="Generate the tagged videos and stop.")] = False,
    overrides: Overrides = None,
) -> None:
    """Generate tagged videos, train on their tags, evaluate, and write a report: a test of the whole method."""
    from colocam.lab.demo import run_demo

    run_demo(out, seed=seed, world_seed=world_seed, videos_only=videos_only, overrides=overrides or [])


def train(
    videos: Annotated[Path, typer.Argument(help="Folder VIDEOS/<tag>/…, or a CSV or parquet manifest.")],
    out: Annotated[Path, typer.Option(help="Run folder. The same command continues an interrupted run.")],
    preset: Preset = "cpu",
    config: ConfigFile = None,
    overrides: Overrides = None,
    boxes: Annotated[
        Path | None,
        typer.Option(
            help="CSV or parquet of true boxes, optional: those of validation videos choose epochs and threshold."
        ),
    ] = None,
    teacher: Annotated[
        Path | None,
        typer.Option(help="Run folder of a trained model that teaches a smaller network, e.g. of the preset lite0."),
    ] = None,
    frames: Frames = None,
    device: Device = None,
    test_boxes: Annotated[
        Path | None,
        typer.Option(help="CSV file of true boxes: after training, evaluate on the test videos and write the report."),
    ] = None,
) -> None:
    """Train a model on videos with one tag each. Ctrl-C stops it; the same command continues."""
    from colocam.config import load_config
    from colocam.errors import ColocamError
    from colocam.training import train as run_training

    taught = [] if teacher is None else [f"localizer.teacher={json.dumps(str(teacher))}"]  # any path, as YAML
    chosen = load_config(preset, config, [*(overrides or []), *taught])
    if test_boxes is not None and not test_boxes.is_file():  # before training, not hours later
        raise ColocamError(f"--test-boxes {test_boxes}: there is no such file")
    run = run_training(videos, out, chosen, boxes=boxes, frames=frames, device=device)
    if not is_first():
        return
    if test_boxes is not None:
        from colocam.evaluation.run_evaluation import evaluate
        from colocam.report import write_report
        from colocam.report.console import print_evaluations

        print_evaluations([evaluate(run, test_boxes, device=device)])
        say(f"report: {write_report(run)}")
    if (run / "model.json").is_file():
        say(f"trained: {run / 'model.json'}; now: colocam localize {run} VIDEO -o OUT")
    else:  # methods: []
        say(f"trained: {run / 'classifier'}, and no method; now: colocam evaluate {run} --boxes BOXES")

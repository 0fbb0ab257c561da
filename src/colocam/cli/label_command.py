"""``colocam label``: localisation tables of all films of a catalogue, by many processes or machines."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from colocam.cli.extensions import load_extensions, named_extensions
from colocam.cli.result_options import (
    Batch,
    Chooser,
    ColorMeanMode,
    End,
    Every,
    Focus,
    Fps,
    FrameRange,
    Instances,
    LeastPresence,
    Masks,
    Refine,
    Smoothing,
    Start,
    Tag,
    Threshold,
)
from colocam.cli.shared_options import Device
from colocam.utils.progress import say


def label(
    run: Annotated[Path, typer.Argument(help="Run folder of a trained model, or an ONNX file made from it.")],
    catalogue: Annotated[
        Path, typer.Argument(help="Folder of films, or a CSV or parquet table with 'path' and optionally 'tag'.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the labels, which several commands may share.")],
    *,
    shard: Annotated[str, typer.Option(help="Label part I of N of the films, written I/N, e.g. 3/8.")] = "1/1",
    workers: Annotated[int | None, typer.Option(help="Worker processes; default: what the machine has.")] = None,
    ray: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster whose actors label the films, e.g. auto.")
    ] = None,
    limit: Annotated[float, typer.Option(help="Seconds without progress after which a film is given up.")] = 300.0,
    retries: Annotated[int, typer.Option(help="Further attempts for a film whose worker died or was given up.")] = 3,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try films again that an earlier command set aside.")
    ] = False,
    masks: Masks = False,
    smooth: Smoothing = "offline",
    tag: Tag = None,
    presence: LeastPresence = None,
    instances: Instances = False,
    refine: Refine = None,
    threshold: Threshold = None,
    color_mean: ColorMeanMode = None,
    focus: Focus = None,
    chooser: Chooser = None,
    every: Every = 1,
    fps: Fps = None,
    start: Start = None,
    end: End = None,
    frames: FrameRange = ":",
    batch: Batch = None,
    device: Device = None,
) -> None:
    """Write a localisation table for each film of a catalogue; the same command again does what is missing."""
    from colocam.corpus.coordinator import Limits
    from colocam.corpus.films import parse_shard
    from colocam.corpus.label import Execution, label_films
    from colocam.video.frame_choice import FrameChoice, parse_frames

    label_films(
        run,
        catalogue,
        out,
        Execution(parse_shard(shard), workers, ray, Limits(limit, retries), retry_failed),
        choice=FrameChoice(every=every, fps=fps, start=start, end=end, frames=parse_frames(frames)),
        device=device,
        refine=refine,
        tag=tag,
        prepare=partial(load_extensions, named_extensions()),  # nodes of a cluster have another environment
        batch=batch,
        masks=masks,
        smooth=smooth,
        presence=presence,
        instances=instances,
        threshold=threshold,
        color_mean=color_mean,
        focus=focus,
        chooser=chooser,
    )
    say(f"wrote {out / 'films.parquet'}; next: colocam export {out} --to coco -o DATA")

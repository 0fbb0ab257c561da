"""Measure: speed of parts, and the studies of the paper."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from colocam.cli.shared_options import Boxes, ConfigFile, Device, Overrides, Preset
from colocam.errors import ColocamError
from colocam.utils.progress import say


def bench(
    name: Annotated[str, typer.Argument(help="What to time: affinity, cam, inference, train.")],
    json: Annotated[Path | None, typer.Option(help="Also write the numbers to this file.")] = None,
    device: Device = None,
) -> None:
    """Time a part, side by side with its alternatives."""
    benches = ("affinity", "cam", "inference", "train")
    if name not in benches:
        raise ColocamError(f"no bench '{name}': there is {', '.join(benches)}")
    import_module(f"colocam.lab.bench.bench_{name}").run(device or "cpu", json)


def study(
    name: Annotated[str | None, typer.Argument(help="Which study; --list names them.")] = None,
    data: Annotated[
        str, typer.Option(help="demo, a folder with manifest.csv and truth.csv ('colocam index'), or a manifest.")
    ] = "demo",
    boxes: Boxes = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds; 3, or 1 with --smoke.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder that all studies on these data share.")
    ] = None,
    preset: Preset = "cpu",
    config: ConfigFile = None,
    overrides: Overrides = None,
    device: Device = None,
    *,
    val_boxes: Annotated[
        bool, typer.Option("--val-boxes", help="Boxes of validation videos choose the epochs, as published.")
    ] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes, to see that everything runs.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the studies and stop.")] = False,
) -> None:
    """Repeat a table or a figure of the paper, with the published numbers beside ours."""
    from colocam.lab.study import list_studies, run_study

    if list_all or name is None:
        print(list_studies())
        return
    folder = run_study(
        name,
        data=data,
        boxes=boxes,
        out=out,
        seeds=seeds,
        preset=preset,
        config_file=config,
        overrides=tuple(overrides or ()),
        device=device,
        val_boxes=val_boxes,
        smoke=smoke,
    )
    say(f"wrote {folder / 'README.md'} and {folder / 'index.html'}")

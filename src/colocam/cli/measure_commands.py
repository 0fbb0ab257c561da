"""Benchmarks, and the studies of the paper: both are in the folder ``lab`` of a clone, and in no wheel."""

import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Annotated

from typer import Argument, Option

from colocam.cli import completion
from colocam.cli.shared_options import Boxes, ConfigFile, Device, Overrides, Preset
from colocam.errors import ColocamError, suggest
from colocam.utils.progress import say

BENCHMARKS = ("affinity", "boxes", "cam", "inference", "train")
CLONE = Path(__file__).resolve().parents[3]
"""The repository, where this package lies in its folder ``src``."""


def _from_laboratory(module: str) -> ModuleType:
    """Import a module of the laboratory."""
    if not (CLONE / "lab" / "measuring.py").is_file():
        raise ColocamError(
            "benchmarks and studies are not part of the wheel: clone the repository and run 'make install' there"
        )
    if str(CLONE) not in sys.path:
        sys.path.insert(0, str(CLONE))
    return import_module(f"lab.{module}")


def bench(
    name: Annotated[
        str,
        Argument(help=f"Benchmark: {', '.join(BENCHMARKS)}.", autocompletion=completion.one_of(*BENCHMARKS)),
    ],
    json: Annotated[Path | None, Option(help="Also write the result to this JSON file.")] = None,
    device: Device = None,
    presets: Annotated[
        list[str] | None,
        Option(
            "--preset",
            help="inference, train: preset to measure; repeat for more.",
            autocompletion=completion.presets,
        ),
    ] = None,
    models: Annotated[
        list[Path] | None, Option("--model", metavar="RUN", help="inference: trained model to measure instead.")
    ] = None,
    videos: Annotated[int | None, Option(min=1, help="inference: number of videos of 300 frames.")] = None,
    segmenter: Annotated[Path | None, Option(help="inference: segmenter of --refine; default: random.")] = None,
) -> None:
    """Benchmark the commands, the training step, or a part against its alternatives."""
    if name not in BENCHMARKS:
        raise ColocamError(f"no benchmark '{name}'{suggest(name, BENCHMARKS)}")
    benchmark = _from_laboratory(f"bench.{name}")
    from colocam.utils.device import choose_device
    from colocam.utils.files import refuse_replacing

    if json is not None:
        refuse_replacing(json, b'{\n  "what": ', "result of a benchmark")
    given = {"presets": presets, "models": models, "videos": videos, "segmenter": segmenter}
    options = {option: value for option, value in given.items() if value is not None}
    for option in options.keys() - signature(benchmark.run).parameters.keys():
        raise ColocamError(f"the benchmark {name} takes no {option}: leave that option out")
    benchmark.run(str(choose_device(device)), json, **options)


def study(
    name: Annotated[str | None, Argument(help="Name of the study; --list shows them.")] = None,
    data: Annotated[
        str, Option(help="demo, a folder with manifest.csv and truth.csv ('colocam index'), or a manifest.")
    ] = "demo",
    boxes: Boxes = None,
    seeds: Annotated[int | None, Option(help="Number of seeds. Default: 3, with --smoke 1.")] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="Folder of the studies. Default: studies/DATA.")] = None,
    preset: Preset = "cpu",
    config: ConfigFile = None,
    overrides: Overrides = None,
    device: Device = None,
    *,
    val_boxes: Annotated[
        bool, Option("--val-boxes", help="Choose epochs with the boxes of validation videos, as published.")
    ] = False,
    smoke: Annotated[bool, Option("--smoke", help="Tiny sizes, to test that everything runs.")] = False,
    values: Annotated[
        list[float] | None, Option(help="Run only this value of what the study varies, e.g. λ_c; repeatable.")
    ] = None,
    list_all: Annotated[bool, Option("--list", help="List the studies and exit.")] = False,
) -> None:
    """Repeat a table or a figure of the paper, with the published numbers beside the results."""
    studies = _from_laboratory("study")
    if list_all or name is None:
        print(studies.list_studies())
        return
    folder = studies.run_study(
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
        values=tuple(values or ()),
    )
    say(f"wrote {folder / 'README.md'} and {folder / 'index.html'}")

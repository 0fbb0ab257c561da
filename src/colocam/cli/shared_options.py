"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, TypeVar

import typer

from colocam.config import COLOR_MEANS, ColorMean
from colocam.errors import ArgumentError
from colocam.types import SPLITS, Split

T = TypeVar("T", bound=str)

Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default the GPU if there is one.")]
Boxes = Annotated[Path | None, typer.Option(help="CSV or parquet of true boxes: clip, frame, present, x1, y1, x2, y2.")]
Preset = Annotated[str, typer.Option(help="Configuration to start from: cpu, resnet50, lite0 or paper.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file that changes keys of the preset.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Change one key, e.g. --set localizer.epochs=20.")]
Frames = Annotated[Path | None, typer.Option(help="Folder of the frame cache, which runs may share.")]


def split_of(text: str) -> Split:
    """Check the value of ``--split``."""
    return _named("split", text, SPLITS)


def color_mean_of(text: str) -> ColorMean:
    """Check the value of ``--color-mean``."""
    return _named("color_mean", text, COLOR_MEANS)


def _named(argument: str, text: str, names: tuple[T, ...]) -> T:
    for name in names:
        if name == text:
            return name
    raise ArgumentError(argument, f"must be one of {', '.join(names)}, got {text}")

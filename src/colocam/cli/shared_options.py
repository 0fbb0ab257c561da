"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, TypeVar

import typer

from colocam.config import COLOR_MEANS, ColorMean
from colocam.errors import ArgumentError
from colocam.types import SPLITS, Split

Masks = Annotated[bool, typer.Option("--masks", help="Also write the outline of the object, in the column 'mask'.")]
Smoothing = Annotated[
    str, typer.Option(help="Smooth boxes over time: offline (with look-ahead), online (past frames only) or none.")
]
Tag = Annotated[str | None, typer.Option(help="Class that the videos show, if you know it.")]
LeastPresence = Annotated[
    float | None, typer.Option(help="Write no box where the probability of presence is below this value, e.g. 0.5.")
]
Instances = Annotated[
    bool,
    typer.Option(
        "--instances", help="Write a box, a track and a row for every object, instead of one object per frame."
    ),
]
Refine = Annotated[
    str | None,
    typer.Option(
        metavar="SEGMENTER",
        help="Refine boxes to masks: MobileSAM as .safetensors, or a folder or pair of ONNX files of SAM or SAM 2.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(help="Foreground threshold relative to the map's maximum, 0–1; default: stored with the model."),
]
ColorMeanMode = Annotated[
    str | None, typer.Option(help="Complete maps by colour: off, frame or clip; default: as the model was trained.")
]
Focus = Annotated[
    bool | None,
    typer.Option(
        "--focus/--no-focus", help="Restrict maps to the class of the video; default: as the model was trained."
    ),
]
Chooser = Annotated[
    str | None, typer.Option(help="Rule that chooses the box among a map's contours; default: that of the model.")
]
Every = Annotated[int, typer.Option(help="Process every N-th frame.")]
Fps = Annotated[float | None, typer.Option(help="Process this many frames per second, those nearest in time.")]
Start = Annotated[
    float | None, typer.Option("--from", help="Start at this presentation time in seconds (column 'pts').")
]
End = Annotated[
    float | None, typer.Option("--to", help="Stop before this presentation time in seconds (column 'pts').")
]
FrameRange = Annotated[
    str, typer.Option(help="Process the frames with index A to B−1, written A:B; the first frame is 0.")
]
Batch = Annotated[
    int | None,
    typer.Option(
        help="New frames per network pass at most. Boxes do not depend on it; small values give results earlier."
    ),
]


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

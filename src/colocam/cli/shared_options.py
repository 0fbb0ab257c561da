"""Options that several commands share."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from colocam.config import COLOR_MEANS, ColorMean
from colocam.errors import ArgumentError
from colocam.types import SPLITS, Split

if TYPE_CHECKING:
    from colocam.video.frame_choice import FrameChoice

T = TypeVar("T", bound=str)

Device = Annotated[str | None, typer.Option(help="cpu or cuda; by default the GPU if there is one.")]
Boxes = Annotated[Path | None, typer.Option(help="CSV or parquet of true boxes: clip, frame, present, x1, y1, x2, y2.")]
Preset = Annotated[str, typer.Option(help="Configuration to start from: cpu, resnet50, lite0 or paper.")]
ConfigFile = Annotated[Path | None, typer.Option("--config", help="YAML file that changes keys of the preset.")]
Overrides = Annotated[list[str] | None, typer.Option("--set", help="Change one key, e.g. --set localizer.epochs=20.")]
Frames = Annotated[Path | None, typer.Option(help="Folder of the frame cache, which runs may share.")]


CHOICE = frozenset({"every", "fps", "start", "end", "frames"})
"""Options that choose frames."""


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Options that change the results of a model, shared by the commands that run one over films."""

    masks: Annotated[
        bool, typer.Option("--masks", help="Also write the outline of the object, in the column 'mask'.")
    ] = False
    smooth: Annotated[
        str, typer.Option(help="Smooth boxes over time: offline (with look-ahead), online (past frames only) or none.")
    ] = "offline"
    tag: Annotated[str | None, typer.Option(help="Class that the videos show, if you know it.")] = None
    presence: Annotated[
        float | None, typer.Option(help="Write no box where the probability of presence is below this value, e.g. 0.5.")
    ] = None
    instances: Annotated[
        bool,
        typer.Option(
            "--instances", help="Write a box, a track and a row for every object, instead of one object per frame."
        ),
    ] = False
    refine: Annotated[
        str | None,
        typer.Option(
            metavar="SEGMENTER",
            help="Refine boxes to masks: MobileSAM as .safetensors, or a folder or pair of ONNX files of SAM or SAM 2.",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(help="Foreground threshold relative to the map's maximum, 0–1; default: stored with the model."),
    ] = None
    color_mean: Annotated[
        str | None, typer.Option(help="Complete maps by colour: off, frame or clip; default: as the model was trained.")
    ] = None
    focus: Annotated[
        bool | None,
        typer.Option(
            "--focus/--no-focus", help="Restrict maps to the class of the video; default: as the model was trained."
        ),
    ] = None
    chooser: Annotated[
        str | None, typer.Option(help="Rule that chooses the box among a map's contours; default: that of the model.")
    ] = None
    every: Annotated[int, typer.Option(help="Process every N-th frame.")] = 1
    fps: Annotated[float | None, typer.Option(help="Process this many frames per second, those nearest in time.")] = (
        None
    )
    start: Annotated[
        float | None, typer.Option("--from", help="Start at this presentation time in seconds (column 'pts').")
    ] = None
    end: Annotated[
        float | None, typer.Option("--to", help="Stop before this presentation time in seconds (column 'pts').")
    ] = None
    frames: Annotated[
        str, typer.Option(help="Process the frames with index A to B−1, written A:B; the first frame is 0.")
    ] = ":"
    batch: Annotated[
        int | None,
        typer.Option(
            help="New frames per network pass at most. Boxes do not depend on it; small values give results earlier."
        ),
    ] = None
    device: Device = None

    @property
    def choice(self) -> "FrameChoice":
        """The frames that are processed."""
        from colocam.video.frame_choice import FrameChoice, parse_frames

        return FrameChoice(
            every=self.every, fps=self.fps, start=self.start, end=self.end, frames=parse_frames(self.frames)
        )

    @property
    def of_model(self) -> dict[str, Any]:
        """What remains: device, segmenter and fields of :class:`colocam.inference.options.Options`."""
        return {name: value for name, value in asdict(self).items() if name not in CHOICE}


def with_result_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`ResultOptions`; it gets them as ``options``."""
    own = [one for one in signature(command).parameters.values() if one.name != "options"]
    shared = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for one in fields(ResultOptions)
    ]

    @wraps(command)
    def run(**values: Any) -> None:  # noqa: ANN401 - of any option
        options = ResultOptions(**{one.name: values.pop(one.name) for one in shared})
        command(**values, options=options)

    run.__signature__ = Signature([*own, *shared])  # type: ignore[attr-defined]
    return run


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

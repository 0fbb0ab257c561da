"""What commands share: options, errors that name options as they are typed, and an early line of long commands."""

import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option
from typer.core import TyperCommand

from colocam.cli import completion
from colocam.errors import ArgumentError, ColocamError
from colocam.types import SPLITS, Split
from colocam.utils.device import is_first
from colocam.utils.progress import say

if TYPE_CHECKING:
    from colocam.video.frame_choice import FrameChoice

NamedModel = Annotated[
    str | None,
    Option(
        "--model",
        metavar="NAME|RUN|FILE",
        help="A ready model by its name, a run folder, or an ONNX file; all arguments are videos then.",
        autocompletion=completion.ready_models,
    ),
]
Device = Annotated[
    str | None,
    Option(help="cpu or cuda; by default the GPU if there is one.", autocompletion=completion.one_of("cpu", "cuda")),
]
Boxes = Annotated[Path | None, Option(help="CSV or parquet of true boxes: clip, frame, present, x1, y1, x2, y2.")]
Preset = Annotated[
    str,
    Option(help="Configuration to start from: cpu, resnet50, lite0 or paper.", autocompletion=completion.presets),
]
ConfigFile = Annotated[Path | None, Option("--config", help="YAML file that changes keys of the preset.")]
Overrides = Annotated[list[str] | None, Option("--set", help="Change one key, e.g. --set localizer.epochs=20.")]
Frames = Annotated[Path | None, Option(help="Folder of the frame cache, which runs may share.")]

SECONDS_TO_FIRST_LINE = 1.0
"""Importing torch and reading a model take longer than this; the work then reports its own progress."""
CHOICE = frozenset({"every", "fps", "start", "end", "frames"})
"""Options that choose frames."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How a model is run over videos; localize, label, evaluate and serve take all of these options or some."""

    masks: Annotated[bool, Option("--masks", help="Also write the outline of the object, in the column 'mask'.")] = (
        False
    )
    smooth: Annotated[
        str,
        Option(
            help="Smooth boxes over time: offline (with look-ahead), online (past frames only) or none.",
            autocompletion=completion.one_of("offline", "online", "none"),
        ),
    ] = "offline"
    tag: Annotated[
        str | None, Option(help="Class that the videos show, if you know it.", autocompletion=completion.tags)
    ] = None
    presence: Annotated[
        float | None, Option(help="Write no box where the probability of presence is below this value, e.g. 0.5.")
    ] = None
    instances: Annotated[
        bool, Option("--instances", help="Write a box, a track and a row for every object, not one per frame.")
    ] = False
    refine: Annotated[
        str | None,
        Option(
            metavar="SEGMENTER",
            help="Refine boxes to masks: MobileSAM as .safetensors, or a folder or pair of ONNX files of SAM or SAM 2.",
        ),
    ] = None
    threshold: Annotated[
        float | None, Option(help="Foreground threshold, 0–1 of the map's maximum; default: that of the model.")
    ] = None
    color_mean: Annotated[
        str | None,
        Option(
            help="Complete maps by color: off, frame or clip; default: as trained.",
            autocompletion=completion.color_means,
        ),
    ] = None
    focus: Annotated[
        bool | None,
        Option("--focus/--no-focus", help="Restrict maps to the class of the video; default: as trained."),
    ] = None
    motion: Annotated[
        bool | None,
        Option(
            "--motion/--no-motion",
            help="Prefer what moves otherwise than the camera; default: yes for one box per frame of a smoothed video.",
        ),
    ] = None
    chooser: Annotated[
        str | None,
        Option(
            help="Rule that chooses the box among a map's contours; default: that of the model.",
            autocompletion=completion.choosers,
        ),
    ] = None
    every: Annotated[int, Option(help="Process every N-th frame.")] = 1
    fps: Annotated[float | None, Option(help="Process this many frames per second, those nearest in time.")] = None
    start: Annotated[float | None, Option("--from", help="Start at this time in seconds (column 'pts').")] = None
    end: Annotated[float | None, Option("--to", help="Stop before this time in seconds (column 'pts').")] = None
    frames: Annotated[str, Option(help="Process the frames with index A to B−1, written A:B; the first is 0.")] = ":"
    batch: Annotated[
        int | None, Option(help="New frames per network pass at most; small values give the same boxes earlier.")
    ] = None
    device: Device = None

    @property
    def choice(self) -> "FrameChoice":
        """The frames that are processed."""
        from colocam.video.frame_choice import FrameChoice, parse_frames

        return FrameChoice(self.every, self.fps, self.start, self.end, parse_frames(self.frames))

    @property
    def of_model(self) -> dict[str, Any]:
        """What remains: device, segmenter and fields of :class:`colocam.inference.options.Options`."""
        return {name: value for name, value in asdict(self).items() if name not in CHOICE}


def with_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the named options of :class:`ModelOptions`, or all; it gets them as ``options``."""
    shared = [
        Parameter(one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=one.type)
        for one in fields(ModelOptions)
        if one.name in names or not names
    ]

    def give(command: Callable[..., None]) -> Callable[..., None]:
        own = [one for one in signature(command).parameters.values() if one.name != "options"]

        @wraps(command)
        def run(**values: Any) -> None:  # noqa: ANN401 - of any option
            options = ModelOptions(**{one.name: values.pop(one.name) for one in shared})
            command(**values, options=options)

        run.__signature__ = Signature([*own, *shared])  # type: ignore[attr-defined]
        return run

    return give


def split_of(text: str) -> Split:
    """Check the value of ``--split``."""
    for split in SPLITS:
        if split == text:
            return split
    raise ArgumentError("split", f"must be one of {', '.join(SPLITS)}, got {text}")


class Command(TyperCommand):
    """Spell arguments in errors of the library as options of this command.

    ``presence must be in 0–1, got 2`` becomes ``--presence must be in 0–1, got 2``. Further arguments in an error
    stand between backticks: ``name the video with `videos```.
    """

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        try:
            return super().invoke(ctx)
        except ColocamError as error:
            long = {str(one.name): [name for name in one.opts if name.startswith("--")] for one in self.params}
            first = error.argument if isinstance(error, ArgumentError) else r"\w+(?= must )"
            error.args = (
                re.sub(rf"^{first}|`\w+`", lambda match: (long.get(match[0].strip("`")) or [match[0]])[0], str(error)),
            )
            raise


class LongCommand(Command):
    """Print a line while the libraries are imported, unless the command is over before."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run the command."""
        first = Timer(SECONDS_TO_FIRST_LINE, say, [f"{self.name}: loading"])
        first.daemon = True
        if "torch" not in sys.modules and is_first():
            first.start()
        try:
            return super().invoke(ctx)
        finally:
            first.cancel()

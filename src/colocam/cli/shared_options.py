"""What commands share: options, errors that name options as they are typed, and an early line of long commands.

Tests: tests/cli/test_long_command.py, tests/config/test_options.py.
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from threading import Timer
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from typer import Option
from typer.core import TyperCommand

from colocam.cli import completion
from colocam.config.options import Options
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
        help="A ready model by name, a run folder, or an ONNX file; then all arguments are videos.",
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
    Option(
        help="Configuration to start from: demo, laptop, resnet50, lite0 or paper.", autocompletion=completion.presets
    ),
]
ConfigFile = Annotated[Path | None, Option("--config", help="YAML file that changes settings of the preset.")]
Overrides = Annotated[
    list[str] | None, Option("--set", help="Change one setting, e.g. --set localizer.epochs=20; repeatable.")
]
Frames = Annotated[Path | None, Option(help="Folder for the frame cache; runs can share it.")]

SECONDS_TO_FIRST_LINE = 1.0
"""Importing torch and reading a model take longer than this; the work then reports its own progress."""


@dataclass(frozen=True, kw_only=True)
class FrameOptions:
    """Which frames of a video are processed."""

    every: Annotated[int, Option(help="Process every N-th frame.")] = 1
    fps: Annotated[float | None, Option(help="Process this many frames per second.")] = None
    start: Annotated[float | None, Option("--from", help="Start at this time in seconds (column 'pts').")] = None
    end: Annotated[float | None, Option("--to", help="Stop before this time in seconds (column 'pts').")] = None
    frames: Annotated[str, Option(help="Process the frames with index A to B−1, written A:B; the first is 0.")] = ":"

    @property
    def choice(self) -> "FrameChoice":
        """The frames that are processed."""
        from colocam.video.frame_choice import FrameChoice, parse_frames

        return FrameChoice(self.every, self.fps, self.start, self.end, parse_frames(self.frames))


def with_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the named fields of :class:`colocam.config.options.Options` as options, or all.

    The command gets them as ``options``; if it has a parameter ``frames``, it also gets the :class:`FrameOptions`.
    """
    hints = get_type_hints(Options, include_extras=True)
    of_model = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=_annotation(field.name, hints))
        for field in fields(Options)
        if field.name in names or not names
    ]
    of_frames = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(FrameOptions)
    ]

    def give(command: Callable[..., None]) -> Callable[..., None]:
        known = signature(command).parameters
        parameters = [parameter for name, parameter in known.items() if name not in {"options", "frames"}]
        choosing = of_frames if "frames" in known else []

        @wraps(command)
        def run(**values: Any) -> None:  # noqa: ANN401 - of any option
            if choosing:
                values["frames"] = FrameOptions(**{option.name: values.pop(option.name) for option in choosing})
            options = Options(**{option.name: values.pop(option.name) for option in of_model})
            command(**values, options=options)

        run.__signature__ = Signature([*parameters, *of_model, *choosing])  # type: ignore[attr-defined]
        return run

    return give


def _annotation(name: str, hints: dict[str, Any]) -> Any:  # noqa: ANN401 - a type
    """A field of Options as Typer reads it; words and paths are text, which Options check by themselves."""
    kind = hints[name].__origin__
    (presented,) = hints[name].__metadata__
    kinds = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    optional = NoneType in kinds
    words = [word for literal in kinds if get_origin(literal) is Literal for word in get_args(literal)]
    completes = completion.one_of(*words) if words else None
    if presented.completes is not None:
        completes = getattr(completion, presented.completes)
    flag = f"--{name.replace('_', '-')}"
    names: tuple[str, ...] = ()
    if bool in kinds:
        names = (f"{flag}/--no-{flag[2:]}",) if optional else (flag,)
    plain = next((number for number in (bool, int, float) if number in kinds), str)
    option = Option(*names, help=presented.text, metavar=presented.values, autocompletion=completes)
    return Annotated[plain | None if optional else plain, option]


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
            long = {str(option.name): [name for name in option.opts if name.startswith("--")] for option in self.params}
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

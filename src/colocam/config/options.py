"""The options of running a model: one set, built once by whoever asks (command line, page, Python) and handed on.

To add an option, add its field to :class:`Options`, with what ``--help`` says of it. This gives ``localize`` and
``label`` the option, ``Localizer.load`` the keyword, workers the value, and stored results a key that depends on it as
soon as it is not the default. Then use it, as ``localizer.options.NAME``. ``evaluate`` and ``serve`` name those that
they take.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Concatenate, Generic, Literal, NamedTuple, ParamSpec, TypeVar, get_args

from colocam.errors import ArgumentError, ColocamError, suggest
from colocam.types import COLOR_MEANS, MOST_LOOKS, ColorMean

Smooth = Literal["offline", "online", "none"]

P = ParamSpec("P")
Class = TypeVar("Class")
Source = TypeVar("Source")
Result = TypeVar("Result")


class Help(NamedTuple):
    """How the command line presents an option.

    Attributes:
        text: what ``--help`` says.
        values: what stands for its value in ``--help``; None: its type.
        completes: the function of :mod:`colocam.cli.completion` that offers values; None: those of its ``Literal``.
    """

    text: str
    values: str | None = None
    completes: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How a model is run over videos."""

    device: Annotated[str | None, Help("cpu or cuda; by default the GPU if there is one.", completes="devices")] = None
    _: KW_ONLY
    masks: Annotated[bool, Help("Also write the outline of the object, in the column 'mask'.")] = False
    smooth: Annotated[
        Smooth, Help("Smooth boxes over time: offline (with look-ahead), online (past frames only) or none.")
    ] = "offline"
    tag: Annotated[str | None, Help("Class that the videos show, if you know it.", completes="tags")] = None
    """None: the class that the classifier finds in each video."""
    presence: Annotated[
        float | None, Help("Write no box where the probability of presence is below this value, e.g. 0.5.")
    ] = None
    """0–1; None: give all boxes."""
    instances: Annotated[bool, Help("Write a box, a track and a row for every object, not just one per frame.")] = False
    """A box for every blob above the threshold; with a segmenter, for every mask that the map supports."""
    refine: Annotated[
        str | Path | None,
        Help(
            "Refine boxes to masks: MobileSAM as .safetensors, or a folder or pair of ONNX files of SAM or SAM 2.",
            values="SEGMENTER",
        ),
    ] = None
    """See :func:`colocam.segment.load_segmenter`; None: boxes of the heat maps."""
    prior: Annotated[
        str | Path | None,
        Help("Weigh maps by a network that sees where objects stand out, in an ONNX file.", values="FILE"),
    ] = None
    """See :func:`colocam.maps.prior.open_prior`; such a network was trained with more than tags. None: none."""
    threshold: Annotated[
        float | None, Help("Foreground threshold, 0–1 of the map's maximum; default: the model's.")
    ] = None
    color_mean: Annotated[
        ColorMean | None, Help("Complete maps by color: off, frame or clip; default: as trained.")
    ] = None
    """``clip`` shares colors within a window (:mod:`colocam.temporal.cuts`); this needs look-ahead, so ``smooth`` other
    than ``offline`` makes it ``frame``."""
    focus: Annotated[bool | None, Help("Restrict maps to the class of the video; default: as trained.")] = None
    """The class is ``tag``, or the one that is found in the window."""
    motion: Annotated[
        bool | None,
        Help("Favor what moves relative to the camera; default: yes for one box per frame of a smoothed video."),
    ] = None
    """Weigh maps (:mod:`colocam.temporal.motion`) before boxes are read from them. None: where the frames of a shot
    choose one box together, that is with smoothing and a chooser other than ``largest``, without ``instances``."""
    looks: Annotated[
        int | None,
        Help(
            "How many times to look at each frame; a second look enlarges the object, or with --instances parts of the "
            "frame. Default: set by the model.",
            values="1|2|3",
        ),
    ] = None
    """From the second time on, around the box found before; with ``instances``, at parts of the frame and around each
    box (docs/method/second-look.md). None: as often as the model's card says; once with a segmenter."""
    chooser: Annotated[
        str | None,
        Help("Rule that chooses the box among a map's contours; default: the model's.", completes="choosers"),
    ] = None
    """A name in :data:`colocam.boxes.CHOOSERS`. Extensions add some, so it is looked up after they are loaded."""
    batch: Annotated[
        int | None, Help("Maximum number of new frames per network pass; smaller values give the same boxes sooner.")
    ] = None
    """None: as many as a pass has rows. A pass always computes all its rows: fewer new frames cost more each."""

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise ArgumentError("batch", f"must be 1 or more frames, got {self.batch}")
        if self.presence is not None and not 0 <= self.presence <= 1:
            raise ArgumentError("presence", f"must be in 0–1, got {self.presence}")
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ArgumentError("threshold", f"must be in 0–1, got {self.threshold}")
        if self.smooth not in get_args(Smooth):
            raise ArgumentError("smooth", f"{self.smooth}{suggest(self.smooth, get_args(Smooth))}")
        if self.motion and self.smooth == "none":
            raise ArgumentError("motion", "compares frames, so it needs smooth offline or online, got none")
        if self.looks is not None and not 1 <= self.looks <= MOST_LOOKS:
            raise ArgumentError("looks", f"must be 1 to {MOST_LOOKS}, got {self.looks}")
        if self.color_mean is not None and self.color_mean not in COLOR_MEANS:
            raise ArgumentError("color_mean", f"{self.color_mean}{suggest(self.color_mean, COLOR_MEANS)}")

    def settings(self) -> dict[str, Any]:
        """What changes results, for the key of stored results.

        ``batch`` does not, and of a segmenter and of a prior the content counts. An option that 0.2.0 did not have is
        left out as long as it has its default, so that earlier results are found again.
        """
        defaults = asdict(DEFAULT)
        return {
            name: None if name == "batch" else value
            for name, value in asdict(self).items()
            if name not in {"refine", "prior"} and (name in IN_EVERY_KEY or value != defaults[name])
        }


DEFAULT = Options()
IN_EVERY_KEY = frozenset(
    [
        *("batch", "chooser", "color_mean", "device", "focus", "instances"),
        *("masks", "motion", "presence", "smooth", "tag", "threshold"),
    ]
)
"""The options of 0.2.0, whose keys hold all of them. This list stays as it is."""


def make_options(*device: str | None, **keywords: Any) -> Options:  # noqa: ANN401 - of any field
    """Options from keywords whose names nothing has checked; an unknown one is refused with the nearest name."""
    names = [field.name for field in fields(Options)]
    for name in keywords:
        if name not in names:
            raise ColocamError(f"unknown option {name}{suggest(name, names)}")
    return Options(*device, **keywords)


class FromKeywords(Generic[P]):
    """Let a class method that takes :class:`Options` be called with their fields, which type checkers know.

    ``load(cls, run, options)`` becomes ``load(cls, run, device=None, *, smooth="offline", tag=None, …)``.
    """

    def __init__(self, _: Callable[P, Options]) -> None:
        """Its parameters are those of the methods."""

    def __call__(
        self, method: Callable[[Class, Source, Options], Result]
    ) -> Callable[Concatenate[Class, Source, P], Result]:
        """Change a method."""

        @wraps(method)
        def call(cls: Class, source: Source, /, *args: P.args, **keywords: P.kwargs) -> Result:
            return method(cls, source, make_options(*args, **keywords))  # type: ignore[arg-type]

        parameters = [one for one in signature(method).parameters.values() if one.name != "options"]
        positional = [one.replace(kind=Parameter.POSITIONAL_ONLY) for one in parameters]
        call.__signature__ = Signature([*positional, *signature(Options).parameters.values()])  # type: ignore[attr-defined]
        return call


from_keywords = FromKeywords(Options)

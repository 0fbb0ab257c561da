"""What does a video, in whichever process: a model with its options, the way from frames to rows, and its errors."""

import base64
import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from colocam.config.card import Card
from colocam.errors import ColocamError, InterruptedRunError, first_line, machine_fault
from colocam.inference.localizer import Localizer, layout_for
from colocam.inference.options import Options
from colocam.labels.table_files import ForeignFileError
from colocam.temporal.smoothing import Shots
from colocam.types import Localization, VideoFrame
from colocam.utils.child_processes import Message
from colocam.utils.digests import FileDigests
from colocam.utils.extras import EXTRAS, not_installed
from colocam.utils.files import FULL, os_error_text
from colocam.utils.prefetch import ahead
from colocam.utils.progress import Advance, progress, stop_requested
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import DecoderEndedError, DecoderLostError, UnreadableError, VideoError
from colocam.video.reader import VideoReader

Show = Callable[..., AbstractContextManager[Advance]]
Result = dict[str, Any]
"""What came of a task; as JSON can hold it."""
FRAMES_AHEAD = 4
"""Localized frames that may wait for the writer."""


@dataclass
class Worker:
    """Does one task after the other.

    Attributes:
        base: the model and the options of the command.
        digests: of files that were read before.
        threads: decoder threads, 0 for one per core.
        show: shows progress, as :func:`colocam.utils.progress.progress` does.
    """

    base: Localizer
    digests: FileDigests = field(default_factory=FileDigests)
    threads: int = 0
    show: Show = progress

    def localizer(self, tag: str | None) -> Localizer:
        """The model for a video with a tag; None: the tag of the command, if it has one."""
        return self.base if tag is None else self.base.with_options(tag=tag)


class Task(Protocol):
    """Work on one video; it can be pickled."""

    @property
    def name(self) -> str:
        """The video, for messages."""
        ...

    def __call__(self, worker: Worker, /) -> Result:
        """Do it.

        Raises:
            VideoError: the video cannot be read; others may be.
            ColocamError: no video can be done, e.g. for want of space.
        """
        ...


def localize_into(
    localizer: Localizer,
    reader: VideoReader,
    choice: FrameChoice,
    write: Callable[[VideoFrame, Sequence[Localization]], object],
    *,
    images: bool = False,
    shots: Shots | None = None,
    passed: Callable[[int], object] = int,
    stopping: tuple[Event, ...] = (),
) -> None:
    """Localize in the chosen frames of an open video, and call ``write`` with each frame and the objects in it.

    Args:
        localizer: the model.
        reader: the video.
        choice: which frames.
        write: takes frames in order; without an object, one localization without a box.
        images: whether the frames have their images.
        shots: see :meth:`Localizer.stream`, like the others.
        passed: called with the number of frames that passed the network.
        stopping: once one of them is set, this ends with an error.

    Raises:
        UnreadableError: no frame was chosen, or none could be read.
    """

    def until_stopped() -> Iterator[VideoFrame]:
        for frame in reader.frames(choice, layout_for(localizer, images=images)):
            yield frame
            if stop_requested():
                return

    ended, empty = Event(), True
    stream = localizer.stream(
        until_stopped(),
        live=reader.source.live,
        images=images,
        shots=shots,
        passed=passed,
        stopping=(ended, *stopping),
    )
    # The stream is closed before the reader, because its threads read from the reader.
    with closing(ahead(stream, FRAMES_AHEAD, "localizer", on_stop=ended.set)) as found:
        for _, told in groupby(found, key=lambda one: one[0].index):
            (frame, *_), objects = zip(*told, strict=True)
            write(frame, objects)
            empty = False
    if empty:
        name = reader.source.name
        if choice == ALL:
            raise UnreadableError(f"{name} has no frame that can be decoded")
        many = f"its {reader.count} frames" if reader.ended else "its frames"
        raise UnreadableError(f"{name} has no frame {choice}; {many} begin at second {reader.start:g}")


class LostError(VideoError):
    """A video could not be done this time: its worker died, made no progress, or met a fault; another may do it."""


ERRORS: dict[str, type[ColocamError]] = {
    one.__name__: one
    for one in (
        ForeignFileError,
        DecoderEndedError,
        DecoderLostError,
        UnreadableError,
        LostError,
        VideoError,
        InterruptedRunError,
    )
}
"""Errors that a worker may name; any other concerns all videos."""


def attempt(work: Callable[[], Result]) -> Message:
    """Do a task, and say how it went in a message for :func:`result_of`."""
    try:
        return {"do": "done", "result": work()}
    except Exception as error:  # noqa: BLE001 - one video must not end the others
        known = as_known(error)
        return {"do": "failed", "error": type(known).__name__, "text": str(known)}


def as_known(error: Exception) -> ColocamError:
    """An error of a task, in words, and as one that says whether it concerns one video or all."""
    if isinstance(error, ColocamError):
        return error
    if isinstance(error, OSError) and error.errno in FULL:
        return ColocamError(os_error_text(error))
    if isinstance(error, OSError):
        return LostError(str(error))
    if fault := machine_fault(error):
        return DecoderEndedError(f"{fault}, and run the same command again")
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRAS:
        return not_installed(error, "this command")
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    where = f"{Path(frame.f_code.co_filename).name}, line {line}"
    return LostError(f"{type(error).__name__}: {first_line(error)} ({where})")


def result_of(answer: Message) -> Result:
    """The result of a task, or its error."""
    if answer["do"] == "done":
        result: Result = answer["result"]
        return result
    raise ERRORS.get(answer["error"], ColocamError)(answer["text"])


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker process needs to know.

    Attributes:
        rows: frames of a pass.
        card: of the model.
        options: of the command.
        extensions: to load.
        digests: file that remembers digests of videos; None: none does.
    """

    rows: int
    card: Card
    options: Options
    extensions: Sequence[str]
    digests: Path | None


def packed(trusted: object) -> str:
    """Text for :func:`unpacked`."""
    return base64.b64encode(pickle.dumps(trusted)).decode("ascii")


def unpacked(text: str) -> Any:  # noqa: ANN401 - whatever was packed
    """What a parent process packed."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - from the parent alone

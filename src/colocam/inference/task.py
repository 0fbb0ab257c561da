"""The task of every command: localize in a video, in whichever process; its errors; and the loop over many tasks.

What differs between ``localize`` and ``label`` is where videos come from and where rows go: the sink of the task. A
video is done where the sink has results with its key, which one function makes (:meth:`LocalizeVideo.key`).

Tests: tests/inference/test_engine.py, tests/inference/test_label.py.
"""

import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Any, NamedTuple, Protocol, TypeVar

from colocam.errors import ColocamError, InterruptedRunError, first_line, machine_fault
from colocam.inference.localizer import Localizer, layout_for
from colocam.inference.videos import Video, video_key
from colocam.labels.table_files import ForeignFileError
from colocam.temporal.smoothing import Shots
from colocam.types import Localization, VideoFrame
from colocam.utils.child_processes import Message
from colocam.utils.digests import FileDigests
from colocam.utils.extras import EXTRAS, not_installed
from colocam.utils.files import FULL, os_error_text
from colocam.utils.prefetch import ahead
from colocam.utils.progress import Advance, progress, stop_requested, take
from colocam.video.frame_choice import ALL, FrameChoice
from colocam.video.input import DecoderEndedError, DecoderLostError, UnreadableError, VideoError
from colocam.video.reader import VideoReader

T = TypeVar("T", bound="Task")
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
    """Work on one video; it can be pickled. Commands have one kind: :class:`LocalizeVideo`."""

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


class FrameRange(NamedTuple):
    """A range of a long video, in indices of frames.

    Attributes:
        begin: first frame whose rows are kept.
        end: frame after the last; None for the end of the video.
        first: first frame to process.
        stop: frame after the last to process; None for the end of the video.
    """

    begin: int
    end: int | None
    first: int
    stop: int | None


class Sink(Protocol):
    """Where the rows of videos go; it can be pickled."""

    @property
    def only_stored(self) -> bool:
        """Whether it takes stored videos alone, whose content names their results."""
        ...

    def done(self, video: Video, key: str | None, /) -> Result | None:
        """The result of a video that is done; None if it is to do. ``key`` is None for a video that is not stored."""
        ...

    def write(self, task: "LocalizeVideo", key: str | None, worker: Worker, /) -> Result:
        """Localize in a video that is to do, and write its results."""
        ...


class Look(NamedTuple):
    """What a quick look at a video tells.

    Attributes:
        key: of its results; None where all of it must be read first, and empty where it cannot be read.
        content: digest of its content.
        result: of a video that is done.
    """

    key: str | None
    content: str = ""
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class LocalizeVideo:
    """The task of every command: localize in a video and give its rows to a sink, unless that is done.

    Attributes:
        video: the video.
        sink: tables beside annotated videos, or parts of a corpus.
        model: see :func:`colocam.inference.videos.model_key`.
        choice: which frames.
        range: of a long video; None for the whole video.
    """

    video: Video
    sink: Sink
    model: str
    choice: FrameChoice = ALL
    range: FrameRange | None = None

    @property
    def name(self) -> str:
        """The video, for messages."""
        name = self.video.name if self.sink.only_stored else self.video.source.name
        return name if self.range is None else f"{name} from frame {self.range.begin}"

    def key(self, content: str) -> str:
        """Key of the results of a video with this content: the same key means the same rows."""
        return video_key(self.model, self.video.tag, content)

    def look(self, digests: FileDigests) -> Look:
        """Whether the video is done, as far as a quick look tells: no large video is read."""
        if self.video.stored is None and not self.sink.only_stored:
            return Look(None)
        try:
            content = self.video.quick_digest(digests)
            if content is None:
                return Look(None)
            key = self.key(content)
            return Look(key, content, self.sink.done(self.video, key))
        except (OSError, ColocamError):  # the task says so
            return Look("")

    def __call__(self, worker: Worker) -> Result:
        """What the sink says of the video, with its ``key`` and the digest of its ``content`` where it is stored."""
        if self.video.stored is None and not self.sink.only_stored:
            return self.sink.write(self, None, worker)
        content = self.video.digest(worker.digests)
        worker.digests.save()
        key = self.key(content)
        result = None if self.range is not None else self.sink.done(self.video, key)
        if result is None:
            result = self.sink.write(self, key, worker)
            worker.digests.save()  # in a folder that was there only now
        return {**result, "key": key, "content": content}


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
    with closing(ahead(stream, FRAMES_AHEAD, "localizer", on_stop=ended.set)) as localized:
        for _, rows in groupby(localized, key=lambda one: one[0].index):
            (frame, *_), objects = zip(*rows, strict=True)
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


AGAIN = (LostError, DecoderLostError)
"""Errors after which another attempt may succeed."""
LOOKS = 8
"""Threads that look for results: a network file system answers many questions at once."""


class Pool(Protocol):
    """What does tasks."""

    @property
    def places(self) -> int:
        """Tasks that are done at the same time."""
        ...

    def submit(self, task: Task) -> "Future[Result]":
        """Do a task; the future raises what it raised, or a :class:`LostError`."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...


class Outcome(NamedTuple):
    """What came of a task, after some attempts: its result, or why its video is left out."""

    result: Result
    error: VideoError | ForeignFileError | None
    attempts: int


def do_all(pool: Pool, tasks: "deque[T]", retries: int = 1) -> "Generator[tuple[T, Outcome], None, None]":
    """Do tasks in any order; yields each with what came of it.

    Args:
        pool: does them.
        tasks: taken from the left; more may be added meanwhile.
        retries: further attempts for a task that was lost.

    Raises:
        ColocamError: an error that concerns all videos.
    """
    done: Queue[tuple[T, Future[Result]]] = Queue()
    attempts: Counter[T] = Counter()
    running = 0
    while tasks or running:
        while tasks and running < pool.places + 1:  # one more waits, so that no worker does
            task = tasks.popleft()
            attempts[task] += 1
            running += 1
            pool.submit(task).add_done_callback(lambda future, task=task: done.put((task, future)))  # type: ignore[misc]
        task, future = take(done)
        running -= 1
        try:
            outcome = Outcome(future.result(), None, attempts[task])
        except (VideoError, ForeignFileError) as error:
            if isinstance(error, AGAIN) and attempts[task] <= retries:
                tasks.append(task)
                continue
            outcome = Outcome({}, error, attempts[task])
        yield task, outcome


def look_at(tasks: "Sequence[LocalizeVideo]", digests: FileDigests) -> Iterator[Look]:
    """A quick look at each video, in order: whether it is done."""
    with ThreadPoolExecutor(LOOKS, "looks") as pool:
        batches = (tasks[at : at + 256] for at in range(0, len(tasks), 256))
        for looks in pool.map(lambda batch: [task.look(digests) for task in batch], batches):
            yield from looks

"""The stages from decoded frames to candidate boxes, in their order; :meth:`Localizer.stream` connects them.

Each stage is a generator. It closes the stage before it when it ends.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from threading import Event
from typing import NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates
from colocam.boxes.extract import scale_boxes
from colocam.boxes.quantize import to_8bit
from colocam.config import ColorMean
from colocam.inference.network import (
    HostOutput,
    Network,
    NetworkOutput,
    OutputShape,
    PostProcessing,
    checked,
    postprocess_arrays,
    require_numbers,
    rows_of,
)
from colocam.inference.remote_network import RemoteNetwork, RemoteRows
from colocam.segment.refine import refine
from colocam.segment.segmenter import Segmenter
from colocam.temporal.cuts import WINDOW, CutFinder, Histograms, colour_histograms, window_starts
from colocam.temporal.smoothing import FrameObservation
from colocam.types import Float32Array, Float64Array, Levels, VideoFrame
from colocam.utils.device import cores
from colocam.utils.progress import long_work, wait_for
from colocam.video.frame_ring import black_image
from colocam.video.resizing import resize_into

PASS_BYTES = 2**27
"""Decoded frames of one pass in bytes at most: a pass over large frames has fewer rows."""
RESIZE_THREADS = min(16, cores())
BOX_THREADS = min(8, cores())
"""The compiled functions that find boxes need no more threads, and the other stages need cores too."""

S = TypeVar("S")
T = TypeVar("T")
Output: TypeAlias = NetworkOutput | RemoteRows
"""Of a network in this process, or in another."""


class Pass(NamedTuple):
    """New frames of one network pass.

    Attributes:
        frames: the new frames.
        images: (rows, S, S, 3) what the network reads; a frame's row is its index in the stream modulo ``rows``.
        new: which rows hold the new frames; rows after them are padding.
        histograms: (B, D) colours of the new frames; None where shot boundaries are not needed.
    """

    frames: list[VideoFrame]
    images: Levels
    new: slice
    histograms: Histograms | None


SubmittedPasses = Generator[tuple[Pass, "Future[Output]"], None, None]


class Watch(NamedTuple):
    """How a stream is watched from outside.

    Attributes:
        passed: called with the number of frames that passed the slowest stage, in that stage's thread.
        stopping: once one of them is set, the stages no longer wait for a pass.
    """

    passed: Callable[[int], object]
    stopping: tuple[Event, ...]


class MappedFrames(NamedTuple):
    """Consecutive frames with their post-processed maps; ``cuts`` (B,) says which frames begin a new shot."""

    frames: list[VideoFrame]
    cuts: npt.NDArray[np.bool_]
    output: Callable[[], HostOutput]


def read_passes(
    frames: Iterable[VideoFrame], size: int, rows: int, batch: int | None, *, histograms: bool, images: bool = True
) -> Iterator[Pass]:
    """Stage 1: resize frames to (S, S), describe their colours, and arrange them in passes of the network.

    The number of rows and the row of a frame do not depend on ``batch``: the engine computes every frame with the same
    kernels, so that the result is the same to the last bit.

    Args:
        frames: in order.
        size: S.
        rows: frames of a pass; fewer where the frames are large, see :data:`PASS_BYTES`.
        batch: new frames of a pass at most; None: ``rows``.
        histograms: whether to compute colour histograms.
        images: whether the frames keep their images; without, these have their size alone and take no memory.
    """
    frames, index, resized = iter(frames), 0, np.zeros((0, size, size, 3), np.uint8)
    with ThreadPoolExecutor(RESIZE_THREADS, "resize") as pool:
        for first in frames:
            while index == 0 and rows > 1 and rows * first.image.nbytes > PASS_BYTES:  # whether they are kept or not
                rows //= 2
            row = index % rows
            taken = [first, *islice(frames, min(batch or rows, rows - row) - 1)]
            # A pass with earlier frames may still read its images, so they are copied, not extended.
            resized = np.zeros((rows, size, size, 3), np.uint8) if row == 0 else resized.copy()
            new = slice(row, row + len(taken))
            work = partial(_resize, taken, resized[new], histograms=histograms)
            described = in_parts(pool, work, list(range(len(taken))), RESIZE_THREADS)
            del first
            taken = taken if images else [_without_image(frame) for frame in taken]
            yield Pass(taken, resized, new, np.concatenate(described) if histograms else None)
            index += len(taken)


def submit_passes(
    passes: Generator[Pass, None, None], network: Network | RemoteNetwork, *, windows: bool
) -> Iterator[tuple[Pass, "Future[Output]"]]:
    """Stage 2: start the network on each pass; with ``windows`` only the outputs of new rows are used."""
    with closing(passes):
        for one in passes:
            if isinstance(network, RemoteNetwork) and windows:
                yield one, cast("Future[Output]", network.submit(one.images, one.new))
            else:
                yield one, cast("Future[Output]", network.submit(one.images))


class MapSettings(NamedTuple):
    """How maps are post-processed.

    Attributes:
        color_mean: which frames complete each other's maps by colour; ``clip`` means a window.
        focus: power of the focus on a class; 0: none.
        tag: index of that class; None: the class that the classifier finds in the window.
        shape: of the network's outputs.
    """

    color_mean: ColorMean
    focus: float
    tag: int | None
    shape: OutputShape

    def start(self, parts: list[Output], windows: npt.NDArray[np.int64]) -> Callable[[], HostOutput]:
        """Start to post-process B frames, of which ``windows`` (B,) are the window ids."""
        colors = {"off": None, "frame": np.arange(len(windows)), "clip": windows}[self.color_mean]
        return postprocess(parts, PostProcessing(colors, windows if self.focus else None, self.tag, self.focus))


def postprocess_frames(
    passes: SubmittedPasses, cuts: CutFinder, settings: MapSettings, watch: Watch
) -> Iterator[MappedFrames]:
    """Stage 3 without look-ahead: post-process the maps of each frame by itself; ``cuts`` has no look-ahead either.

    All rows of a pass are post-processed, so that the kernels do not depend on the number of new frames.
    """
    with closing(passes):
        for one, future in passes:
            output = _checked(wait_for(future, *watch.stopping), len(one.images), settings.shape)
            watch.passed(len(one.frames))
            wait = settings.start([output], np.arange(len(one.images)))
            found = np.zeros(len(one.frames), bool) if one.histograms is None else cuts.push(one.histograms)
            yield MappedFrames(one.frames, found, partial(_new_rows, wait, one.new))


def postprocess_windows(
    passes: SubmittedPasses, cuts: CutFinder, settings: MapSettings, watch: Watch
) -> Iterator[MappedFrames]:
    """Stage 3 with look-ahead: decide the shot boundaries and post-process the maps of one window after the other.

    Outputs stay where the network left them until their window is complete.
    """
    frames: list[VideoFrame] = []  # those whose window is not complete, and their outputs
    outputs: list[Output] = []
    decided, starts, position = np.zeros(0, bool), np.zeros(0, bool), 0

    def complete(found: npt.NDArray[np.bool_], *, last: bool = False) -> Iterator[MappedFrames]:
        """The windows that are complete with the next decisions ``found``."""
        nonlocal frames, outputs, decided, starts, position
        begun, position = window_starts(found, position)
        decided, starts = np.concatenate([decided, found]), np.concatenate([starts, begun])
        ends = [*np.flatnonzero(starts[1:]) + 1]
        if len(starts) and (last or len(starts) - (ends or [0])[-1] == WINDOW):
            ends.append(len(starts))
        for length in np.diff(ends, prepend=0).tolist():
            taken, outputs = _split(outputs, length)
            yield MappedFrames(frames[:length], decided[:length], settings.start(taken, np.zeros(length, np.int64)))
            frames, decided, starts = frames[length:], decided[length:], starts[length:]

    with closing(passes):
        for one, future in passes:
            output = wait_for(future, *watch.stopping)
            watch.passed(len(one.frames))
            outputs.append(_rows(_checked(output, len(one.images), settings.shape), one.new))
            frames += one.frames
            assert one.histograms is not None
            yield from complete(cuts.push(one.histograms))
        yield from complete(cuts.finish(), last=True)


def postprocess(parts: Sequence[Output], how: PostProcessing) -> Callable[[], HostOutput]:
    """Start to post-process the maps of B frames whose outputs come in ``parts``, on the device where they are.

    Returns:
        A function that waits for the result.
    """
    if isinstance(parts[0], RemoteRows):
        return parts[0].network.postprocess(cast("Sequence[RemoteRows]", parts), how)
    here = cast("Sequence[NetworkOutput]", parts)
    if isinstance(here[0].maps, np.ndarray):
        result = postprocess_arrays(here, how)
        return lambda: result
    from colocam.inference.torch_network import postprocess_tensors  # noqa: PLC0415 - tensors bring torch along

    return postprocess_tensors(here, how)


def find_candidates(
    mapped: Generator[MappedFrames, None, None],
    threshold_of: Callable[[Float32Array], list[float]],
    boxes_of: Callable[[Levels, float], list[Candidates]],
) -> Iterator[list[FrameObservation]]:
    """Stage 4: the candidate boxes of each frame, and all that :mod:`colocam.temporal` reads.

    Args:
        mapped: consecutive frames with their maps.
        threshold_of: (logits (B, K) of these frames) → τ of each frame.
        boxes_of: (maps, τ) → the candidates of each map.
    """

    def observe(
        some: MappedFrames, output: HostOutput, thresholds: list[float], part: list[int]
    ) -> list[FrameObservation]:
        own = slice(part[0], part[-1] + 1)
        levels = to_8bit(output.maps[own])
        boxes = [
            box
            for threshold, same in groupby(zip(thresholds[own], levels, strict=True), key=itemgetter(0))
            for box in boxes_of(np.stack([level for _, level in same]), threshold)
        ]
        values = (softmax(output.logits[own]), output.maps[own], levels, boxes)
        columns = (some.frames[own], *values, output.peaks[own], some.cuts[own].tolist())
        return [FrameObservation(*one) for one in zip(*columns, strict=True)]

    with ThreadPoolExecutor(BOX_THREADS, "boxes") as pool, closing(mapped):
        for some in mapped:
            output = require_numbers(some.output())
            work = partial(observe, some, output, threshold_of(output.logits))
            yield in_parts(pool, work, list(range(len(some.frames))), BOX_THREADS)


def refine_windows(
    observed: Generator[list[FrameObservation], None, None], segmenter: Segmenter, watch: Watch
) -> Iterator[list[FrameObservation]]:
    """Stage 5, on demand: a segmenter's mask for each frame; ``observed`` has one window in each list.

    The choice of masks goes on from one window of a shot to the next.
    """
    before: Float64Array | None = None
    pool = ThreadPoolExecutor(1, "segmenter")
    with closing(observed), ExitStack() as stack:
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        for window in observed:
            images, levels = [one.frame.image for one in window], np.stack([one.levels for one in window])
            before = None if window[0].cut else before
            masks = wait_for(long_work(pool.submit(refine, segmenter, images, levels, before)), *watch.stopping)
            watch.passed(len(window))
            for observation, refined in zip(window, masks, strict=True):
                if refined is not None and len(observation.candidates.boxes):
                    size, own = observation.frame.image.shape[1::-1], observation.levels.shape[::-1]
                    observation.refined = scale_boxes(refined.box, size, own).astype(np.float64)
                    observation.mask, before = refined.mask, refined.box
            yield window


def in_parts(pool: ThreadPoolExecutor, work: Callable[[list[S]], Iterable[T]], items: list[S], parts: int) -> list[T]:
    """Do ``work`` on at most ``parts`` parts of ``items`` at the same time, and join the results in order.

    For work that releases the interpreter's lock, as OpenCV's does.
    """
    length = max(2, -(-len(items) // parts))
    pieces = [items[start : start + length] for start in range(0, len(items), length)]
    done = map(work, pieces) if len(pieces) == 1 else pool.map(work, pieces)
    return [one for piece in done for one in piece]


def softmax(logits: Float32Array) -> Float32Array:
    """Probabilities (B, K) of logits (B, K)."""
    odds = np.exp(logits - logits.max(1, keepdims=True))
    probabilities: Float32Array = odds / odds.sum(1, keepdims=True)
    return probabilities


def _resize(frames: list[VideoFrame], images: Levels, part: list[int], *, histograms: bool) -> list[Histograms]:
    """Resize a part of the frames, consecutive ones, into images (B, S, S, 3); return their histograms, if asked."""
    for at in part:
        if (resized := frames[at].resized) is not None:
            images[at] = resized
        else:
            resize_into(frames[at].image, images[at])
    return [colour_histograms(images[part[0] : part[-1] + 1])] if histograms else []


def _without_image(frame: VideoFrame) -> VideoFrame:
    """The frame with an image of its shape that takes no memory."""
    return replace(frame, image=black_image(*frame.image.shape[:2]), resized=None)


def _rows(output: Output, rows: slice) -> Output:
    return output[rows] if isinstance(output, RemoteRows) else rows_of(output, rows)


def _checked(output: Output, rows: int, shape: OutputShape) -> Output:
    """An output in another process is checked there."""
    return output if isinstance(output, RemoteRows) else checked(output, rows, shape)


def _new_rows(wait: Callable[[], HostOutput], new: slice) -> HostOutput:
    logits, maps, peaks = wait()
    return HostOutput(logits[new], maps[new], peaks[new])


def _split(outputs: list[Output], count: int) -> tuple[list[Output], list[Output]]:
    """The outputs of the first ``count`` frames, and the others."""
    first: list[Output] = []
    for place, output in enumerate(outputs):
        length = len(output if isinstance(output, RemoteRows) else output.logits)
        if length >= count:
            rest = [_rows(output, slice(count, None))] if length > count else []
            return [*first, _rows(output, slice(count))], [*rest, *outputs[place + 1 :]]
        first.append(output)
        count -= length
    return first, []

"""The stages from decoded frames to candidate boxes, in their order; :mod:`colocam.inference.pipeline` connects them.

Each stage is a generator. It closes the stage before it when it ends.

Tests: tests/inference/test_localizer.py, tests/inference/test_same_boxes.py.
"""

import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates
from colocam.boxes.quantize import to_8bit
from colocam.errors import ColocamError
from colocam.inference.network import HostOutput, Ids, require_numbers, softmax
from colocam.inference.passes import BOX_THREADS, AnyNetwork, MapSettings, PassRows
from colocam.maps.prior import Prior, weigh_where_it_agrees
from colocam.temporal.cuts import WINDOW, CutFinder, Histograms, color_histograms, window_starts
from colocam.temporal.motion import SIDE, WeighByPast, WeighWindows, gray_frames
from colocam.temporal.smoothing import FrameObservation
from colocam.types import Float32Array, Levels, VideoFrame
from colocam.utils.device import cores
from colocam.utils.prefetch import in_parts
from colocam.video.frame_ring import black_image, resize_into

PASS_BYTES = 2**27
"""Most bytes of decoded frames in one pass: if frames are large, a pass has fewer rows."""
RESIZE_THREADS = min(16, cores())

S = TypeVar("S")
T = TypeVar("T")


class Pass(NamedTuple):
    """New frames of one network pass.

    Attributes:
        frames: the new frames.
        images: (rows, S, S, 3) what the network reads; a frame's row is its index in the stream modulo ``rows``.
        ids: (rows, 2) number of the stream, and index of the frame in it.
        new: which rows hold the new frames; rows after them are padding.
        histograms: (B, D) colors of the new frames; None where shot boundaries are not needed.
        grays: (B, h, w) the new frames in gray; None where motion is not needed.
        seen: (B, h, w) what the prior sees in the new frames; None without one.
    """

    frames: list[VideoFrame]
    images: Levels
    ids: Ids
    new: slice
    histograms: Histograms | None
    grays: Levels | None
    seen: Levels | None


SubmittedPasses = Generator[tuple[Pass, PassRows], None, None]


class MappedFrames(NamedTuple):
    """Consecutive frames with their post-processed maps.

    Attributes:
        frames: B frames.
        ids: (B, 2) which the output must have.
        cuts: (B,) which frames begin a new shot.
        output: waits for the maps.
        grays: (B, h, w) the frames in gray; None where motion is not needed.
        seen: (B, h, w) what the prior sees in the frames; None without one.
    """

    frames: list[VideoFrame]
    ids: Ids
    cuts: npt.NDArray[np.bool_]
    output: Callable[[], HostOutput]
    grays: Levels | None
    seen: Levels | None


def read_passes(
    frames: Iterable[VideoFrame],
    size: int,
    rows: int,
    batch: int | None,
    *,
    histograms: bool,
    grays: bool = False,
    images: bool = True,
    prior: Prior | None = None,
) -> Iterator[Pass]:
    """Stage 1: resize frames to (S, S), describe their colors, and arrange them in passes of the network.

    Neither the number of rows nor a frame's row depends on ``batch``: every frame is computed by the same kernels, so
    the result is the same to the last bit.

    Args:
        frames: in order.
        size: S.
        rows: frames per pass; fewer if the frames are large, see :data:`PASS_BYTES`.
        batch: most new frames per pass; None: ``rows``.
        histograms: whether to compute color histograms.
        grays: whether to make gray copies, to compute motion from.
        images: whether the frames keep their images; if not, only the size is kept, which takes no memory.
        prior: sees where objects stand out in the resized frames; None: none.
    """
    frames = iter(frames)
    index = 0
    resized = np.zeros((0, size, size, 3), np.uint8)
    ids = np.zeros((0, 2), np.int64)
    stream = secrets.randbits(62)  # no other process will choose the same
    with ThreadPoolExecutor(RESIZE_THREADS, "resize") as pool:
        for first in frames:
            while index == 0 and rows > 1 and rows * first.image.nbytes > PASS_BYTES:  # even where images are not kept
                rows //= 2
            row = index % rows
            taken = [first, *islice(frames, min(batch or rows, rows - row) - 1)]
            # An earlier pass may still be reading these images, so they are copied before more are added.
            resized = np.zeros((rows, size, size, 3), np.uint8) if row == 0 else resized.copy()
            ids = np.full((rows, 2), -1, np.int64) if row == 0 else ids.copy()
            new = slice(row, row + len(taken))
            ids[new] = [(stream, frame.index) for frame in taken]
            gray = np.empty((len(taken), SIDE, SIDE), np.uint8) if grays else None
            work = partial(_resize, taken, resized[new], gray, histograms=histograms)
            described = in_parts(pool, work, list(range(len(taken))), RESIZE_THREADS)
            del first
            taken = taken if images else [_without_image(frame) for frame in taken]
            seen = None if prior is None else prior.maps(resized[new])
            yield Pass(taken, resized, ids, new, np.concatenate(described) if histograms else None, gray, seen)
            index += len(taken)


def submit_passes(
    passes: Generator[Pass, None, None], network: AnyNetwork, passed: Callable[[int], object], *, windows: bool
) -> Iterator[tuple[Pass, PassRows]]:
    """Stage 2: start the network on each pass; with ``windows`` only the outputs of new rows are used."""
    with closing(passes):
        for batch in passes:
            yield batch, network.submit(batch.images, batch.ids, batch.new, passed, whole=not windows)


def postprocess_frames(passes: SubmittedPasses, cuts: CutFinder, settings: MapSettings) -> Iterator[MappedFrames]:
    """Stage 3 without look-ahead: post-process each frame's map on its own; ``cuts`` has no look-ahead either.

    All rows of a pass are post-processed, so that the kernels do not depend on the number of new frames.
    """
    with closing(passes):
        for batch, rows in passes:
            wait = settings.start([rows], np.arange(len(batch.images)))
            decided = np.zeros(len(batch.frames), bool) if batch.histograms is None else cuts.push(batch.histograms)
            yield MappedFrames(
                batch.frames,
                batch.ids[batch.new],
                decided,
                partial(_new_rows, wait, batch.new),
                batch.grays,
                batch.seen,
            )


def postprocess_windows(passes: SubmittedPasses, cuts: CutFinder, settings: MapSettings) -> Iterator[MappedFrames]:
    """Stage 3 with look-ahead: decide the shot boundaries, and post-process the maps window by window.

    Outputs stay where the network left them until their window is complete.
    """
    frames: list[VideoFrame] = []  # those whose window is not complete, and their outputs
    outputs: list[PassRows] = []
    grays: list[Levels] = []
    seen: list[Levels] = []
    ids = np.zeros((0, 2), np.int64)
    decided = np.zeros(0, bool)
    starts = np.zeros(0, bool)
    position = 0

    def complete(decisions: npt.NDArray[np.bool_], *, last: bool = False) -> Iterator[MappedFrames]:
        """The windows that are complete with the next ``decisions``."""
        nonlocal frames, outputs, grays, seen, ids, decided, starts, position
        begun, position = window_starts(decisions, position)
        decided = np.concatenate([decided, decisions])
        starts = np.concatenate([starts, begun])
        ends = [*np.flatnonzero(starts[1:]) + 1]
        if len(starts) and (last or len(starts) - (ends or [0])[-1] == WINDOW):
            ends.append(len(starts))
        for length in np.diff(ends, prepend=0).tolist():
            taken, outputs = _split(outputs, length)
            mapped = settings.start(taken, np.zeros(length, np.int64))
            gray = np.stack(grays[:length]) if grays else None
            objects = np.stack(seen[:length]) if seen else None
            yield MappedFrames(frames[:length], ids[:length], decided[:length], mapped, gray, objects)
            frames = frames[length:]
            ids = ids[length:]
            decided = decided[length:]
            starts = starts[length:]
            grays = grays[length:]
            seen = seen[length:]

    with closing(passes):
        for batch, rows in passes:
            outputs.append(rows)
            frames += batch.frames
            grays.extend([] if batch.grays is None else batch.grays)
            seen.extend([] if batch.seen is None else batch.seen)
            ids = np.concatenate([ids, batch.ids[batch.new]])
            assert batch.histograms is not None
            yield from complete(cuts.push(batch.histograms))
        yield from complete(cuts.finish(), last=True)


def find_candidates(
    mapped: Generator[MappedFrames, None, None],
    threshold_of: Callable[[Float32Array], list[float]],
    boxes_of: Callable[[Levels, float], list[Candidates]],
    motion: WeighWindows | WeighByPast | None = None,
) -> Iterator[list[FrameObservation]]:
    """Stage 4: the candidate boxes of each frame, and all else that :mod:`colocam.temporal` reads.

    Args:
        mapped: consecutive frames with their maps.
        threshold_of: (logits (B, K) of these frames) → τ of each frame.
        boxes_of: (maps, τ) → the candidates of each map.
        motion: weighs the maps that boxes are read from, after the prior; None: no motion is measured.
    """

    def observe(
        window: MappedFrames,
        output: HostOutput,
        weighed: Levels | None,
        agrees: npt.NDArray[np.bool_] | None,
        thresholds: list[float],
        part: list[int],
    ) -> list[FrameObservation]:
        rows = slice(part[0], part[-1] + 1)
        levels = to_8bit(output.maps[rows]) if weighed is None else weighed[rows]
        boxes = [
            box
            for threshold, same in groupby(zip(thresholds[rows], levels, strict=True), key=itemgetter(0))
            for box in boxes_of(np.stack([level for _, level in same]), threshold)
        ]
        values = (softmax(output.logits[rows]), output.maps[rows], levels, boxes)
        scalars = (window.cuts[rows].tolist(), output.foreground[rows].tolist())
        columns = (window.frames[rows], *values, output.peaks[rows], *scalars)
        found = [FrameObservation(*cells) for cells in zip(*columns, strict=True)]
        if window.seen is not None and agrees is not None:
            for observation, seen, used in zip(found, window.seen[rows], agrees[rows], strict=True):
                observation.seen = seen if used else None
        return found

    with ThreadPoolExecutor(BOX_THREADS, "boxes") as pool, closing(mapped):
        for window in mapped:
            output = require_numbers(window.output())
            if not np.array_equal(output.ids, window.ids):
                raise ColocamError("the network returned rows of another video, a fault of colocam: please report it")
            weighed = agrees = None
            if window.seen is not None:
                weighed, agrees = weigh_where_it_agrees(to_8bit(output.maps), window.seen)
            if motion is not None and window.grays is not None:
                levels = to_8bit(output.maps) if weighed is None else weighed
                weighed = motion.push(levels, window.grays, window.cuts, partial(_each, pool))
            work = partial(observe, window, output, weighed, agrees, threshold_of(output.logits))
            yield in_parts(pool, work, list(range(len(window.frames))), BOX_THREADS)


def _each(pool: ThreadPoolExecutor, work: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """Do ``work`` on each item in threads."""
    return in_parts(pool, lambda part: [work(item) for item in part], list(items), BOX_THREADS)


def _resize(
    frames: list[VideoFrame], images: Levels, grays: Levels | None, part: list[int], *, histograms: bool
) -> list[Histograms]:
    """Resize some consecutive frames into images (B, S, S, 3); return their histograms if ``histograms`` is set.

    ``grays`` (B, h, w) receives their gray copies.
    """
    for at in part:
        if (resized := frames[at].resized) is not None:
            images[at] = resized
        else:
            resize_into(frames[at].image, images[at])
    rows = slice(part[0], part[-1] + 1)
    if grays is not None:
        grays[rows] = gray_frames(images[rows])
    return [color_histograms(images[rows])] if histograms else []


def _without_image(frame: VideoFrame) -> VideoFrame:
    """The frame with an image of its shape that takes no memory."""
    return replace(frame, image=black_image(*frame.image.shape[:2]), resized=None)


def _new_rows(wait: Callable[[], HostOutput], new: slice) -> HostOutput:
    return HostOutput(*(part[new] for part in wait()))  # type: ignore[arg-type]


def _split(outputs: list[PassRows], count: int) -> tuple[list[PassRows], list[PassRows]]:
    """The rows of the first ``count`` frames, and the others."""
    first: list[PassRows] = []
    for place, rows in enumerate(outputs):
        if len(rows) >= count:
            rest = [rows[count:]] if len(rows) > count else []
            return [*first, rows[:count]], [*rest, *outputs[place + 1 :]]
        first.append(rows)
        count -= len(rows)
    return first, []

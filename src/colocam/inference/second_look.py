"""Stage 4½ of the way from frames to boxes, on demand: look at each frame's object again, enlarged.

A network of S × S pixels sees a small object in few of them. So the part of the frame around the box is cut out with a
margin, enlarged to S × S, and localized again; the box of this second look is mapped back (docs/method/second-look.md).
"""

import secrets
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import cv2
import numpy as np

from colocam.boxes.candidates import Candidates
from colocam.boxes.iou import iou
from colocam.boxes.quantize import to_8bit
from colocam.errors import ColocamError
from colocam.inference.network import HostOutput, Ids, require_numbers
from colocam.inference.passes import BOX_THREADS, MapSettings
from colocam.maps.postprocess import array_classes_of
from colocam.maps.prior import weigh_by_prior
from colocam.temporal.look import OVERLAP, Look, Square, square_around
from colocam.temporal.smoothing import FrameObservation
from colocam.types import Float32Array, Image, Levels
from colocam.utils.prefetch import in_parts
from colocam.video.frame_ring import resize_into

TINY = 1e-9
Observations = list[FrameObservation]


class SecondLook:
    """Looks at the objects of consecutive frames again.

    Args:
        settings: how maps are post-processed, and the network.
        rows: frames of a network pass.
        threshold_of: (logits (B, K) of these frames) → τ of each frame.
        boxes_of: (maps, τ) → the candidates of each map.
        windows: whether frames come window by window, as with ``smooth="offline"``.
    """

    def __init__(
        self,
        settings: MapSettings,
        rows: int,
        threshold_of: Callable[[Float32Array], list[float]],
        boxes_of: Callable[[Levels, float], list[Candidates]],
        *,
        windows: bool,
    ) -> None:
        self._settings, self._rows, self._windows = settings, rows, windows
        self._threshold_of, self._boxes_of = threshold_of, boxes_of
        self._position = 0  # frames before the next ones
        self._stream = secrets.randbits(62)  # as no other process will choose

    def look(self, frames: Observations, pool: ThreadPoolExecutor, looks: int) -> None:
        """Look ``looks`` times; set ``candidates``, ``levels``, ``raw_map`` and ``look`` where a look is used."""
        thresholds, size = self._threshold_of(_logits(frames)), self._settings.network.shape.size
        for _ in range(looks):
            squares = [_square_of(observation, size) for observation in frames]
            places = [at for at, square in enumerate(squares) if square is not None]
            if not places:
                break
            chosen = [square for square in squares if square is not None]
            looked = [frames[at] for at in places]
            output = self._postprocessed(looked, chosen, places, pool)
            work = partial(self._take, looked, chosen, output, [thresholds[at] for at in places])
            in_parts(pool, work, list(range(len(looked))), BOX_THREADS)
        self._position += len(frames)

    def _postprocessed(
        self, frames: Observations, squares: list[Square], places: list[int], pool: ThreadPoolExecutor
    ) -> HostOutput:
        """Post-processed maps of the squares.

        A frame's row in its pass does not depend on ``batch``: in a window, squares are counted; otherwise, frames.
        """
        settings, size = self._settings, self._rows
        rows = list(range(len(frames))) if self._windows else [(self._position + at) % size for at in places]
        images, ids = self._enlarged(frames, squares, rows, pool)
        passes = [slice(start, start + size) for start in range(0, len(images), size)]
        submit = partial(settings.network.submit, counted=False, whole=not self._windows)
        parts = [submit(images[one], ids[one], slice(0, min(size, len(rows) - one.start))) for one in passes]
        if self._windows:
            together = np.zeros(len(rows), np.int64)
            if settings.focus:
                settings = settings._replace(tag=int(array_classes_of(_logits(frames), together, settings.tag)[0]))
            output = require_numbers(settings.start(parts, together)())
        else:
            whole = require_numbers(settings.start(parts, np.arange(size))())
            output = HostOutput(*(part[rows] for part in whole))  # type: ignore[arg-type]
        if not np.array_equal(output.ids, ids[rows]):
            raise ColocamError("the network returned rows of another video, a fault of colocam: please report it")
        return output

    def _enlarged(
        self, frames: Observations, squares: list[Square], rows: list[int], pool: ThreadPoolExecutor
    ) -> tuple[Levels, Ids]:
        """Images (n, S, S, 3) of whole passes with the squares in some ``rows``, and ids (n, 2) of all rows."""
        side = self._settings.network.shape.size
        images = np.zeros(((max(rows) // self._rows + 1) * self._rows, side, side, 3), np.uint8)
        ids = np.full((len(images), 2), -1, np.int64)
        ids[rows] = [(self._stream, observation.frame.index) for observation in frames]

        def enlarge(part: list[int]) -> list[None]:
            for at in part:
                _enlarge_into(frames[at], squares[at], images[rows[at]])
            return [None] * len(part)

        in_parts(pool, enlarge, list(range(len(frames))), BOX_THREADS)
        return images, ids

    def _take(
        self, frames: Observations, squares: list[Square], output: HostOutput, thresholds: list[float], part: list[int]
    ) -> list[None]:
        """Use the looks at some frames that show the object."""
        for at in part:
            level = _with_prior(to_8bit(output.maps[at]), frames[at].seen, squares[at])
            (candidates,) = self._boxes_of(level[None], thresholds[at])
            signs = (output.peaks[at], float(output.foreground[at]))
            _take_look(frames[at], Look(squares[at], level, candidates.boxes, *signs), candidates, output.maps[at])
        return [None] * len(part)


def look_again(observed: Generator[Observations, None, None], second: SecondLook, looks: int) -> Iterator[Observations]:
    """Look at the objects of each batch ``looks`` more times."""
    with ThreadPoolExecutor(BOX_THREADS, "looks") as pool, closing(observed):
        for frames in observed:
            second.look(frames, pool, looks)
            yield frames


def _square_of(observation: FrameObservation, size: int) -> Square | None:
    boxes = observation.candidates.boxes
    weighed = observation.seen is not None
    return square_around(boxes[0], len(observation.levels), size, prior=weighed) if len(boxes) else None


def _logits(frames: Observations) -> Float32Array:
    logits: Float32Array = np.log(np.maximum([one.probabilities for one in frames], TINY)).astype(np.float32)
    return logits


def _with_prior(level: Levels, seen: Levels | None, square: Square) -> Levels:
    """The map (M, M) of a square, weighed by what a prior sees there."""
    if seen is None:
        return level
    rows, columns = square.in_frame(seen.shape, len(level))
    return weigh_by_prior(level, np.ascontiguousarray(seen[rows, columns]))


def _enlarge_into(observation: FrameObservation, square: Square, image: Image) -> None:
    """Cut a square out of the frame, and resize it into ``image`` (S, S, 3)."""
    frame = observation.frame.image
    rows, columns = square.in_frame(frame.shape[:2], len(observation.levels))
    part = np.ascontiguousarray(frame[rows, columns])
    if min(part.shape[:2]) >= len(image):
        resize_into(part, image)
    else:
        cv2.resize(part, image.shape[1::-1], dst=image, interpolation=cv2.INTER_LINEAR)


def _take_look(observation: FrameObservation, look: Look, candidates: Candidates, heat: Float32Array | Levels) -> None:
    """Use what a look found, unless it found nothing, or something other than the first box.

    Args:
        observation: of the frame.
        look: the square and its map.
        candidates: in that map.
        heat: the map as the network gave it.
    """
    if not len(candidates.boxes):
        return
    boxes = look.square.from_inside(candidates.boxes, len(look.levels))
    if iou(boxes[0], observation.candidates.boxes[0]) < OVERLAP:
        return
    observation.candidates = candidates._replace(boxes=boxes)
    observation.levels = look.square.pasted(look.levels, np.zeros_like(observation.levels))
    observation.raw_map = look.square.pasted(heat, observation.raw_map)
    observation.look = look

"""Stage 4½ of the way from frames to boxes, on demand: look at each frame's object again, enlarged.

A network of S × S pixels sees a small object in few of them. So the part of the frame around the box is cut out with a
margin, enlarged to S × S, and localized again; the box of this second look is mapped back (docs/method/second-look.md).

With several objects, four parts of the frame are looked at first: what one map of the frame joins, or misses, is often
apart in them. Then each object that was found is looked at again.

Tests: tests/inference/test_second_look.py, tests/inference/test_several_looks.py.
"""

import secrets
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import SIZE, Candidates, instance_boxes
from colocam.boxes.iou import iou
from colocam.boxes.quantize import to_8bit
from colocam.errors import ColocamError
from colocam.inference.network import HostOutput, Ids, require_numbers
from colocam.inference.passes import BOX_THREADS, MapSettings
from colocam.maps.postprocess import array_classes_of
from colocam.maps.prior import weigh_by_prior
from colocam.temporal.cuts import WINDOW
from colocam.temporal.look import OVERLAP, Look, Square, four_parts, square_around
from colocam.temporal.presence import Calibration, Presence
from colocam.temporal.smoothing import FrameObservation
from colocam.types import Float32Array, Float64Array, Image, Levels
from colocam.utils.prefetch import in_parts
from colocam.video.frame_ring import resize_into

TINY = 1e-9
CUT = 0.02
"""A box so close to an inner edge of a part, relative to its side, may go on beyond it: another part has all of it."""
HIGHER = 1.4
"""Threshold for several objects relative to the model's: what joins them is cooler, and each is seen enlarged."""
SAME = 0.5
"""IoU above which two boxes are of the same object."""
FAINT = 0.3
"""Least score of an object, relative to the best one of its frame."""
LEAST_PIXELS = 64
"""Longer side in the frame of a place that is looked at for one of several objects: less shows nothing new."""
MOST_OBJECTS = 8
"""Objects of a frame, the best ones, that are looked at again."""
Observations = list[FrameObservation]
Thresholds = Callable[[Float32Array], list[float]]
BoxesOf = Callable[[Levels, float], list[Candidates]]


class Place(NamedTuple):
    """A square of a frame.

    Attributes:
        frame: index among the frames that are looked at.
        square: in its map.
    """

    frame: int
    square: Square


Places = list[Place]


class Enlarger:
    """Passes of the network over squares of consecutive frames, each enlarged to a whole image.

    Args:
        settings: how maps are post-processed, and the network.
        rows: frames of a network pass.
        windows: whether frames come window by window, as with ``smooth="offline"``.
        prior: whether the network weighs its maps by a prior decoder.
    """

    def __init__(self, settings: MapSettings, rows: int, *, windows: bool, prior: bool) -> None:
        self.settings, self.rows, self.windows, self.prior = settings, rows, windows, prior
        self._position = 0  # frames before those that are looked at
        self._stream = secrets.randbits(62)  # as no other process will choose

    def move_on(self, frames: int) -> None:
        """All is seen of so many frames."""
        self._position += frames

    def square(self, observation: FrameObservation, box: Float64Array) -> Square | None:
        """The square to look at for a box of the frame; None if the network sees it well enough."""
        weighed = self.prior or observation.seen is not None
        return square_around(box, len(observation.levels), self.settings.network.shape.size, prior=weighed)

    def classes(self, frames: Observations) -> list[int]:
        """The class of each frame: the one that was given, or that of its window or, without windows, its own."""
        sequences = np.zeros(len(frames), np.int64) if self.windows else np.arange(len(frames))
        found: list[int] = array_classes_of(_logits(frames), sequences, self.settings.tag).tolist()
        return found

    def maps(self, frames: Observations, places: Places, pool: ThreadPoolExecutor) -> HostOutput:
        """Post-processed maps of the ``places``; without windows, at most one of each frame.

        The row of a place in its pass does not depend on ``batch``: in a window, places are counted; otherwise, frames.
        """
        settings, size = self.settings, self.rows
        at = range(len(places)) if self.windows else ((self._position + place.frame) % size for place in places)
        rows = list(at)
        images, ids = self._enlarged(frames, places, rows, pool)
        passes = [slice(start, start + size) for start in range(0, len(images), size)]
        submit = partial(settings.network.submit, counted=False, whole=not self.windows)
        parts = [submit(images[one], ids[one], slice(0, min(size, len(rows) - one.start))) for one in passes]
        if self.windows:
            if settings.focus:
                settings = settings._replace(tag=self.classes(frames)[0])
            output = require_numbers(settings.start(parts, np.zeros(len(rows), np.int64))())
        else:
            whole = require_numbers(settings.start(parts, np.arange(size))())
            output = HostOutput(*(part[rows] for part in whole))  # type: ignore[arg-type]
        if not np.array_equal(output.ids, ids[rows]):
            raise ColocamError("the network returned rows of another video, a fault of colocam: please report it")
        return output

    def _enlarged(
        self, frames: Observations, places: Places, rows: list[int], pool: ThreadPoolExecutor
    ) -> tuple[Levels, Ids]:
        """Images (n, S, S, 3) of whole passes with the places in some ``rows``, and ids (n, 2) of all rows."""
        side = self.settings.network.shape.size
        images = np.zeros(((max(rows) // self.rows + 1) * self.rows, side, side, 3), np.uint8)
        ids = np.full((len(images), 2), -1, np.int64)
        ids[rows] = [(self._stream, frames[place.frame].frame.index) for place in places]

        def enlarge(part: list[int]) -> list[None]:
            for at in part:
                _enlarge_into(frames[places[at].frame], places[at].square, images[rows[at]])
            return [None] * len(part)

        in_parts(pool, enlarge, list(range(len(places))), BOX_THREADS)
        return images, ids


class SecondLook:
    """Looks at the object of each frame again.

    Args:
        enlarger: computes maps of squares.
        threshold_of: (logits (B, K) of these frames) → τ of each frame.
        boxes_of: (maps, τ) → the candidates of each map.
    """

    def __init__(self, enlarger: Enlarger, threshold_of: Thresholds, boxes_of: BoxesOf) -> None:
        self._enlarger, self._threshold_of, self._boxes_of = enlarger, threshold_of, boxes_of

    def look(self, frames: Observations, pool: ThreadPoolExecutor, looks: int) -> None:
        """Look ``looks`` times; set ``candidates``, ``levels``, ``raw_map`` and ``look`` where a look is used."""
        thresholds, square_of = self._threshold_of(_logits(frames)), self._enlarger.square
        for _ in range(looks):
            squares = [square_of(one, one.candidates.boxes[0]) if len(one.candidates.boxes) else None for one in frames]
            places = [Place(at, square) for at, square in enumerate(squares) if square is not None]
            if not places:
                break
            output = self._enlarger.maps(frames, places, pool)
            in_parts(pool, partial(self._take, frames, places, output, thresholds), [*range(len(places))], BOX_THREADS)
        self._enlarger.move_on(len(frames))

    def _take(
        self, frames: Observations, places: Places, output: HostOutput, thresholds: list[float], part: list[int]
    ) -> list[None]:
        """Use the looks at some frames that show the object."""
        for at in part:
            place, square = places[at]
            level = _with_prior(to_8bit(output.maps[at]), frames[place].seen, square)
            (candidates,) = self._boxes_of(level[None], thresholds[place])
            signs = (output.peaks[at], float(output.foreground[at]))
            _take_look(frames[place], Look(square, level, candidates.boxes, *signs), candidates, output.maps[at])
        return [None] * len(part)


class View(NamedTuple):
    """What was seen in a place.

    Attributes:
        frame: index of the frame.
        look: the place, its map, and the boxes of its regions.
        scores: (k,) of these boxes, as if they had been found in the map of the frame.
        heat: (h, w) the map as the network gave it.
    """

    frame: int
    look: Look
    scores: Float64Array
    heat: Float32Array | Levels


class Found(NamedTuple):
    """An object of a frame.

    Attributes:
        box: (4,) in map pixels of the frame.
        score: how much it stands out, times the presence of the object in the view where it was found.
        view: where its box was found; None: in the map of the frame.
        region: its index there.
    """

    box: Float64Array
    score: float
    view: View | None = None
    region: int = 0


class SeveralLooks:
    """Looks at four parts of each frame, then at each object again.

    Args:
        enlarger: computes maps of squares.
        threshold_of: (logits (B, K) of these frames) → τ of each frame.
        calibration: of the presence of an object in a view.
    """

    def __init__(self, enlarger: Enlarger, threshold_of: Thresholds, calibration: Calibration) -> None:
        self._enlarger, self._threshold_of, self._calibration = enlarger, threshold_of, calibration

    def look(self, frames: Observations, pool: ThreadPoolExecutor, looks: int) -> None:
        """Look at the parts of each frame, then ``looks`` times at each object; set ``candidates`` and ``looks``."""
        thresholds, classes = self._threshold_of(_logits(frames)), self._enlarger.classes(frames)
        objects = [self._of_frame(frame, tag) for frame, tag in zip(frames, classes, strict=True)]
        parts = four_parts(len(frames[0].levels))
        rounds = [[Place(at, part) for at in range(len(frames))] for part in parts]
        for view in self._views(frames, rounds, thresholds, pool):
            present = self._presence(view.look.peaks, view.look.foreground, classes[view.frame])
            objects[view.frame] += _objects_of(view, present)
        objects = [distinct(of_frame) for of_frame in objects]
        for _ in range(looks):
            indices, rounds = self._closer(frames, objects)
            for index, view in zip(indices, self._views(frames, rounds, thresholds, pool), strict=True):
                objects[view.frame][index] = _seen_closely(objects[view.frame][index], view)
            objects = [distinct(of_frame) for of_frame in objects]
        for frame, of_frame, threshold in zip(frames, objects, thresholds, strict=True):
            _set_objects(frame, of_frame, threshold)
        self._enlarger.move_on(len(frames))

    def _of_frame(self, frame: FrameObservation, tag: int) -> list[Found]:
        boxes, scores, *_ = frame.candidates
        present = self._presence(frame.peaks, frame.foreground, tag)
        return [Found(box, score * present) for box, score in zip(boxes, scores.tolist(), strict=True)]

    def _presence(self, peaks: npt.NDArray[np.floating], foreground: float, tag: int) -> float:
        """Presence of the class in one view by itself."""
        (present,) = Presence(self._calibration, 0, tag, 1.0).push(peaks, foreground)
        return present

    def _closer(self, frames: Observations, objects: list[list[Found]]) -> tuple[list[int], list[Places]]:
        """Objects that are worth a closer look: their indices in their frames, and where to look, in rounds."""
        indices: list[int] = []
        rounds: list[Places] = []
        for index in range(min(max(map(len, objects)), MOST_OBJECTS)):
            places = []
            for at, (frame, of_frame) in enumerate(zip(frames, objects, strict=True)):
                square = self._enlarger.square(frame, of_frame[index].box) if index < len(of_frame) else None
                if square is not None and square.pixels(frame.frame.image.shape, len(frame.levels)) >= LEAST_PIXELS:
                    places.append(Place(at, square))
            indices += [index] * len(places)
            rounds.append(places)
        return indices, rounds

    def _views(
        self, frames: Observations, rounds: list[Places], thresholds: list[float], pool: ThreadPoolExecutor
    ) -> Iterator[View]:
        """What is seen in the places of ``rounds``, in their order; each round has at most one place of a frame."""
        together = max(self._enlarger.settings.network.rows, WINDOW)  # so many outputs are handed over at once
        while rounds:
            count = max(1, together // len(frames)) if self._enlarger.windows else 1
            places = list(chain.from_iterable(rounds[:count]))
            rounds = rounds[count:]
            if not places:
                continue
            output = self._enlarger.maps(frames, places, pool)
            work = partial(_see, frames, places, output, thresholds)
            yield from in_parts(pool, work, list(range(len(places))), BOX_THREADS)


def distinct(objects: list[Found]) -> list[Found]:
    """The objects that are not the same as one with a higher score, and not far fainter; the best first."""
    kept: list[Found] = []
    for candidate in sorted(objects, key=lambda found: -found.score):
        if kept and candidate.score < FAINT * kept[0].score:
            break
        if all(iou(candidate.box, other.box) <= SAME for other in kept):
            kept.append(candidate)
    return kept


def _see(
    frames: Observations, places: Places, output: HostOutput, thresholds: list[float], part: list[int]
) -> list[View]:
    """The regions in the maps of some places."""
    views = []
    for at in part:
        frame, square = places[at]
        level = _with_prior(to_8bit(output.maps[at]), frames[frame].seen, square)
        (candidates,) = instance_boxes(level[None], thresholds[frame])
        look = Look(square, level, candidates.boxes, output.peaks[at], float(output.foreground[at]))
        scores = candidates.scores * (square.side / len(level)) ** (2 * SIZE)  # the share of the frame's area counts
        views.append(View(frame, look, scores, output.maps[at]))
    return views


def _objects_of(view: View, present: float) -> list[Found]:
    """The objects of a part of the frame that lie within it."""
    square, side = view.look.square, len(view.look.levels)
    margin = CUT * side
    inside = view.look.boxes
    low, high = inside[:, :2] > margin, inside[:, 2:] < side - 1 - margin
    start = np.array([square.x, square.y])
    whole = ((low | (start == 0)) & (high | (start + square.side == side))).all(1)
    boxes = square.from_inside(inside, side)
    scores = (present * view.scores).tolist()
    return [Found(boxes[at], scores[at], view, at) for at in np.flatnonzero(whole).tolist()]


def _seen_closely(before: Found, view: View) -> Found:
    """The object with the box of a look at it, unless that found nothing, or something else."""
    inside = view.look.boxes
    if not len(inside):
        return before
    largest = int((inside[:, 2:] - inside[:, :2]).prod(1).argmax())
    box = view.look.square.from_inside(inside[largest], len(view.look.levels))
    return before if iou(box, before.box) < OVERLAP else Found(box, before.score, view, largest)


def _set_objects(frame: FrameObservation, objects: list[Found], threshold: float) -> None:
    """Make the objects the candidates of a frame, and show in its maps where they were found."""
    boxes = np.array([found.box for found in objects], np.float64).reshape(-1, 4)
    frame.candidates = Candidates(boxes, np.array([found.score for found in objects]), np.full(len(boxes), threshold))
    looks: list[Look | None] = []
    for box, _, view, region in objects:
        looks.append(view and view.look._replace(boxes=view.look.boxes[region : region + 1]))
        if view is not None:
            frame.levels = view.look.square.shown_in_box(view.look.levels, frame.levels, box)
            frame.raw_map = view.look.square.shown_in_box(view.heat, frame.raw_map, box)
    frame.looks = looks


def look_again(
    observed: Generator[Observations, None, None], second: SecondLook | SeveralLooks, looks: int
) -> Iterator[Observations]:
    """Look at the objects of each batch ``looks`` more times."""
    with ThreadPoolExecutor(BOX_THREADS, "looks") as pool, closing(observed):
        for frames in observed:
            second.look(frames, pool, looks)
            yield frames


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

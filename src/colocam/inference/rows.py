"""Stages 5 to 7, from candidate boxes to rows: masks of a segmenter on demand, boxes over time, localizations.

Tests: tests/inference/test_refined.py, tests/inference/test_instances.py, tests/inference/test_localizer.py.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from threading import Event
from typing import NamedTuple, Protocol, TypeVar

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates
from colocam.boxes.extract import mask_of_box, scale_boxes
from colocam.config.card import Card
from colocam.config.options import Options
from colocam.inference.network import softmax
from colocam.inference.passes import AnyNetwork, Passes
from colocam.maps.postprocess import array_classes_of
from colocam.segment.objects import find_objects
from colocam.segment.refine import PADDING_COLOR, MaskCandidates, choose_masks, extents, mask_candidates
from colocam.segment.segmenter import Segmenter
from colocam.temporal.path import NONE, margin
from colocam.temporal.presence import SHARE, Calibration, Presence
from colocam.temporal.smoothing import LOOK_AHEAD, FrameObservation, Shots, single, steady
from colocam.types import Box, Float64Array, Image, Levels, Localization, ObjectMask, VideoFrame, heat_of
from colocam.utils.progress import long_work, wait_for
from colocam.video.frame_ring import resize_into

Window = list[FrameObservation]
Found = TypeVar("Found")
TINY = 1e-9
MOST_ODDS = 100.0
"""Log-odds beyond which a class is impossible."""


class Refiner(Protocol[Found]):
    """Gives the frames of a window their masks, in two steps."""

    def find(self, window: Window, passed: Callable[[int], object], /) -> Found:
        """What the segmenter finds, whatever was chosen in the windows before; counts frames that are done."""
        ...

    def choose(self, window: Window, found: Found, /) -> None:
        """Set the masks; in the order of the windows."""
        ...


def refine_windows(
    observed: Generator[Window, None, None],
    refiner: Refiner[Found],
    passed: Callable[[int], object],
    stopping: tuple[Event, ...],
) -> Iterator[Window]:
    """Stage 5: give the frames of each window their masks, in order; meanwhile the segmenter works on the next one."""
    pool = ThreadPoolExecutor(1, "segmenter")
    waiting: deque[tuple[Window, Future[Found]]] = deque()

    def finish() -> Window:
        window, found = waiting.popleft()
        refiner.choose(window, wait_for(found, *stopping))
        return window

    with closing(observed), ExitStack() as stack:
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        for window in observed:
            waiting.append((window, long_work(pool.submit(refiner.find, window, passed))))
            if len(waiting) > 1:
                yield finish()
        while waiting:
            yield finish()


class OneMask:
    """A mask for each frame; the choice of masks goes on from one window of a shot to the next."""

    def __init__(self, segmenter: Segmenter) -> None:
        self._segmenter = segmenter
        self._before: Float64Array | None = None

    def find(self, window: Window, passed: Callable[[int], object]) -> MaskCandidates:
        """All masks."""
        return mask_candidates(self._segmenter, *_images_and_levels(window), passed)

    def choose(self, window: Window, found: MaskCandidates) -> None:
        """Set ``refined`` and ``mask``."""
        before = None if window[0].cut else self._before
        chosen = choose_masks(found, [observation.frame.image for observation in window], self._segmenter.side, before)
        for observation, mask in zip(window, chosen, strict=True):
            if mask is not None and len(observation.candidates.boxes):
                observation.refined = _in_map(mask.box, observation)
                observation.mask, before = mask.mask, mask.box
        self._before = before


class SeveralMasks:
    """A mask for each object of a frame; where there is none, the blobs of the map remain its candidates.

    Args:
        segmenter: gives the masks.
        network: reads their classes, if it can.
        tag: index of the class; None: the class that the classifier finds in the window.
    """

    def __init__(self, segmenter: Segmenter, network: AnyNetwork, tag: int | None) -> None:
        self._segmenter, self._tag = segmenter, tag
        self._network = network if isinstance(network, Passes) and network.reads_crops else None

    def find(self, window: Window, passed: Callable[[int], object]) -> list[list[ObjectMask]]:
        """The objects of each frame."""
        shows = None if self._network is None else partial(self._shows, self._network, self._class_of(window))
        return find_objects(self._segmenter, *_images_and_levels(window), shows, passed)

    def choose(self, window: Window, found: list[list[ObjectMask]]) -> None:
        """Set ``candidates`` and ``masks``."""
        for observation, objects in zip(window, found, strict=True):
            if objects:
                boxes = _in_map(np.array([mask.box for mask in objects]), observation)
                scores = np.array([mask.score for mask in objects])
                observation.candidates = Candidates(boxes, scores, np.zeros(len(boxes)))
                observation.masks = objects

    def _class_of(self, window: Window) -> int:
        logits = np.log(np.maximum([observation.probabilities for observation in window], TINY)).astype(np.float32)
        return int(array_classes_of(logits, np.zeros(len(window), np.int64), self._tag)[0])

    @staticmethod
    def _shows(network: Passes, tag: int, image: Image, masks: Levels) -> Float64Array:
        """(n,) probability of a class for masks (n, h, w) of an image (H, W, 3), each alone on gray."""
        side = network.shape.size
        small = np.empty((side, side, 3), np.uint8)
        crops = np.empty((len(masks), side, side, 3), np.uint8)
        resize_into(image, small)
        crops[:] = PADDING_COLOR
        for crop, mask in zip(crops, masks, strict=True):
            cv2.copyTo(small, cv2.resize(255 * mask, (side, side), interpolation=cv2.INTER_LINEAR) // 128, crop)
        boxes = extents(masks.astype(bool)) / np.tile(masks.shape[:0:-1], 2)
        return softmax(network.classify_crops(crops, boxes.astype(np.float32)))[:, tag].astype(np.float64)


class RowSettings(NamedTuple):
    """How rows are made.

    Attributes:
        options: of the localizer.
        card: of its model.
        tag: index of the class of the option ``tag``; None: the class that the classifier finds.
        refined: name of the segmenter; None: there is none.
    """

    options: Options
    card: Card
    tag: int | None
    refined: str | None


def over_time(
    observations: Iterable[FrameObservation], shots: Shots | None, settings: RowSettings
) -> Iterator[FrameObservation]:
    """Stage 6: choose, track and smooth boxes, or take each frame by itself."""
    options = settings.options
    card = settings.card
    look_ahead = LOOK_AHEAD[options.smooth]
    calibration = Calibration.of(card.presence)
    if look_ahead is None:
        presence = Presence(calibration, 0, settings.tag, 1.0)
        return single(observations, presence, instances=options.instances)
    presence = Presence(calibration, look_ahead.path, settings.tag, SHARE)
    return steady(observations, look_ahead, presence, shots, instances=options.instances)


def make_rows(
    observations: Iterable[FrameObservation], settings: RowSettings
) -> Generator[tuple[VideoFrame, Localization], None, None]:
    """Stage 7: the localizations of each frame; one without a box where all objects are hidden."""
    last = -1
    for observation in observations:
        row = _row(observation, settings)
        if row.box is not None or row.frame != last:
            last = row.frame
            yield observation.frame, row


def _row(observation: FrameObservation, settings: RowSettings) -> Localization:
    frame = observation.frame
    raw = observation.raw_map
    options = settings.options
    height, width = frame.image.shape[:2]
    probabilities = observation.probabilities
    seen = int(probabilities.argmax()) if observation.tag is None else observation.tag
    best = seen if settings.tag is None else settings.tag
    box: Box | None = None
    score = 0.0
    lead = mask = refined = None
    shown = options.presence is None or observation.presence >= options.presence
    if observation.box is not None and shown:
        rows, columns = raw.shape
        limits = (columns - 1, rows - 1) * 2
        # Plain numbers: arrays of four take several times as long.
        inside = [min(max(at, 0.0), limit) for at, limit in zip(observation.box.tolist(), limits, strict=True)]
        x1, y1, x2, y2 = map(round, inside)
        mean = cv2.mean(heat_of(raw[y1 : y2 + 1, x1 : x2 + 1]))[0]
        score = mean if observation.score is None else observation.score
        box = Box(*scale_boxes(np.array(inside), (columns, rows), (width, height)).tolist())
        lead = None if options.instances else margin(observation.candidates, observation.box)
        if observation.choice == NONE:
            pass  # a gap of the track that was filled
        elif observation.masks:
            chosen = observation.masks[observation.choice]
            mask = chosen.in_frame(height, width)
            box = Box(*chosen.box.tolist())
            refined = settings.refined
        elif observation.mask is not None:
            mask = observation.mask
            box = Box(*extents(mask).tolist())
            refined = settings.refined
        elif options.masks:
            mask = _outline_of(observation, height, width)
    return Localization(
        frame=frame.index,
        pts=frame.pts,
        tag=settings.card.tags[best],
        probability=_probability(observation, best, settings.card.presence),
        box=box,
        score=score,
        raw_map=raw,
        track=observation.track if shown else None,
        presence=None if settings.card.presence is None else observation.presence,
        margin=lead,
        mask=mask,
        refined=refined,
        shot_probability=None if observation.tag is None else float(observation.shares[best]),
    )


def _probability(observation: FrameObservation, tag: int, presence: tuple[float, float] | None) -> float:
    """How likely a class is in this frame: as the whole frame says, or its peaks, whichever says less.

    Peaks see only the place that looks most like a class, whole frames also the scene. Where both are sure of the class
    that the shot voted for, it is rarely wrong (lab/notes/classifier.md).
    """
    whole = float(observation.probabilities[tag])
    slope = 0.0 if presence is None else presence[0]
    if slope <= 0:
        return whole
    odds = slope * (observation.peaks.astype(np.float64) - observation.peaks[tag])
    return min(whole, 1 / float(np.exp(np.minimum(odds, MOST_ODDS)).sum()))


def _outline_of(observation: FrameObservation, height: int, width: int) -> npt.NDArray[np.bool_] | None:
    """Outline (height, width) of the chosen candidate in the map that it was found in; None where nothing is left."""
    choice = observation.choice
    candidates = observation.candidates
    threshold = float(candidates.thresholds[choice])
    if observation.look is not None:
        return observation.look.mask(choice, threshold, (height, width))
    if observation.looks and (look := observation.looks[choice]) is not None:
        return look.mask(0, threshold, (height, width))
    return mask_of_box(observation.levels, threshold, candidates.boxes[choice].tolist(), (width, height))


def _images_and_levels(window: Window) -> tuple[list[Image], Levels]:
    images = [observation.frame.image for observation in window]
    return images, np.stack([observation.levels for observation in window])


def _in_map(boxes: Float64Array, observation: FrameObservation) -> Float64Array:
    """Boxes (…, 4) in pixels of the frame, in pixels of its map."""
    size = observation.frame.image.shape[1::-1]
    return scale_boxes(boxes, size, observation.levels.shape[::-1]).astype(np.float64)

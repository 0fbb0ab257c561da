"""Stage 5 of the way from frames to boxes, on demand: the masks of a segmenter, window by window."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from threading import Event
from typing import Protocol, TypeVar

import cv2
import numpy as np

from colocam.boxes.candidates import Candidates
from colocam.boxes.extract import scale_boxes
from colocam.inference.passes import Passes
from colocam.inference.stages import AnyNetwork, softmax
from colocam.maps.postprocess import array_classes_of
from colocam.segment.objects import find_objects
from colocam.segment.refine import PADDING_COLOR, MaskCandidates, choose_masks, extents, mask_candidates
from colocam.segment.segmenter import Segmenter
from colocam.temporal.smoothing import FrameObservation
from colocam.types import Float64Array, Image, Levels, ObjectMask
from colocam.utils.progress import long_work, wait_for
from colocam.video.frame_ring import resize_into

Window = list[FrameObservation]
Found = TypeVar("Found")
TINY = 1e-9


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
    """Give the frames of each window their masks, in order; the segmenter works on the next window meanwhile."""
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
        chosen = choose_masks(found, [one.frame.image for one in window], self._segmenter.side, before)
        for observation, one in zip(window, chosen, strict=True):
            if one is not None and len(observation.candidates.boxes):
                observation.refined = _in_map(one.box, observation)
                observation.mask, before = one.mask, one.box
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
                boxes = _in_map(np.array([one.box for one in objects]), observation)
                scores = np.array([one.score for one in objects])
                observation.candidates = Candidates(boxes, scores, np.zeros(len(boxes)))
                observation.masks = objects

    def _class_of(self, window: Window) -> int:
        logits = np.log(np.maximum([one.probabilities for one in window], TINY)).astype(np.float32)
        return int(array_classes_of(logits, np.zeros(len(window), np.int64), self._tag)[0])

    @staticmethod
    def _shows(network: Passes, tag: int, image: Image, masks: Levels) -> Float64Array:
        """(n,) probability of a class for masks (n, h, w) of an image (H, W, 3), each alone on gray."""
        side = network.shape.size
        small, crops = np.empty((side, side, 3), np.uint8), np.empty((len(masks), side, side, 3), np.uint8)
        resize_into(image, small)
        crops[:] = PADDING_COLOR
        for crop, mask in zip(crops, masks, strict=True):
            cv2.copyTo(small, cv2.resize(255 * mask, (side, side), interpolation=cv2.INTER_LINEAR) // 128, crop)
        boxes = extents(masks.astype(bool)) / np.tile(masks.shape[:0:-1], 2)
        return softmax(network.classify_crops(crops, boxes.astype(np.float32)))[:, tag].astype(np.float64)


def _images_and_levels(window: Window) -> tuple[list[Image], Levels]:
    return [one.frame.image for one in window], np.stack([one.levels for one in window])


def _in_map(boxes: Float64Array, observation: FrameObservation) -> Float64Array:
    """Boxes (…, 4) in pixels of the frame, in pixels of its map."""
    size, own = observation.frame.image.shape[1::-1], observation.levels.shape[::-1]
    return scale_boxes(boxes, size, own).astype(np.float64)

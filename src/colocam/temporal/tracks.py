"""Several objects over time: every blob of a frame is tracked.

    vote ─► set_presence (presence) ─► follow (tracks) ─► smooth_each, which yields one observation per object

Tracks are assigned to the blobs of the next frame that overlap their last boxes, so that the sum of IoUs is maximal.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from colocam.boxes.iou import best_pairs, iou
from colocam.temporal.path import NONE, smooth_box
from colocam.temporal.presence import Presence
from colocam.temporal.smoothing import GAP, REACH, FrameObservation, LookAhead, Shots, class_of_shot, vote
from colocam.types import Float64Array

WIDTH = 2.0
"""Standard deviation of the weights of smoothing, in frames."""
DAMPING = 1.0
"""Damping of the slope without look-ahead, in frames²; see :func:`smooth_box`."""
FLICKER = 1 / 4
"""Least share of the neighbouring frames of the shot that contain a track; the largest blob of a frame is exempt."""


@dataclass(slots=True)
class Followed:
    """A frame with the blobs of its tracks: track → index among the observation's candidates."""

    time: int
    observation: FrameObservation
    blobs: dict[int, int]


def each(observations: Iterable[FrameObservation], presence: Presence) -> Iterator[FrameObservation]:
    """Yield one observation per blob, each frame by itself, without tracks."""
    for observation in observations:
        (observation.presence,) = presence.push(observation.peaks, cut=True)
        boxes = observation.candidates.boxes
        yield from (replace(observation, choice=index, box=box) for index, box in enumerate(boxes))
        if not len(boxes):
            yield observation


def steady_instances(
    observations: Iterable[FrameObservation], ahead: LookAhead, presence: Presence, shots: Shots | None = None
) -> Iterator[FrameObservation]:
    """Track and smooth all objects; with ``ONLINE`` a frame is yielded before the next one is read.

    ``shots`` is filled as the cuts are passed.
    """
    voted = vote(observations, presence.calibration)
    return smooth_each(follow(set_presence(voted, presence), shots), ahead.smooth)


def set_presence(observations: Iterable[FrameObservation], presence: Presence) -> Iterator[FrameObservation]:
    """Set ``presence`` and ``tag``; both are known ``presence.lag`` frames later."""
    waiting: deque[FrameObservation] = deque()

    def decided(values: list[float]) -> Iterator[FrameObservation]:
        for value in values:
            observation = waiting.popleft()
            observation.presence, observation.tag = value, class_of_shot(observation, waiting)
            yield observation

    for observation in observations:
        waiting.append(observation)
        yield from decided(presence.push(observation.peaks, cut=observation.cut))
    yield from decided(presence.finish())


def follow(observations: Iterable[FrameObservation], shots: Shots | None = None) -> Iterator[Followed]:
    """Assign blobs to tracks; a track ends at a cut and after ``GAP`` frames without a blob."""
    begun = 0
    last: dict[int, tuple[int, Float64Array]] = {}  # track → time and box of its last blob
    for time, observation in enumerate(observations):
        if observation.cut and shots is not None:
            shots[observation.frame.index] = begun
        boxes = observation.candidates.boxes
        last = {} if observation.cut else {track: seen for track, seen in last.items() if time - seen[0] <= GAP + 1}
        tracks = list(last)
        known = np.array([last[track][1] for track in tracks]).reshape(-1, 4)
        overlaps = iou(known[:, None], boxes[None])
        pairs = zip(*best_pairs(overlaps), strict=True)
        blobs = {tracks[row]: index for row, index in pairs if overlaps[row, index] > 0}
        for index in sorted(set(range(len(boxes))) - set(blobs.values())):
            blobs[begun] = index
            begun += 1
        last |= {track: (time, boxes[index]) for track, index in blobs.items()}
        yield Followed(time, observation, blobs)


def smooth_each(frames: Iterable[Followed], ahead: int) -> Iterator[FrameObservation]:
    """Yield an observation per object with ``choice``, ``track`` and ``box``, smoothed along its track.

    As with one object, short gaps are filled: with look-ahead if the track continues, without it by the last box.
    A track in few of the neighbouring frames is a flicker: with look-ahead it is dropped, without it is not held.
    """
    past: deque[Followed] = deque(maxlen=REACH)
    held: dict[int, Float64Array] = {}  # boxes yielded last, by track
    waiting: deque[Followed] = deque()
    damping = 0.0 if ahead else DAMPING

    def decide() -> Iterator[FrameObservation]:
        frame = waiting[0]
        if frame.observation.cut:
            past.clear()
            held.clear()
        shot = [*past, *_same_shot(waiting)]
        given = {}
        for track in sorted({track for one in shot for track in one.blobs}):
            seen = [one for one in shot if track in one.blobs]
            index = frame.blobs.get(track, NONE)
            shown = index == 0 or len(seen) >= FLICKER * len(shot)
            within = seen[0].time <= frame.time <= seen[-1].time
            if within and (shown or not ahead):
                given[track] = _smoothed(seen, track, frame.time, damping)
            elif not ahead and shown and track in held and frame.time - seen[-1].time <= GAP:
                given[track] = held[track]
        held.clear()
        held.update(given)
        past.append(waiting.popleft())
        observation = frame.observation
        for track, box in given.items():
            yield replace(observation, choice=frame.blobs.get(track, NONE), track=track, box=box)
        if not given:
            yield observation

    for frame in frames:
        waiting.append(frame)
        if len(waiting) > ahead:
            yield from decide()
    while waiting:
        yield from decide()


def _same_shot(waiting: Iterable[Followed]) -> Iterator[Followed]:
    """The first frame and those after it, up to a cut."""
    frames = iter(waiting)
    first = next(frames)
    yield first
    for frame in frames:
        if frame.observation.cut:
            return
        yield frame


def _smoothed(seen: list[Followed], track: int, at: int, damping: float) -> Float64Array:
    times = np.array([one.time for one in seen], np.float64)
    boxes = np.stack([one.observation.candidates.boxes[one.blobs[track]] for one in seen])
    return smooth_box(times, boxes, at, WIDTH, damping)

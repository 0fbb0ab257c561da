"""Several objects over time: each blob of a frame is followed for itself.

    mark_cuts ─► be_present (presence) ─► follow (tracks) ─► smooth_each, which hands on one sight per object

A track takes the blob of the next frame that overlaps its last box, so that the sum of IoUs is largest over all tracks.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt

from colocam.boxes.assignment import assign
from colocam.temporal.path import NONE, iou, smooth_box
from colocam.temporal.presence import Presence
from colocam.temporal.smoothing import GAP, REACH, LookAhead, Sight, class_of_shot, mark_cuts, vote

Floats = npt.NDArray[np.float64]

WIDTH = 2.0
"""Standard deviation of the weights that a box is smoothed with, in frames."""
DAMPING = 1.0
"""Of the slope where no later frame is known, in frames²; see :func:`smooth_box`."""
FLICKER = 1 / 4
"""Share of the frames around, within reach and shot, that must show a track; the largest blob of a frame needs none."""


@dataclass(slots=True)
class Followed:
    """A frame with the blobs of its tracks: track → place among the sight's candidates."""

    time: int
    sight: Sight
    blobs: dict[int, int]


def each(sights: Iterable[Sight], presence: Presence) -> Iterator[Sight]:
    """Hand on one sight per blob, each frame by itself; there are no tracks."""
    for sight in sights:
        (sight.presence,) = presence.push(sight.peaks, cut=True)
        boxes = sight.candidates.boxes
        yield from (replace(sight, choice=place, box=box) for place, box in enumerate(boxes))
        if not len(boxes):
            yield sight


def steady_instances(sights: Iterable[Sight], ahead: LookAhead, presence: Presence) -> Iterator[Sight]:
    """Follow and smooth all objects; with ``ONLINE`` a frame is handed on before the next is taken."""
    voted = vote(mark_cuts(sights, ahead.cuts), presence.calibration)
    return smooth_each(follow(be_present(voted, presence)), ahead.smooth)


def be_present(sights: Iterable[Sight], presence: Presence) -> Iterator[Sight]:
    """Set ``presence`` and ``tag``, which are known ``presence.lag`` frames later."""
    waiting: deque[Sight] = deque()

    def decided(values: list[float]) -> Iterator[Sight]:
        for value in values:
            sight = waiting.popleft()
            sight.presence, sight.tag = value, class_of_shot(sight, waiting)
            yield sight

    for sight in sights:
        waiting.append(sight)
        yield from decided(presence.push(sight.peaks, cut=sight.cut))
    yield from decided(presence.finish())


def follow(sights: Iterable[Sight]) -> Iterator[Followed]:
    """Number the blobs; a track ends at a cut and after :data:`colocam.temporal.smoothing.GAP` frames out of sight."""
    numbers = count()
    last: dict[int, tuple[int, Floats]] = {}  # track → when and where it was seen last
    for time, sight in enumerate(sights):
        boxes = sight.candidates.boxes
        last = {} if sight.cut else {track: seen for track, seen in last.items() if time - seen[0] <= GAP + 1}
        tracks = list(last)
        known = np.array([last[track][1] for track in tracks]).reshape(-1, 4)
        blobs = {tracks[row]: place for row, place in assign(iou(known[:, None], boxes[None]))}
        for place in sorted(set(range(len(boxes))) - set(blobs.values())):
            blobs[next(numbers)] = place
        last |= {track: (time, boxes[place]) for track, place in blobs.items()}
        yield Followed(time, sight, blobs)


def smooth_each(frames: Iterable[Followed], ahead: int) -> Iterator[Sight]:
    """Hand on a sight per object with ``choice``, ``track`` and ``box``, smoothed along its track; one without any.

    As with one object, short gaps are filled: with look-ahead where the track goes on, without it by the last box.
    A track that hardly any frame around shows is a flicker: with look-ahead it is left out, without it is not held.
    """
    past: deque[Followed] = deque(maxlen=REACH)
    held: dict[int, Floats] = {}  # boxes given last, by track
    waiting: deque[Followed] = deque()
    damping = 0.0 if ahead else DAMPING

    def decide() -> Iterator[Sight]:
        frame = waiting[0]
        if frame.sight.cut:
            past.clear()
            held.clear()
        shot = [*past, *_same_shot(waiting)]
        given = {}
        for track in sorted({track for one in shot for track in one.blobs}):
            seen = [one for one in shot if track in one.blobs]
            place = frame.blobs.get(track, NONE)
            shown = place == 0 or len(seen) >= FLICKER * len(shot)
            within = seen[0].time <= frame.time <= seen[-1].time
            if within and (shown or not ahead):
                given[track] = _smoothed(seen, track, frame.time, damping)
            elif not ahead and shown and track in held and frame.time - seen[-1].time <= GAP:
                given[track] = held[track]
        held.clear()
        held.update(given)
        past.append(waiting.popleft())
        sight = frame.sight
        for track, box in given.items():
            yield replace(sight, choice=frame.blobs.get(track, NONE), track=track, box=box)
        if not given:
            yield sight

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
        if frame.sight.cut:
            return
        yield frame


def _smoothed(seen: list[Followed], track: int, at: int, damping: float) -> Floats:
    times = np.array([one.time for one in seen], np.float64)
    boxes = np.stack([one.sight.candidates.boxes[one.blobs[track]] for one in seen])
    return smooth_box(times, boxes, at, WIDTH, damping)

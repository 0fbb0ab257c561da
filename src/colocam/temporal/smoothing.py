"""Steady boxes over time, of one object or of several: a chain of stages over the observations of the frames.

Each stage is a generator over frames in order; one that looks ahead yields a frame some frames later.

    one object:      vote (classes) ─► decide (best path through the candidates; presence; class) ─► number ─► smooth
    several objects: vote (classes) ─► decide (presence; class) ─► follow (tracks) ─► smooth

Several objects: every blob of a frame is tracked, and the last stage yields one observation per object.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.candidates import Candidates, eligible, explained
from colocam.boxes.iou import best_pairs, iou
from colocam.temporal.look import Look
from colocam.temporal.path import NONE, BestPath, smooth_box
from colocam.temporal.presence import ABSENT, Calibration, Presence
from colocam.types import Float32Array, Float64Array, Levels, ObjectMask, VideoFrame

MEMORY = 50
"""Frames after which a vote for a class counts 1/e: in a long shot one object may leave and another appear."""
GAP = 5
"""Frames for which the object of a track may be hidden; after a longer gap a new track begins."""
REACH = 6
"""Frames on each side over which a box is smoothed."""
WIDTH = 2.5
"""Standard deviation of the weights of these frames, in frames."""
SHARPNESS, SHARPNESS_ONLINE = 5.0, 1.25
"""A neighbor's box is weighted by its score in the frame's own map, to this power.

If frames are close in time, all their boxes explain the map about equally well. Once the object has moved, only boxes
that still fit do. So the time between frames need not be known.
"""
TRACKS_WIDTH, TRACKS_DAMPING = 2.0, 1.0
""":data:`WIDTH` for several objects; damping of the slope without look-ahead, in frames²: see :func:`smooth_box`."""
TRACKS_SHARPNESS = 2.0
"""With several objects, the weight is the box's IoU with the frame's own box, to this power: all are in the map."""
FLICKER = 1 / 4
"""A track must be in at least this share of the neighboring frames of its shot; a frame's best box is exempt."""
FAINT_REGION, FAINT_MASK = 0.4, 0.1
"""Least score of a track, relative to the best one around it; masks that barely stand out were dropped before."""
Shots = dict[int, int]
"""Frame index of each cut → number of the tracks that began before it."""


class LookAhead(NamedTuple):
    """Frames that each stage looks ahead."""

    cuts: int
    path: int
    smooth: int


OFFLINE = LookAhead(cuts=2, path=16, smooth=REACH)
ONLINE = LookAhead(0, 0, 0)
LOOK_AHEAD: dict[str, LookAhead | None] = {"offline": OFFLINE, "online": ONLINE, "none": None}
"""By the option ``smooth``."""


@dataclass(slots=True)
class FrameObservation:
    """What the network found in a frame, and the results of the stages.

    Attributes:
        frame: the frame.
        probabilities: (K,) probabilities of the classes.
        raw_map: (h, w) foreground probability as the network gave it: float32, or 8-bit levels.
        levels: (h, w) the same in 8 bits.
        candidates: candidate boxes in map pixels.
        peaks: (K,) maxima of the classes' activation maps.
        cut: whether a new shot begins here.
        foreground: how sure the decoder is of a foreground, 0–1 (:mod:`colocam.maps.foreground`).
        votes: (K,) votes for the classes in the shot so far.
        tag: index of the class of the shot, as far as it is known; None without smoothing.
        shares: (K,) share of each class in the votes that decided it.
        choice: index of the chosen candidate, ``NONE`` for none.
        track: index of the object, from 0.
        box: (4,) in map pixels, None without the object.
        score: of that box if there are several objects; None if there is one.
        presence: probability that the tagged object is in the frame.
        refined: (4,) box of the mask that a segmenter gave, in map pixels; it is then the only box to choose.
        mask: (H, W) that mask, in pixels of the frame.
        masks: of several objects, one for each candidate; empty where the candidates are blobs of the map.
        look: the second look that the candidates come from; None: they come from the map of the frame.
        looks: of several objects, the look that found each candidate, with its box alone; None: the map of the frame.
        seen: (h, w) what a prior sees in the frame, in 8 bits; None: nothing, or not what the model sees.
    """

    frame: VideoFrame
    probabilities: npt.NDArray[np.float32]
    raw_map: Float32Array | Levels = field(repr=False)
    levels: npt.NDArray[np.uint8] = field(repr=False)
    candidates: Candidates
    peaks: npt.NDArray[np.float32]
    cut: bool = False
    foreground: float = 1.0
    votes: Float64Array = field(default_factory=lambda: np.zeros(0), repr=False)
    tag: int | None = None
    shares: Float64Array = field(default_factory=lambda: np.zeros(0), repr=False)
    choice: int = NONE
    track: int | None = None
    box: Float64Array | None = None
    score: float | None = None
    presence: float = 1.0
    refined: Float64Array | None = None
    mask: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    masks: Sequence[ObjectMask] = field(default=(), repr=False)
    look: Look | None = field(default=None, repr=False)
    looks: Sequence[Look | None] = field(default=(), repr=False)
    seen: Levels | None = field(default=None, repr=False)

    @property
    def choices(self) -> Candidates:
        """The boxes that the path may choose from: the refined one, or those found at the model's own threshold."""
        if self.refined is None:
            return eligible(self.candidates)
        scores = explained(self.levels, float(self.candidates.thresholds[0]), self.refined[None])
        return Candidates(self.refined[None], scores, self.candidates.thresholds[:1])


def single(
    observations: Iterable[FrameObservation], presence: Presence, *, instances: bool = False
) -> Iterator[FrameObservation]:
    """Each frame by itself, without tracks: with its published box or, with ``instances``, once for each blob."""
    for observation in observations:
        (observation.presence,) = presence.push(observation.peaks, observation.foreground, observation.look, cut=True)
        boxes, scores, *_ = observation.candidates
        for index, box in enumerate(boxes if instances else boxes[:1]):
            yield replace(observation, choice=index, box=box, score=float(scores[index]) if instances else None)
        if not len(boxes):
            yield observation


def steady(
    observations: Iterable[FrameObservation],
    ahead: LookAhead,
    presence: Presence,
    shots: Shots | None = None,
    *,
    instances: bool = False,
) -> Iterator[FrameObservation]:
    """Choose, track and smooth boxes; with :data:`ONLINE` a frame is yielded before the next one is read.

    With ``instances``, every object has its own observation. ``shots`` is filled as the cuts are passed.
    """
    voted = vote(observations, presence.calibration)
    if instances:
        return smooth(follow(decide(voted, presence), shots), ahead.smooth, instances=True)
    return smooth(number(decide(voted, presence, BestPath(ahead.path)), shots), ahead.smooth)


def vote(observations: Iterable[FrameObservation], calibration: Calibration) -> Iterator[FrameObservation]:
    """Set ``votes``: each frame adds the probability of each class, weighted by the evidence for an object.

    votes_k(t) = (1 − 1/M) · votes_k(t−1) + p_k(t) · σ(evidence_k(t)), M = :data:`MEMORY`. The class of a single frame
    is unstable, most of all in frames without the object.
    """
    votes: Float64Array = np.zeros(1)  # becomes (K,) with the first frame
    for observation in observations:
        vote_of_frame = observation.probabilities / (1 + np.exp(-calibration.evidence(observation.peaks)))
        votes = (0 if observation.cut else 1 - 1 / MEMORY) * votes + vote_of_frame
        observation.votes = votes
        yield observation


def votes_of_shot(observation: FrameObservation, coming: Iterable[FrameObservation]) -> Float64Array:
    """(K,) votes for the classes in the shot, up to the last frame of ``coming`` that belongs to it."""
    *_, last = (observation, *takewhile(lambda following: not following.cut, coming))
    return last.votes


def decide(
    observations: Iterable[FrameObservation], presence: Presence, path: BestPath | None = None
) -> Iterator[FrameObservation]:
    """Set ``presence``, ``tag``, ``shares`` and, by the best path, ``choice``; yield a frame once all are known."""
    waiting: deque[FrameObservation] = deque()

    def decided(values: list[float], choices: list[int] | None) -> Iterator[FrameObservation]:
        for value, choice in zip(values, [NONE] * len(values) if choices is None else choices, strict=True):
            observation = waiting.popleft()
            observation.presence, observation.choice = value, choice
            votes = votes_of_shot(observation, waiting)
            observation.tag, observation.shares = int(votes.argmax()), votes / max(float(votes.sum()), 1e-12)
            yield observation

    for observation in observations:
        waiting.append(observation)
        choices = path.push(observation.choices, cut=observation.cut) if path else None
        signs = (observation.peaks, observation.foreground, observation.look)
        yield from decided(presence.push(*signs, cut=observation.cut), choices)
    yield from decided(presence.finish(), path.finish() if path else None)


class Followed(NamedTuple):
    """A frame with the boxes of its tracks: track → index among the observation's candidates, and corners."""

    time: int
    observation: FrameObservation
    tracks: dict[int, tuple[int, list[float]]]


def number(observations: Iterable[FrameObservation], shots: Shots | None = None) -> Iterator[Followed]:
    """Number the tracks of the chosen boxes.

    A track ends at a cut, after :data:`GAP` frames without the object, and where two consecutive boxes do not overlap.
    """
    track = -1
    last: Float64Array | None = None
    seen = 0
    for time, observation in enumerate(observations):
        if observation.cut:
            last = None
            if shots is not None:
                shots[observation.frame.index] = track + 1
        tracks = {}
        if observation.choice != NONE:
            refined = observation.refined
            box = observation.candidates.boxes[observation.choice] if refined is None else refined
            if last is None or time - seen > GAP + 1 or iou(last, box) == 0:
                track += 1
            tracks = {track: (observation.choice, box.tolist())}
            last = box
            seen = time
        yield Followed(time, observation, tracks)


class _Seen(NamedTuple):
    """Where a track was seen last, and how often.

    Attributes:
        time: of the frame.
        box: (4,) there.
        speed: (2,) in map pixels per frame.
        frames: number of frames with the track.
    """

    time: int
    box: Float64Array
    speed: Float64Array | None = None
    frames: int = 1

    def box_at(self, time: int) -> Float64Array:
        """The box (4,) at a time, if it keeps moving as before."""
        return self.box if self.speed is None else self.box + np.tile(self.speed * (time - self.time), 2)

    def next(self, time: int, box: Float64Array) -> "_Seen":
        """Seen again; the speed is the mean of the new one and that before."""
        moved = (box - self.box).reshape(2, 2).mean(0) / (time - self.time)
        return _Seen(time, box, moved if self.speed is None else (moved + self.speed) / 2, self.frames + 1)


def follow(observations: Iterable[FrameObservation], shots: Shots | None = None) -> Iterator[Followed]:
    """Assign boxes to the tracks whose expected boxes they overlap, so that the sum of IoU · n / (n + 1) is largest.

    n is the number of frames in which a track was seen; it is expected to keep moving as before. So if an object falls
    apart for a frame, it continues in its own track, not in that of a piece. A track ends at a cut and after
    :data:`GAP` frames without a box.
    """
    begun = 0
    last: dict[int, _Seen] = {}
    for time, observation in enumerate(observations):
        if observation.cut and shots is not None:
            shots[observation.frame.index] = begun
        boxes = observation.candidates.boxes
        last = {} if observation.cut else {track: seen for track, seen in last.items() if time - seen.time <= GAP + 1}
        tracks = list(last)
        expected = np.array([seen.box_at(time) for seen in last.values()]).reshape(-1, 4)
        counts = np.array([seen.frames for seen in last.values()])
        fits = iou(expected[:, None], boxes[None]) * (counts / (counts + 1))[:, None]
        chosen = {tracks[row]: index for row, index in zip(*best_pairs(fits), strict=True) if fits[row, index] > 0}
        last |= {track: last[track].next(time, boxes[index]) for track, index in chosen.items()}
        for index in sorted(set(range(len(boxes))) - set(chosen.values())):
            chosen[begun] = index
            last[begun] = _Seen(time, boxes[index])
            begun += 1
        corners = boxes.tolist()
        yield Followed(time, observation, {track: (index, corners[index]) for track, index in chosen.items()})


def smooth(frames: Iterable[Followed], ahead: int, *, instances: bool = False) -> Iterator[FrameObservation]:
    """Yield an observation per object with ``choice``, ``track`` and ``box``, smoothed along its track.

    Short gaps in a track are filled: with look-ahead, if the track continues after the gap; without, the last box is
    held for at most :data:`GAP` frames.

    One object: the boxes of neighboring frames are weighted by time and by how well they explain the frame's own map.
    Without look-ahead a line would extrapolate noise, so their weighted mean is taken.

    Several objects: the boxes of neighboring frames are weighted by time and by their IoU with the frame's own box,
    scores by time alone. A track in few of the neighboring frames is a flicker: with look-ahead it is dropped, without
    it is not held. A faint track (:func:`_faint`) is not shown.
    """
    past: deque[Followed] = deque(maxlen=REACH)
    held: dict[int, tuple[Float64Array, float | None]] = {}  # boxes and scores yielded last, by track
    waiting: deque[Followed] = deque()
    width, online = (TRACKS_WIDTH, TRACKS_DAMPING) if instances else (WIDTH, inf)
    damping, fit = (0.0, SHARPNESS) if ahead else (online, SHARPNESS_ONLINE)
    sharpness = None if instances else fit

    def decide() -> Iterator[FrameObservation]:
        nonlocal held
        time, observation, tracks = waiting[0]
        if observation.cut:
            past.clear()
            held = {}
        shot = [*past, waiting[0], *takewhile(lambda frame: not frame.observation.cut, islice(waiting, 1, None))]
        smoothed = {}
        best = max(frame.observation.candidates.scores.max(initial=0.0) for frame in shot) if instances else inf
        for track in sorted({track for frame in shot for track in frame.tracks}):
            seen = [frame for frame in shot if track in frame.tracks]
            index = tracks[track][0] if track in tracks else NONE
            if instances and _faint(track, index, seen, best, observation):
                continue
            shown = not instances or index == 0 or len(seen) >= FLICKER * len(shot)
            if seen[0].time <= time <= seen[-1].time and (shown or not ahead):
                times = np.array([frame.time for frame in seen], np.float64)
                boxes = np.array([frame.tracks[track][1] for frame in seen])
                counts = None if index == NONE else _counts(observation, tracks[track][1], boxes, sharpness)
                box = smooth_box(times, boxes, time, width, damping, counts)
                smoothed[track] = index, box, _mean_score(seen, track, time) if instances else None
            elif not ahead and shown and (instances or not tracks) and track in held and time - seen[-1].time <= GAP:
                smoothed[track] = index, *held[track]
        held = {track: (box, score) for track, (_, box, score) in smoothed.items()}
        past.append(waiting.popleft())
        for track, (index, box, score) in smoothed.items():
            yield replace(observation, choice=index, track=track, box=box, score=score)
        if not smoothed:
            yield observation

    for frame in frames:
        waiting.append(frame)
        if len(waiting) > ahead:
            yield from decide()
    while waiting:
        yield from decide()


def _faint(track: int, index: int, seen: Sequence[Followed], best: float, observation: FrameObservation) -> bool:
    """Whether a track is no object: its mean score · √presence is far below the best score in the frames around.

    Frames without an object have boxes too, but their presence is low. The best box of a frame that seems to have an
    object is exempt.

    Args:
        track: its number.
        index: of its box among the candidates of the frame that is decided.
        seen: frames around with the track, at least one.
        best: highest score of the frames around.
        observation: the frame that is decided.
    """
    if index == 0 and observation.presence >= ABSENT:
        return False
    scores = [
        frame.observation.candidates.scores[frame.tracks[track][0]] * frame.observation.presence**0.5 for frame in seen
    ]
    return bool(np.mean(scores) < (FAINT_MASK if observation.masks else FAINT_REGION) * best)


def _mean_score(seen: Sequence[Followed], track: int, time: int) -> float:
    """Mean of a track's scores in the frames where it is seen, with weights that fall with the time from ``time``."""
    apart = np.array([frame.time - time for frame in seen])
    scores = np.array([frame.observation.candidates.scores[frame.tracks[track][0]] for frame in seen])
    return float(np.average(scores, weights=np.exp(-0.5 * (apart / TRACKS_WIDTH) ** 2)))


def _counts(
    observation: FrameObservation, box: list[float], boxes: Float64Array, sharpness: float | None
) -> Float64Array | None:
    """(n,) weights of boxes (n, 4) in a frame; None if all of them are 0.

    They are the boxes' scores in the frame's map to the power ``sharpness``. If that is None, for several objects, they
    follow from the IoU with the frame's own ``box``.
    """
    if sharpness is None:
        counts = iou(np.array(box), boxes) ** TRACKS_SHARPNESS
    else:
        counts = explained(observation.levels, float(observation.candidates.thresholds[0]), boxes) ** sharpness
    return counts if counts.any() else None

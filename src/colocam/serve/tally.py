"""What people said about a video in numbers: for the library, for exports, and for the count of corrections."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from colocam.labels.review import class_in_doubt
from colocam.serve.exchange import corrected_rows, key_frames, known_states, rows_at
from colocam.serve.marks import ACCEPTED, ASKED, CHECKED, INTERPOLATED, PREDICTED, Marks, objects_of
from colocam.serve.store import EventStore
from colocam.serve.video_data import DOUBTFUL, Video, VideoResults


class FrameCounts(NamedTuple):
    """Frames by what is known of them; each frame counts once, as its least sure object.

    Attributes:
        checked: a person has seen and corrected or accepted them.
        interpolated: they lie between such frames and follow them.
        asked: they do so, too, but the model believes that the object is away: the page asks.
        unchecked: they show what the model found.
    """

    checked: int = 0
    interpolated: int = 0
    asked: int = 0
    unchecked: int = 0


class Tally(NamedTuple):
    """Numbers of one video.

    Attributes:
        shown_class: that of most frames.
        box: x1, y1, x2, y2 in the frame of the thumbnail, NaN where there is none.
        doubtful: share of the frames that are doubtful and that nobody has checked.
        to_check: entries of the page's queue: frames that nobody has checked, and one for each stretch that is asked
            about.
        frames: by what is known of them.
        corrections: key corrections, those that a lesson learns from.
        class_in_doubt: whether the model doubts the class that it found, and nobody has accepted or changed it.
    """

    shown_class: str
    box: list[float]
    doubtful: float
    to_check: int
    frames: FrameCounts
    corrections: int
    class_in_doubt: bool = False


def tally(results: VideoResults, objects: Mapping[int, Marks]) -> Tally:
    """Count what was said of the objects of a video, beside what a model found in it."""
    state = known_states(results, objects)
    checked, asked = np.isin(state, CHECKED), state == ASKED
    interpolated, shown = np.isin(state, INTERPOLATED), int(results.index.thumbnail[0])
    shown_class = Counter(corrected_rows(results, objects).tag).most_common(1)[0][0]
    model_class = Counter(results.rows.tag).most_common(1)[0][0]
    said = shown_class != model_class or bool(checked.all() or np.any(state == ACCEPTED))  # a drawn box names no class
    unsure = not said and class_in_doubt(results.rows.probability)
    counts = FrameCounts(int(checked.sum()), int(interpolated.sum()), int(asked.sum()), int((state == PREDICTED).sum()))
    return Tally(
        shown_class=shown_class,
        box=corrected_rows(*rows_at(results, objects, slice(shown, shown + 1))).box[0].tolist(),
        doubtful=float(((results.doubt >= DOUBTFUL) & ~checked).mean()),
        to_check=frames_to_check(results, state),
        frames=counts,
        corrections=sum(int(key_frames(marks).sum()) for marks in objects.values()),
        class_in_doubt=unsure,
    )


def frames_to_check(results: VideoResults, state: npt.NDArray[np.uint8]) -> int:
    """Entries of the page's queue, see ``toCheck`` of ``places.js``; ``state`` (N,) is what is known of each frame."""
    asked = state == ASKED
    queued = np.searchsorted(results.index.frames, [frame for frame, _ in results.queue]).astype(int)
    states = state[queued]
    unchecked = (states == PREDICTED) | (np.isin(states, INTERPOLATED) & (results.doubt[queued] >= DOUBTFUL))
    return int(unchecked.sum() + (asked & ~np.concatenate([[False], asked[:-1]])).sum())


class Tallies:
    """The tallies of all videos: a history is replayed once after each correction; may be called from any thread."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._known: WeakKeyDictionary[VideoResults, tuple[int, Tally]] = WeakKeyDictionary()

    def of(self, video: Video) -> Tally | None:
        """What people said about a video in numbers; None: no model has seen it."""
        # A model that was just chosen may not have seen a video yet.
        results = video.results or next(iter(video.results_by_key.values()), None)
        if results is None:
            return None
        version, known = self._store.version(video.id), self._known.get(results)
        if known is None or known[0] != version:
            version, history = self._store.history(video.id)
            objects = objects_of(history.actions, results.index.frames, results.index.cuts, results.absent)
            known = self._known[results] = version, tally(results, objects)
        return known[1]


def summed(counts: Iterable[FrameCounts]) -> FrameCounts:
    """The counts of several videos together."""
    return FrameCounts(*map(sum, zip(FrameCounts(), *counts, strict=True)))

"""Group the rows of a table into tracks, and find the stretches of time over which an object is seen."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Track:
    """One object over time.

    Attributes:
        id: from 1 within its video.
        tag: its class, the most frequent one where rows differ.
        rows: (k,) indices of its rows, by frame.
        stretches: indices of the rows of each stretch without a gap.
    """

    id: int
    tag: str
    rows: Integers = field(repr=False)
    stretches: list[Integers] = field(repr=False)


def follow(
    rows: Integers, frames: Integers, tags: list[str], stated: Integers, listed: Integers, video: str
) -> list[Track]:
    """Group rows with boxes into tracks.

    Rows that state a track belong to it. The other rows of one class are one object, unless a frame holds two of them;
    each box is then an object of its own.

    Args:
        rows: (m,) indices of the rows that have a box, by frame.
        frames: (m,) their frames.
        tags: (m,) their classes.
        stated: (m,) their track, −1 for none.
        listed: frames that the table lists, sorted.
        video: name of the video for errors.
    """
    ids = _track_ids(frames, tags, stated)
    order = np.argsort(ids, kind="stable")
    same = np.diff(ids[order]) == 0
    if (twice := np.flatnonzero(same & (np.diff(frames[order]) == 0))).size:
        first = order[twice[0]]
        raise ColocamError(
            f"{video}: frame {frames[first]} has two boxes of track {stated[first]}: give one of them another track"
        )
    step = float(np.median(np.diff(listed))) if len(listed) > 1 else 1.0
    tracks = []
    for id_, indices in enumerate(np.split(order, np.flatnonzero(~same) + 1), start=1):
        own = rows[indices]
        if len(own) == 1:
            tracks.append(Track(id_, tags[indices[0]], own, [own]))
            continue
        tag = Counter(tags[index] for index in indices.tolist()).most_common(1)[0][0]
        tracks.append(Track(id_, tag, own, stretches(own, frames[indices], listed, step)))
    return tracks


def stretches(rows: Integers, seen: Integers, listed: Integers, step: float) -> list[Integers]:
    """Split the rows of a track where the object is not seen.

    It is not seen in a listed frame that has no row of it. Frames that are not listed (between every fifth one, for
    example) do not split, unless the gap exceeds twice the usual ``step``: rows were then removed from the table.
    """
    position = np.searchsorted(listed, seen)
    cuts = np.flatnonzero((np.diff(position) > 1) | (np.diff(seen) > 2 * step)) + 1
    return np.split(rows, cuts)


def _track_ids(frames: Integers, tags: list[str], stated: Integers) -> Integers:
    """(m,) ids of the tracks from 1, in the order in which tracks appear."""
    crowded = _crowded(frames, tags, stated)
    classes = {tag: index for index, tag in enumerate(dict.fromkeys(tags))}
    count = stated.max(initial=-1) + 1
    own = count + len(classes)
    plain = [own + index if tag in crowded else count + classes[tag] for index, tag in enumerate(tags)]
    keys = np.where(stated >= 0, stated, np.array(plain, np.int64))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(1, len(first) + 1)
    ids: Integers = ranks[inverse]
    return ids


def _crowded(frames: Integers, tags: list[str], stated: Integers) -> set[str]:
    """Classes of which some frame has two boxes without a track."""
    counts = Counter(
        (frame, tag) for frame, tag, track in zip(frames.tolist(), tags, stated.tolist(), strict=True) if track < 0
    )
    return {tag for (_, tag), count in counts.items() if count > 1}

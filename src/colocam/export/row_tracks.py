"""Group the rows of a table into tracks, and find the stretches of time over which an object is seen."""

from collections import Counter, defaultdict
from collections.abc import Hashable
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
    crowded = _crowded(frames, tags, stated)
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for index, (tag, track) in enumerate(zip(tags, stated.tolist(), strict=True)):
        groups[(0, track) if track >= 0 else (1, tag) if tag not in crowded else (2, index)].append(index)
    tracks = []
    for id_, indices in enumerate(groups.values(), start=1):
        seen = frames[indices]
        if twice := seen[1:][seen[1:] == seen[:-1]].tolist():
            raise ColocamError(
                f"{video}: frame {twice[0]} has two boxes of track {stated[indices[0]]}: give one of them another track"
            )
        tag = Counter(tags[index] for index in indices).most_common(1)[0][0]
        tracks.append(Track(id_, tag, rows[indices], stretches(rows[indices], seen, listed)))
    return tracks


def stretches(rows: Integers, seen: Integers, listed: Integers) -> list[Integers]:
    """Split the rows of a track where the object is not seen.

    It is not seen in a listed frame that has no row of it. Frames that are not listed (between every fifth one, for
    example) do not split, unless the gap exceeds twice the usual step: rows were then removed from the table.
    """
    step = float(np.median(np.diff(listed))) if len(listed) > 1 else 1.0
    position = np.searchsorted(listed, seen)
    cuts = np.flatnonzero((np.diff(position) > 1) | (np.diff(seen) > 2 * step)) + 1
    return np.split(rows, cuts)


def _crowded(frames: Integers, tags: list[str], stated: Integers) -> set[str]:
    """Classes of which some frame has two boxes without a track."""
    counts = Counter(
        (frame, tag) for frame, tag, track in zip(frames.tolist(), tags, stated.tolist(), strict=True) if track < 0
    )
    return {tag for (_, tag), count in counts.items() if count > 1}

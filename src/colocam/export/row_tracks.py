"""Which rows are the same object, and the stretches of time over which it is seen."""

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
        number: from 1 within its video.
        tag: its class; where rows differ, the most frequent.
        rows: (k,) rows of the table, by frame.
        stretches: rows of each unbroken stretch in which it is seen.
    """

    number: int
    tag: str
    rows: Integers = field(repr=False)
    stretches: list[Integers] = field(repr=False)


def follow(
    rows: Integers, frames: Integers, tags: list[str], stated: Integers, listed: Integers, video: str
) -> list[Track]:
    """Group rows with boxes into tracks.

    Rows that state a track belong to it. The others of one class are one object, unless a frame holds two of them:
    then nothing says which is which, and each box is an object of its own.

    Args:
        rows: (m,) rows that have a box, by frame.
        frames: (m,) their frames.
        tags: (m,) their classes.
        stated: (m,) their track, −1 for none.
        listed: frames that the table speaks of, sorted.
        video: name for errors.
    """
    crowded = _crowded(frames, tags, stated)
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for place, (tag, track) in enumerate(zip(tags, stated.tolist(), strict=True)):
        groups[(0, track) if track >= 0 else (1, tag) if tag not in crowded else (2, place)].append(place)
    tracks = []
    for number, places in enumerate(groups.values(), start=1):
        seen = frames[places]
        if twice := seen[1:][seen[1:] == seen[:-1]].tolist():
            raise ColocamError(f"{video}: frame {twice[0]} has two boxes of track {stated[places[0]]}: mend the table")
        tag = Counter(tags[place] for place in places).most_common(1)[0][0]
        tracks.append(Track(number, tag, rows[places], stretches(rows[places], seen, listed)))
    return tracks


def stretches(rows: Integers, seen: Integers, listed: Integers) -> list[Integers]:
    """Cut the rows of a track where it is not seen.

    It is not seen in a listed frame without it. Frames that are not listed, as between every fifth one, do not cut,
    unless there are more of them than twice the usual step: then someone has taken rows out.
    """
    step = float(np.median(np.diff(listed))) if len(listed) > 1 else 1.0
    places = np.searchsorted(listed, seen)
    cuts = np.flatnonzero((np.diff(places) > 1) | (np.diff(seen) > 2 * step)) + 1
    return np.split(rows, cuts)


def _crowded(frames: Integers, tags: list[str], stated: Integers) -> set[str]:
    """Classes of which some frame has two boxes without a track."""
    places = Counter(
        (frame, tag) for frame, tag, track in zip(frames.tolist(), tags, stated.tolist(), strict=True) if track < 0
    )
    return {tag for (_, tag), count in places.items() if count > 1}

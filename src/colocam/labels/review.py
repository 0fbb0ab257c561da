"""Frames to check by hand: boxes ranked by doubt, without true boxes or training.

Doubt combines these signals into one number:

| signal       | frame with a box                                               | frame without a box                |
|--------------|----------------------------------------------------------------|------------------------------------|
| `faint`      | 1 − score / usual score: low map values inside the box         | –                                  |
| `rival`      | 1 − margin: another region explains the map as well            | –                                  |
| `jump`       | 1 − IoU with the boxes of the frames before and after          | both of these have a box           |
| `classifier` | 1 − presence: the classifier does not find the object          | presence: the classifier finds it  |
| `class`      | 1 where the class of the whole video is in doubt               | the same                           |

With signals s in 0–1 and weights w, doubt = 1 − Π (1 − w·s): one strong signal is enough. A missing column (presence,
margin) gives no signal. Nothing here is learned from boxes; the weights were chosen by hand.

Which frames are listed depends on the purpose:

| purpose    | order                                                                                        |
|------------|----------------------------------------------------------------------------------------------|
| `errors`   | by doubt, sparsely within a doubtful part of a video (:func:`queue`)                         |
| `learning` | at even distances over all videos, the middle of each first; doubtful frames teach less      |
|            | (docs/method/corrections.md)                                                                 |
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from colocam.boxes.iou import iou
from colocam.errors import ArgumentError
from colocam.labels.table import Integers, TableRows, read_table
from colocam.labels.table_files import names_of, tables_of
from colocam.types import Float64Array
from colocam.utils.files import refuse_replacing, write_text
from colocam.utils.progress import listed, say
from colocam.utils.tables import csv_text
from colocam.video.frame_choice import evenly

WEIGHTS = {"faint": 1.0, "rival": 0.3, "jump": 0.3, "classifier": 0.3, "class": 0.5}
"""Weights of the signals, chosen on validation videos of the demo (lab/notes/boxes.md)."""
CLASS_IN_DOUBT = 0.5
"""Mean probability of the class of a video below which it is in doubt (lab/notes/classifier.md)."""
USUAL = 0.9
"""Quantile of all scores that counts as the usual score of a good box; it differs between models."""
PARTNERS = 100
"""Boxes of a neighboring frame, the first ones of the table, that a box is compared with at most."""
WORDS = {
    "faint": "little heat inside the box",
    "rival": "another region is as likely",
    "jump": "the box jumps",
    "classifier": "the classifier does not find the object",
    "class": "the class is in doubt in the whole video",
}
WORDS_WITHOUT_BOX = {
    "jump": "no box, but boxes before and after",
    "classifier": "no box, but the classifier finds the object",
    "class": WORDS["class"],
}
SHARE = 0.05
"""Share of the frames to list."""
APART = 0.5
"""Seconds within which a listed frame lowers the priority of others."""
LESS = 0.5
"""Share of its doubt that a frame loses right beside a listed one."""
COLUMNS = ("video", "frame", "pts", "doubt", "reason")

Order = Callable[[Float64Array, Integers, Float64Array, int, float], list[int]]
"""(doubt (n,), video (n,), pts (n,), most, apart) of frames sorted by video and time → indices in order."""


def signs(tables: Sequence[TableRows]) -> dict[str, Float64Array]:
    """Each signal of each row of all tables but that of their classes, (n,) in 0–1."""
    box, score, presence, margin = (_joined(tables, name) for name in ("box", "score", "presence", "margin"))
    there, score = np.isfinite(box[:, 0]), np.nan_to_num(score)
    usual = float(np.quantile(score[there], USUAL)) if there.any() else 1.0
    signals = {
        "faint": np.where(there, 1 - score / max(usual, 1e-9), 0),
        "rival": np.where(there, 1 - margin, 0),
        "jump": np.concatenate([jumps(rows) for rows in tables]),
        "classifier": np.where(there, 1 - presence, presence),
    }
    return {name: np.clip(np.nan_to_num(sign), 0, 1) for name, sign in signals.items()}


def _joined(tables: Sequence[TableRows], column: str) -> npt.NDArray[Any]:
    return np.concatenate([getattr(rows, column) for rows in tables])


def doubts(signals: dict[str, Float64Array]) -> Float64Array:
    """(n,) 1 − Π (1 − w·s), 0–1."""
    sure: Float64Array = np.prod([1 - WEIGHTS[name] * signal for name, signal in signals.items()], axis=0)
    return 1 - sure


def reason(signals: dict[str, float], *, box: bool) -> str:
    """The strongest signal of a row in words, and a second one if it is at least half as strong."""
    words = WORDS if box else WORDS_WITHOUT_BOX
    weighted = {name: WEIGHTS[name] * signal for name, signal in signals.items() if name in words}
    most = max(weighted.values())
    said = sorted((name for name in weighted if weighted[name] >= max(most / 2, 0.05)), key=lambda n: -weighted[n])
    return "; ".join(words[name] for name in said[:2]) or "no single reason"


def jumps(rows: TableRows) -> Float64Array:
    """(n,) 1 − mean IoU with the best box of the previous and of the next listed frame, where they exist.

    Of a frame with more than :data:`PARTNERS` rows only the first ones count, so that time grows with the rows.
    For a frame without a box: 1 if both have one, else 0.
    """
    _, start, at, size = np.unique(rows.frame, return_index=True, return_inverse=True, return_counts=True)
    there = np.isfinite(rows.box[:, 0])
    overlaps = np.full((2, len(at)), np.nan)
    for overlap, step in zip(overlaps, (-1, 1), strict=True):
        known = (at + step >= 0) & (at + step < len(start))
        other = np.where(known, at + step, at)
        best = np.zeros(len(at))
        for i in range(min(int(size.max(initial=0)), PARTNERS)):
            partner = start[other] + np.minimum(i, size[other] - 1)
            best = np.maximum(best, np.where(there, iou(rows.box, rows.box[partner]), there[partner]))
        overlap[known] = best[known]
    neighbors = np.isfinite(overlaps).sum(axis=0)
    with_box = np.where(neighbors > 0, 1 - np.nansum(overlaps, axis=0) / np.maximum(neighbors, 1), 0)
    jump: Float64Array = np.where(there, with_box, np.nan_to_num(overlaps).prod(axis=0))
    return jump


def queue(doubt: Float64Array, video: Integers, pts: Float64Array, most: int, apart: float = APART) -> list[int]:
    """Order at most ``most`` frames by doubt, reduced near frames that are already chosen.

    The factor is 1 − ``LESS`` · exp(−½ (Δt / apart)²), where Δt is the time to the nearest chosen frame of the video.
    So a doubtful part of a video is sampled sparsely first.

    Args:
        doubt: (n,) of frames sorted by video and time.
        video: (n,).
        pts: (n,) seconds, rising within a video.
        most: number of frames to return.
        apart: seconds; 0 orders by doubt alone.

    Returns:
        Indices of the chosen frames; of equal doubts the earlier frame comes first.
    """
    whole = doubt.astype(np.float64).tolist()
    left = whole.copy()
    videos, times = video.tolist(), pts.tolist()
    heap = [(-value, at) for at, value in enumerate(left)]
    heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < most:
        value, at = heappop(heap)
        if -value > left[at]:  # reduced since it was pushed
            heappush(heap, (-left[at], at))
            continue
        chosen.append(at)
        for step in (-1, 1):
            other = at + step
            while 0 <= other < len(left) and videos[other] == videos[at]:
                away = abs(times[other] - times[at])
                if away > 4 * apart:
                    break
                if apart:
                    left[other] = min(left[other], whole[other] * (1 - LESS * exp(-0.5 * (away / apart) ** 2)))
                other += step
    return chosen


def evenly_spread(doubt: Float64Array, video: Integers, pts: Float64Array, most: int, apart: float) -> list[int]:  # noqa: ARG001 - all orders are called alike
    """Order frames at even distances: one of each video, then two, and so on, whatever their doubt."""
    videos = np.split(np.arange(len(video)), np.flatnonzero(np.diff(video)) + 1)  # video is sorted
    counts = shares(np.array([len(rows) for rows in videos]), most)
    order: list[tuple[int, int]] = []
    for rows, count in zip(videos, counts.tolist(), strict=True):
        places = rows[evenly(len(rows), count)].tolist()
        middle_first = sorted(range(count), key=lambda at: abs(2 * at + 1 - count))
        order += [(rank, places[at]) for rank, at in enumerate(middle_first)]
    return [row for _, row in sorted(order)]


def shares(lengths: Integers, most: int) -> Integers:
    """Divide ``most`` frames among videos of so many frames as equally as possible.

    Where not all videos can have one more, those at even distances in the list have it.
    """
    counts = np.zeros_like(lengths)
    while left := min(most, int(lengths.sum())) - int(counts.sum()):
        unfilled = np.flatnonzero(counts < lengths)
        if each := left // len(unfilled):
            counts[unfilled] = np.minimum(counts[unfilled] + each, lengths[unfilled])
        else:
            counts[unfilled[evenly(len(unfilled), left)]] += 1
    return counts


PURPOSES: dict[str, Order] = {"errors": queue, "learning": evenly_spread}
"""Orders by the name that ``colocam review --for`` takes."""


class Doubtful(NamedTuple):
    """A frame to check: index of its video, index of the frame, seconds, doubt (0–1), and the reason in words."""

    video: int
    frame: int
    pts: float
    doubt: float
    reason: str


def rank(
    tables: Sequence[TableRows],
    share: float = SHARE,
    apart: float = APART,
    purpose: str = "errors",
    unsure: Sequence[bool] = (),
) -> list[Doubtful]:
    """Order ``share`` of the frames by purpose; of several objects in a frame the most doubtful one counts.

    A row without a time gets its frame index. ``unsure``: whether the class of each table is in doubt.
    """
    check(share, apart, purpose)
    found = signs(tables)
    if any(unsure):
        found["class"] = np.repeat(np.array(unsure, float), [len(rows.frame) for rows in tables])
    doubt = doubts(found)
    frame = _joined(tables, "frame")
    pts = _joined(tables, "pts")
    pts = np.where(np.isnan(pts), frame, pts)
    video = np.repeat(np.arange(len(tables)), [len(rows.frame) for rows in tables])
    # Sorted by frame, then by doubt, the last row of each frame is the most doubtful one.
    order = np.lexsort((doubt, frame, video))
    last = order[np.append((np.diff(video) != 0) | (np.diff(frame) != 0), True)]
    chosen = PURPOSES[purpose](doubt[last], video[last], pts[last], max(1, round(share * len(last))), apart)
    there = np.isfinite(_joined(tables, "box")[:, 0])
    return [
        Doubtful(
            int(video[row]),
            int(frame[row]),
            float(pts[row]),
            float(doubt[row]),
            reason({name: float(sign[row]) for name, sign in found.items()}, box=bool(there[row])),
        )
        for row in last[chosen].tolist()
    ]


def class_in_doubt(probability: Float64Array) -> bool:
    """Whether the class that the model found in a video is in doubt: its frames (n,) do not look like it on average."""
    known = probability[np.isfinite(probability)]
    return bool(len(known)) and float(known.mean()) < CLASS_IN_DOUBT


def review_tables(
    tables: Sequence[str | Path],
    out: str | Path,
    *,
    share: float = SHARE,
    apart: float = APART,
    purpose: str = "errors",
) -> Path:
    """Write a CSV ``video, frame, pts, doubt, reason`` of the frames to look at, most important first.

    Args:
        tables: CSV or parquet, as ``colocam localize`` writes them, one per video, or folders of them.
        out: the CSV file; a file that holds something else is not replaced.
        share: share of the frames to list, above 0 and at most 1.
        apart: seconds within which a listed frame lowers the priority of others; 0: never.
        purpose: ``errors``: frames that are probably wrong; ``learning``: frames to learn from, at even distances over
            all videos.
    """
    paths, out = tables_of(tables), Path(out)
    if any(path.exists() and out.exists() and path.samefile(out) for path in paths):
        raise ArgumentError("out", f"must not be the table itself, got {out}")
    rows = [read_table(path, required=("score",)) for path in paths]
    names = names_of(paths)
    unsure = [class_in_doubt(table.probability) for table in rows]
    write_queue(out, names, rank(rows, share, apart, purpose, unsure))
    if doubted := [name for name, doubt in zip(names, unsure, strict=True) if doubt]:
        say(f"the class is in doubt in all frames of {listed(doubted)}: look there first")
    return out


def check(share: float, apart: float, purpose: str) -> None:
    """Refuse values out of range, and purposes that are not known."""
    if not 0 < share <= 1:
        raise ArgumentError("share", f"must be above 0 and at most 1, got {share}")
    if not apart >= 0:
        raise ArgumentError("apart", f"must be 0 seconds or more, got {apart}")
    if purpose not in PURPOSES:
        raise ArgumentError("purpose", f"must be one of {', '.join(PURPOSES)}, got {purpose!r}")


def write_queue(out: Path, names: Sequence[str], frames: Sequence[Doubtful]) -> None:
    """Write frames in the given order, with the names of their videos; only an earlier queue is replaced."""
    refuse_replacing(out, ",".join(COLUMNS).encode(), "list of frames to review")
    rows = ((names[one.video], one.frame, one.pts, f"{one.doubt:.4f}", one.reason) for one in frames)
    write_text(out, csv_text(COLUMNS, rows))

"""The second screen of the report: worst videos, confused classes, and what a few boxes would bring."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colocam.data.run_data import read_data
from colocam.errors import ColocamError
from colocam.evaluation.metrics import CorLoc
from colocam.evaluation.result import method_title
from colocam.report.evaluation_tables import class_rows, gain
from colocam.report.gallery import Group
from colocam.types import Clip
from colocam.utils.progress import listed
from colocam.utils.tables import read_cells

MOST_VIDEOS = 6
"""Videos that a list or a command names at most; the page has the others."""
MOST_PAIRS = 5
"""Pairs of classes that are listed at most."""
MOST_CLASSES = 3
"""Classes that the headline names at most."""
PORT = 8321
"""Of the page that the links lead to; the command beside them names it."""
ID_DIGITS = 24
"""Digits of a video's digest by which the page knows it."""
NOTICED = 0.05
"""Points that are not 0 in a number with one digit."""


@dataclass(frozen=True, slots=True)
class WorstVideo:
    """A video to look at.

    Attributes:
        name: of the clip.
        tag: of the video.
        frame: its worst frame, or the first one to check.
        reason: in words.
        link: its frame on the page; empty where the file of the video is not there.
    """

    name: str
    tag: str
    frame: int
    reason: str
    link: str


@dataclass(frozen=True, slots=True)
class ConfusedPair:
    """How many frames of a class were taken for another one."""

    tag: str
    taken_for: str
    frames: int
    of: int


def run_clips(run: Path) -> dict[str, Clip]:
    """The clips of a run by name; none where its data cannot be read."""
    try:
        return {clip.name: clip for clip in read_data(run).catalogue.clips}
    except (ColocamError, OSError):
        return {}


def worst_videos(run: Path, groups: Sequence[Group], review: Sequence[Group]) -> list[WorstVideo]:
    """The videos with the least overlap of a found and a true box; then those with the most frames to check."""
    clips = run_clips(run)
    to_check = _frames_to_check(run)
    overlaps: dict[str, tuple[float, int, str]] = {}
    for case in (case for group in groups for case in group.cases):
        overlap = case.images[-1].overlap
        if overlap is not None and overlap < overlaps.get(case.clip, (1.0, 0, ""))[0]:
            overlaps[case.clip] = overlap, case.frame, case.tag
    first_doubtful = {case.clip: case for group in review for case in reversed(group.cases)}
    videos = []
    for name, (overlap, frame, tag) in sorted(overlaps.items(), key=lambda item: item[1][0]):
        if overlap < 0.5:
            reason = f"frame {frame}: IoU {overlap:.2f}"
            videos.append(_worst(name, tag, frame, reason, to_check[name], clips))
    for name, case in sorted(first_doubtful.items(), key=lambda item: -to_check[item[0]]):
        if name not in {video.name for video in videos}:
            videos.append(_worst(name, case.tag, case.frame, f"frame {case.frame} is doubtful", to_check[name], clips))
    return videos[:MOST_VIDEOS]


def _worst(name: str, tag: str, frame: int, reason: str, to_check: int, clips: Mapping[str, Clip]) -> WorstVideo:
    if to_check:
        reason += f"; {to_check} frames to check" if to_check > 1 else "; 1 frame to check"
    clip = clips.get(name)
    link = ""
    if clip is not None and clip.digest and clip.path.exists():
        link = f"http://127.0.0.1:{PORT}/#video={clip.digest[:ID_DIGITS]}&frame={frame}"
    return WorstVideo(name, tag, frame, reason, link)


def _frames_to_check(run: Path) -> Counter[str]:
    """How many frames of each video are in the queue of ``colocam review``; none without a queue that can be read."""
    try:
        return Counter(read_cells(run / "review.csv", required=("video",)).text("video"))
    except ColocamError:
        return Counter()


def serve_command(run: Path, names: Iterable[str], port: int | None = None) -> str:
    """The command that opens these videos of a run on the page; without any, the run's held-out videos."""
    clips = run_clips(run)
    paths = [clips[name].path for name in dict.fromkeys(names) if name in clips]
    videos = dict.fromkeys(_near(path) for path in paths if path.exists())
    stated_port = [] if port is None else ["--port", str(port)]
    return shlex.join(["colocam", "serve", str(run), *list(videos)[:MOST_VIDEOS], *stated_port])


def _near(path: Path) -> str:
    """A path as it is typed here: relative below the working folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


def confused_pairs(counts: Mapping[str, Mapping[str, int]]) -> list[ConfusedPair]:
    """The classes that are most often taken for another one, by their share of the frames of the class."""
    pairs = [
        ConfusedPair(tag, name, frames, sum(row.values()))
        for tag, row in counts.items()
        for name, frames in row.items()
        if name != tag and frames
    ]
    return sorted(pairs, key=lambda pair: (-pair.frames / pair.of, pair.tag, pair.taken_for))[:MOST_PAIRS]


def worse_classes(cells: Mapping[str, CorLoc]) -> str:
    """Where the last method is worse than the first, e.g. "Worse than LayerCAM: rocket, −15.0 points."; or nothing."""
    rows = class_rows(cells.values())
    losses = sorted((points, tag) for tag, _, points in rows if points is not None and points <= -NOTICED)
    if not losses:
        return ""
    named = listed([f"{tag} {_points(points)}" for points, tag in losses], MOST_CLASSES)
    return f"Worse than {method_title(next(iter(cells)))}: {named} points."


def few_boxes(protocols: Mapping[str, Mapping[str, CorLoc]]) -> str:
    """What a threshold that is chosen with some boxes brings, as the evaluation measured it; "" where it did not."""
    pair = [list(protocols[name].values())[-1] for name in ("tags-only", "validation") if name in protocols]
    points = gain([cell.average for cell in pair])
    if points is None:
        return ""
    sentence = f"CorLoc {pair[0].average:.1f} % with tags alone, {pair[1].average:.1f} % with a threshold from boxes"
    if points < NOTICED:
        return f"{sentence} of the validation videos: boxes do not help to choose it here."
    return f"{sentence} of the validation videos: {_points(points)} points."


def _points(value: float) -> str:
    return f"{value:+.1f}".replace("-", "\N{MINUS SIGN}")

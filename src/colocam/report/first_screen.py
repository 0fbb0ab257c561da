"""What a reader sees first: one sentence, a good, a typical and a bad picture, confusions, and the next command."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colocam.data.run_data import read_data
from colocam.errors import ColocamError
from colocam.evaluation.metrics import CorLoc
from colocam.report.gallery import Case, CaseImage, Group

MOST_CLASSES = 12
"""A confusion matrix with more classes is folded away."""
MOST_VIDEOS = 6
"""Videos that a command names at most; the page has the others."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An example: good, typical or bad, with the image of the main method."""

    word: str
    case: Case
    image: CaseImage


@dataclass(frozen=True, slots=True)
class Confusion:
    """Frames by tag and class found: names of the columns, and rows of (tag, counts, share of the row in 0–1)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], tuple[float, ...]], ...]
    often: str

    @property
    def folded(self) -> bool:
        """Whether the table is too large for the first screen."""
        return len(self.columns) > MOST_CLASSES


def sentence(cell: CorLoc, frames: int) -> str:
    """How many boxes are right and which class is worst, e.g. "3 of 4 boxes are right; worst: rocket, 68 %."."""
    if cell.frames is None:
        told = f"{_percent(cell.average)} of the boxes are right, as a mean over classes"
    else:
        told = f"{round(cell.frames * frames / 100)} of {frames} boxes are right"
    known = {tag: value for tag, value in cell.classes.items() if value is not None}
    if len(set(known.values())) > 1:
        worst = min(known, key=lambda tag: known[tag])
        told += f"; worst: {worst}, {_percent(known[worst])}"
    return told + "."


def _percent(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") + "\N{NO-BREAK SPACE}%"


def pictures(groups: Sequence[Group]) -> list[Picture]:
    """The best of the best cases, the median of the typical ones and the worst of the worst, by the main method."""
    found = []
    for name, word, place in (("best", "Good", 1.0), ("typical", "Typical", 0.5), ("worst", "Bad", 0.0)):
        cases = [case for group in groups if group.name == name for case in group.cases]
        ordered = sorted((case for case in cases if case.images[-1].overlap is not None), key=_overlap)
        if ordered:
            case = ordered[min(int(place * len(ordered)), len(ordered) - 1)]
            found.append(Picture(word, case, case.images[-1]))
    return found


def _overlap(case: Case) -> float:
    return case.images[-1].overlap or 0.0


def confusion_table(counts: Mapping[str, Mapping[str, int]]) -> Confusion | None:
    """Counts as a table, with the most frequent confusion in words; None without counts."""
    columns = tuple(dict.fromkeys((*counts, *(name for row in counts.values() for name in row))))
    rows = []
    for tag, row in counts.items():
        numbers = tuple(row.get(name, 0) for name in columns)
        rows.append((tag, numbers, tuple(number / max(1, sum(numbers)) for number in numbers)))
    wrong = [(n, tag, name) for tag, row in counts.items() for name, n in row.items() if name != tag and n]
    if not rows:
        return None
    if not wrong:
        return Confusion(columns, tuple(rows), "No frame was taken for another class.")
    number, tag, name = max(wrong, key=lambda one: one[0])
    often = f"Most frequent confusion: {tag} taken for {name}, in {number} of {sum(counts[tag].values())} frames."
    return Confusion(columns, tuple(rows), often)


def serve_command(run: Path, review: Sequence[Group]) -> str:
    """The command that opens the videos of the frames to check; without any, the run's held-out videos."""
    names = list(dict.fromkeys(case.clip for group in review for case in group.cases))
    try:
        clips = read_data(run).catalogue.clips if names else ()
    except (ColocamError, OSError):  # the videos of the run are the default of the command
        clips = ()
    paths = {clip.name: clip.path for clip in clips}
    videos = dict.fromkeys(_near(paths[name]) for name in names if name in paths and paths[name].exists())
    return shlex.join(["colocam", "serve", str(run), *list(videos)[:MOST_VIDEOS]])


def _near(path: Path) -> str:
    """A path as it is typed here: relative below the working folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative

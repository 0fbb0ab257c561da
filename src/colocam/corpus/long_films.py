"""Long films are divided at cuts into ranges, which several workers label, and joined with the same bytes.

Nothing that :mod:`colocam.temporal` computes passes a cut. But the cuts themselves depend on frames around them, and
the rounding of a network may depend on a frame's row in its pass. So a worker also processes some frames before and
after its range, beginning with the first row of a pass, and leaves their rows out. Tracks of a range are counted from
0; the join adds the tracks of the ranges before it.
"""

import json
import shutil
from array import array
from collections.abc import Iterable
from math import lcm
from pathlib import Path

from colocam.corpus.items import FrameRange
from colocam.corpus.part_files import durable, is_whole
from colocam.inference.localizer import ROWS_ONLINE, Localizer
from colocam.inference.options import LOOK_AHEAD
from colocam.inference.stages import read_passes
from colocam.labels.table import join_tables
from colocam.temporal.cuts import AROUND, CutFinder
from colocam.types import VideoFrame
from colocam.utils.files import write_json
from colocam.utils.tables import DamagedTableError
from colocam.video.frame_choice import FrameChoice

LONG = 30_000
"""A film with more frames is divided into ranges of about so many."""


def is_divisible(choice: FrameChoice) -> bool:
    """Whether ranges of a film can be chosen: steps of ``every`` and ``fps`` count from the first frame."""
    return choice.every == 1 and choice.fps is None


def find_ranges(localizer: Localizer, frames: Iterable[VideoFrame], length: int) -> list[FrameRange]:
    """Divide a film at the first cut after each ``length`` frames; without smoothing, anywhere.

    Args:
        localizer: what will label the film.
        frames: all chosen frames of the film.
        length: of a range at least.
    """
    look_ahead = LOOK_AHEAD[localizer.options.smooth]
    passes = read_passes(
        frames, localizer.card.size, localizer.network.rows, None, histograms=look_ahead is not None, images=False
    )
    indices, cuts = array("q"), array("q")
    finder, decided = CutFinder(look_ahead.cuts if look_ahead else 0), 0
    for one in passes:
        indices.extend(frame.index for frame in one.frames)
        found = [True] * len(one.frames) if one.histograms is None else finder.push(one.histograms).tolist()
        cuts.extend(decided + at for at, cut in enumerate(found) if cut)
        decided += len(found)
    cuts.extend(decided + at for at, cut in enumerate(finder.finish().tolist()) if cut)
    starts = [0]
    for cut in cuts:
        if cut >= starts[-1] + length:
            starts.append(cut)
    step = _pass_step(localizer)
    ranges = []
    for begin, end in zip(starts, [*starts[1:], len(indices)], strict=True):
        first = max(0, begin - AROUND - 1) // step * step
        stop = end + (look_ahead.cuts if look_ahead else 0) + 1
        ranges.append(
            FrameRange(
                indices[begin],
                indices[end] if end < len(indices) else None,
                indices[first],
                indices[stop] if stop < len(indices) else None,
            )
        )
    return ranges


def _pass_step(localizer: Localizer) -> int:
    """Frames after which a pass begins, whatever the size of the frames, which may halve the rows of a pass."""
    rows, steps = localizer.network.rows, 1
    for most in (rows, min(rows, ROWS_ONLINE)):
        while most > 0:
            steps, most = lcm(steps, most), most // 2  # noqa: PLW2901
    return steps


class Ranges:
    """The ranges of one long film in storage: its plan, and a table with its number of tracks for each."""

    def __init__(self, labels: Path, key: str) -> None:
        self.folder = labels / "ranges" / key[:2] / key

    def read(self) -> list[FrameRange]:
        """The plan; empty if there is none."""
        try:
            stored = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
            return [FrameRange(*one) for one in stored["ranges"]]
        except (OSError, ValueError, TypeError, KeyError):
            return []

    def write(self, ranges: list[FrameRange], metadata: dict[str, str]) -> None:
        """Store the plan, and the metadata of the part."""
        write_json(self.folder / "plan.json", {"ranges": ranges, "metadata": metadata})

    def table(self, one: FrameRange) -> Path:
        """Path of the rows of a range."""
        return self.folder / f"{one.begin}.parquet"

    def finish(self, one: FrameRange, tracks: int) -> None:
        """Store that the table of a range is written, and how many tracks it has."""
        write_json(self.folder / f"{one.begin}.json", tracks)

    def missing(self, ranges: list[FrameRange]) -> list[FrameRange]:
        """The ranges that are not labelled yet."""
        return [one for one in ranges if self._tracks(one) is None or not is_whole(self.table(one))]

    def join(self, ranges: list[FrameRange], target: Path) -> None:
        """Write the part of the film, and remove its ranges.

        Raises:
            OSError: a range is damaged; it is deleted, so that the next attempt labels it again.
        """
        parts, tracks = [], 0
        for one in ranges:
            parts.append((self.table(one), tracks))
            tracks += self._tracks(one) or 0
        metadata = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))["metadata"]
        with durable(target):
            try:
                join_tables(parts, target, metadata)
            except DamagedTableError as error:
                error.path.unlink(missing_ok=True)
                raise OSError(f"{error}: it is labelled again") from error
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tracks(self, one: FrameRange) -> int | None:
        try:
            return int((self.folder / f"{one.begin}.json").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

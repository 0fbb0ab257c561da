"""The parts of ``colocam label``: the sink that writes a video's localization table into a folder of labels.

A part is named by a digest of the content of its video, of the model and of the options, and appears as a whole. So a
task may be done twice, or by two machines at once: both write the same bytes to the same name.

Long videos are divided at cuts into ranges, which several workers label, and joined with the same bytes. Nothing that
:mod:`colocam.temporal` computes passes a cut. But the cuts themselves depend on frames around them, and the rounding of
a network may depend on a frame's row in its pass. So a worker also processes some frames before and after its range,
beginning with the first row of a pass, and leaves their rows out. Tracks of a range are counted from 0; the join adds
the tracks of the ranges before it.

Tests: tests/inference/test_label.py, tests/inference/test_long_videos.py.
"""

import json
import shutil
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import lcm
from pathlib import Path
from typing import ClassVar

from colocam.inference.localizer import Localizer, layout_for
from colocam.inference.pipeline import ROWS_ONLINE
from colocam.inference.stages import read_passes
from colocam.inference.task import FrameRange, LocalizeVideo, Result, Worker, localize_into
from colocam.inference.videos import Video
from colocam.labels.label_folder import count_part, durable, is_whole, part_name, part_path, video_metadata
from colocam.labels.table import LocalizationTable, join_tables
from colocam.temporal.cuts import AROUND, CutFinder
from colocam.temporal.smoothing import LOOK_AHEAD, Shots
from colocam.types import Localization, VideoFrame
from colocam.utils.files import write_json
from colocam.utils.tables import DamagedTableError
from colocam.video.description import describe, picture_names
from colocam.video.fence import FencedReader

LONG = 30_000
"""A video with more frames is divided into ranges of about so many."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A sink: a part of a corpus for each video, named by the key of its results.

    Attributes:
        labels: folder of the labels.
        long: frames of a video that is divided into ranges.
    """

    labels: Path
    long: int = LONG
    only_stored: ClassVar[bool] = True

    def done(self, video: Video, key: str | None) -> Result | None:  # noqa: ARG002 - the key names the part
        """An empty result for a video whose part is there; nothing is counted, since there may be 100,000."""
        return {} if is_whole(f"{self.labels}/{part_name(key or '')}") else None

    def write(self, task: LocalizeVideo, key: str | None, worker: Worker) -> Result:
        """The numbers of ``frames`` and ``rows`` of the part; or ``ranges`` to label first, then this again."""
        assert key is not None
        part, ranges = part_path(self.labels, key), Ranges(self.labels, key)
        if task.range is not None:
            ranges.finish(task.range, self._write(task, worker, ranges.table(task.range)))
            return {}
        plan = ranges.read() or self._plan(task, worker, ranges)
        if missing := ranges.missing(plan):
            return {"ranges": missing}
        if plan:
            ranges.join(plan, part)
        else:
            with durable(part):
                self._write(task, worker, part)
        frames, rows = count_part(part)
        return {"frames": frames, "rows": rows}

    def _plan(self, task: LocalizeVideo, worker: Worker, ranges: "Ranges") -> list[FrameRange]:
        """Divide a long video; an empty plan for one that is labeled as a whole."""
        video, choice = task.video, task.choice
        if not (choice.every == 1 and choice.fps is None):  # their steps count from the first frame
            return []
        localizer = worker.localizer(video.tag)
        with _open(video) as reader:
            if reader.estimate(choice) <= self.long:
                return []
            with worker.show(f"dividing {video.name}", 0, unit="frames") as advance:
                frames = (frame for frame in reader.frames(choice, layout_for(localizer)) if advance(0) is None)
                plan = find_ranges(localizer, frames, self.long)
            metadata = video_metadata(describe(video.path, reader))
        if len(plan) < 2:
            return []
        ranges.write(plan, metadata)
        return plan

    def _write(self, task: LocalizeVideo, worker: Worker, target: Path) -> int:
        """Write the rows of the video, or of the range with tracks from 0; returns the number of these tracks."""
        video, kept, choice = task.video, task.range, task.choice
        localizer = worker.localizer(video.tag)
        shots: Shots = {}
        if kept is not None:
            choice = replace(choice, frames=(kept.first, kept.stop))
        with (
            _open(video) as reader,
            LocalizationTable(target, localizer.columns, picture_names(reader.pictures)) as table,
            worker.show(f"labeling {video.name}", reader.estimate(choice), unit="frames") as advance,
        ):

            def write(frame: VideoFrame, objects: Sequence[Localization]) -> None:
                if kept is not None and not (
                    kept.begin <= frame.index and (kept.end is None or frame.index < kept.end)
                ):
                    return
                before = 0 if kept is None else shots.get(kept.begin, 0)
                for row in objects:
                    table.write(row if row.track is None else replace(row, track=row.track - before))

            localize_into(localizer, reader, choice, write, shots=shots, passed=advance)
            if kept is None:
                table.add_metadata(video_metadata(describe(video.path, reader)))
        if kept is None or kept.end is None or localizer.options.smooth == "none":
            return 0
        if not shots.keys() >= {kept.begin, kept.end} - {kept.first}:
            raise RuntimeError("its cuts differ from those that an earlier attempt found")
        return shots[kept.end] - shots.get(kept.begin, 0)


def _open(video: Video) -> FencedReader:
    # One thread: what FFmpeg makes of a damaged video may depend on their number, and there are workers for all cores.
    return FencedReader(video.source, threads=1)


def find_ranges(localizer: Localizer, frames: Iterable[VideoFrame], length: int) -> list[FrameRange]:
    """Divide a video at the first cut after each ``length`` frames; without smoothing, anywhere.

    Args:
        localizer: what will label the video.
        frames: all chosen frames of the video.
        length: of a range at least.
    """
    look_ahead = LOOK_AHEAD[localizer.options.smooth]
    passes = read_passes(
        frames, localizer.card.size, localizer.network.rows, None, histograms=look_ahead is not None, images=False
    )
    indices, cuts = array("q"), array("q")
    finder, decided = CutFinder(look_ahead.cuts if look_ahead else 0), 0
    for batch in passes:
        indices.extend(frame.index for frame in batch.frames)
        begins = [True] * len(batch.frames) if batch.histograms is None else finder.push(batch.histograms).tolist()
        cuts.extend(decided + at for at, cut in enumerate(begins) if cut)
        decided += len(begins)
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
    """The ranges of one long video in storage: its plan, and a table with its number of tracks for each."""

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

    def table(self, kept: FrameRange) -> Path:
        """Path of the rows of a range."""
        return self.folder / f"{kept.begin}.parquet"

    def finish(self, kept: FrameRange, tracks: int) -> None:
        """Store that the table of a range is written, and how many tracks it has."""
        write_json(self.folder / f"{kept.begin}.json", tracks)

    def missing(self, ranges: list[FrameRange]) -> list[FrameRange]:
        """The ranges that are not labeled yet."""
        return [one for one in ranges if self._tracks(one) is None or not is_whole(self.table(one))]

    def join(self, ranges: list[FrameRange], target: Path) -> None:
        """Write the part of the video, and remove its ranges.

        Raises:
            OSError: a range is damaged; it is deleted, so that the next attempt labels it again.
        """
        parts, tracks = [], 0
        for kept in ranges:
            parts.append((self.table(kept), tracks))
            tracks += self._tracks(kept) or 0
        metadata = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))["metadata"]
        with durable(target):
            try:
                join_tables(parts, target, metadata)
            except DamagedTableError as error:
                error.path.unlink(missing_ok=True)
                raise OSError(f"{error}: it is labeled again") from error
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tracks(self, kept: FrameRange) -> int | None:
        try:
            return int((self.folder / f"{kept.begin}.json").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

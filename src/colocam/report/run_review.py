"""Review of a trained run: the most doubtful frames of its held-out videos, with images for the report.

Tests: tests/labels/test_review.py, tests/demo/test_run_demo.py.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.frame_cache import CachedClip
from colocam.evaluation.cases import write_images
from colocam.inference import Localizer
from colocam.labels.review import APART, SHARE, Doubtful, check, class_in_doubt, rank, write_queue
from colocam.labels.table import TableRows
from colocam.run import open_run
from colocam.types import Split, VideoFrame
from colocam.utils.progress import progress

MOST_IMAGES = 12
"""Number of frames in the report."""
NO_BOX = (np.nan,) * 4


def review_run(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    split: Split = "test",
    share: float = SHARE,
    apart: float = APART,
    purpose: str = "errors",
    device: str | None = None,
) -> Path:
    """Localize in the videos of a split, write the queue and, for the report, ``RUN/review.npz``.

    No true box is needed. Frames are those of the run's frame cache. Returns the path of the queue: ``out``, or
    ``RUN/review.csv`` if it is None.
    """
    check(share, apart, purpose)
    run = open_run(folder, device)
    run.require(split)
    clips, localizer = run.clips(split), Localizer.load(folder, device)
    tables = []
    with progress("review", len(clips), unit="videos") as advance:
        for clip in clips:
            tables.append(TableRows.of([one for _, one in localizer.stream(frames_of(clip))]))
            advance()
    ranked = rank(tables, share, apart, purpose, [class_in_doubt(rows.probability) for rows in tables])
    queue = run.folder / "review.csv" if out is None else Path(out)
    write_queue(queue, [clip.clip.name for clip in clips], ranked)
    _save(run.folder / "review.npz", localizer, clips, ranked[:MOST_IMAGES])
    return queue


def frames_of(clip: CachedClip) -> Iterator[VideoFrame]:
    """The cached frames of a clip, in the form of decoded ones."""
    for index, pts, image in zip(clip.index.tolist(), clip.pts.tolist(), clip.frames, strict=True):
        yield VideoFrame(index, pts, np.asarray(image))


def _save(path: Path, localizer: Localizer, clips: Sequence[CachedClip], chosen: Sequence[Doubtful]) -> None:
    """Write frames, maps, boxes and reasons; the videos are processed again, so that not all maps must be kept."""
    seen = {}
    for number in sorted({doubtful.video for doubtful in chosen}):
        wanted = {doubtful.frame for doubtful in chosen if doubtful.video == number}
        for frame, found in localizer.stream(frames_of(clips[number])):
            if found.frame in wanted:
                seen[number, found.frame] = frame.image, found
    meta = []
    for doubtful in chosen:
        _, found = seen[doubtful.video, doubtful.frame]
        clip = clips[doubtful.video].clip
        fields = {
            "clip": clip.name,
            "tag": clip.tag,
            "frame": doubtful.frame,
            "doubt": doubtful.doubt,
            "reason": doubtful.reason,
        }
        meta.append({**fields, "predicted": found.tag, "probability": found.probability})
    shown = [seen[doubtful.video, doubtful.frame] for doubtful in chosen]
    arrays: dict[str, npt.NDArray[np.generic]] = {
        "images": np.stack([image for image, _ in shown]),
        "heatmaps": np.stack([(255 * found.heatmap).astype(np.uint8) for _, found in shown]),
        "boxes": np.array([found.box or NO_BOX for _, found in shown], np.float32),
    }
    write_images(path, arrays, meta)

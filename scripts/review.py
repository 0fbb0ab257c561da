"""Measure the review queue: python scripts/review.py RUN BOXES [SPLIT].

All videos of a split (default: test) are localised with the default options. A frame is wrong if its box has an IoU
below 0.5 with every true box, or if it has a box and no object. Prints which share of the wrong frames a person finds
who checks the first 5, 10 and 20 % of the frames. *Seen*: wrong frames among the checked ones. *Found*: also the other
wrong frames of the same unbroken stretch, since a person who sees a wrong box looks at its neighbours. Compared are the
queue, the order by doubt alone, frames at even distances, random frames (mean of 200 orders), and the best possible
order.
"""

import argparse
from pathlib import Path

import numpy as np

from colocam import Localizer
from colocam.boxes.iou import iou
from colocam.data.truth import read_truth
from colocam.labels.review import Rows, doubts, queue, signs
from colocam.report.run_review import rows_of
from colocam.run import open_run

SHARES = (0.05, 0.1, 0.2)


def main(folder: Path, boxes: Path, split: str = "test") -> None:
    """Print one line per order."""
    run, truth = open_run(folder, "cpu"), read_truth(boxes)
    localizer = Localizer.load(folder, "cpu")
    parts, wrong = [], []
    for number, clip in enumerate(clip for clip in run.catalogue.clips if clip.split == split):
        found = list(localizer(clip.path))
        parts.append(rows_of(number, found))
        for one in found:
            true = truth.boxes(clip.name, one.frame)
            hit = one.box is not None and true and iou(np.array(one.box), np.array(true), inclusive=True).max() >= 0.5
            wrong.append(not hit if true else one.box is not None)
    rows = Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    error, doubt = np.array(wrong), doubts(signs(rows))
    stretch = stretches(error, rows.video)
    frames, most = len(error), round(max(SHARES) * len(error))
    generator = np.random.default_rng(0)
    even = {share: np.arange(round(share * frames)) / round(share * frames) * frames for share in SHARES}
    sizes = np.bincount(stretch[error])
    largest = np.argsort(-sizes[stretch], kind="stable")
    ideal = [row for row in largest if error[row] and (row == 0 or stretch[row] != stretch[row - 1])]
    orders = {
        "queue": [queue(doubt, rows.video, rows.pts, most)],
        "by doubt alone": [np.argsort(-doubt, kind="stable")],
        "random": [generator.permutation(frames) for _ in range(200)],
    }
    print(f"{frames} frames, {error.sum()} wrong in {len(sizes) - 1} stretches; % of the wrong ones seen / found")
    for name, several in orders.items():
        tell(name, [np.mean([share_found(o[: round(s * frames)], error, stretch) for o in several], 0) for s in SHARES])
    tell("even distances", [share_found(even[s].astype(int), error, stretch) for s in SHARES])
    best = [min(round(s * frames), error.sum()) / error.sum() for s in SHARES]
    reach = [share_found(ideal[: round(s * frames)], error, stretch)[1] for s in SHARES]
    tell("best possible", list(zip(best, reach, strict=True)))


def stretches(error: np.ndarray, video: np.ndarray) -> np.ndarray:
    """(n,) number of the unbroken stretch of wrong frames from 1, 0 for right frames."""
    before = np.append(False, error[:-1] & (np.diff(video) == 0))
    return np.where(error, np.cumsum(error & ~before), 0)


def share_found(checked: np.ndarray, error: np.ndarray, stretch: np.ndarray) -> tuple[float, float]:
    """Share of the wrong frames among the checked ones, and in stretches of which one was checked."""
    touched = np.setdiff1d(stretch[checked], [0])
    return error[checked].sum() / error.sum(), np.isin(stretch, touched).sum() / error.sum()


def tell(name: str, shares: list[tuple[float, float]]) -> None:
    """Print one order."""
    cells = (f"{s:.0%}: {100 * seen:.0f} / {100 * found:.0f}" for s, (seen, found) in zip(SHARES, shares, strict=True))
    print(f"{name:15}", "   ".join(cells))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("boxes", type=Path)
    parser.add_argument("split", nargs="?", default="test")
    arguments = parser.parse_args()
    main(arguments.run, arguments.boxes, arguments.split)

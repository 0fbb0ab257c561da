"""Measure boxes over time with and without smoothing: python scripts/steadiness.py RUN BOXES [SPLIT [DEVICE]].

For each mode of ``colocam localize --smooth``: CorLoc (mean over classes, percent), change, jitter and sudden shifts of
the boxes of all clips of a split (default: val), in pixels of the original video, at the model's stored threshold. The
first row gives the same numbers for the true boxes: the part that is motion.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colocam import Localizer
from colocam.boxes.iou import iou
from colocam.data.frame_cache import clip_frames
from colocam.data.truth import read_truth
from colocam.evaluation.metrics import steadiness
from colocam.inference.runtimes import open_network
from colocam.run import open_run

NOWHERE = (np.nan,) * 4


def main(folder: Path, boxes: Path, split: str = "val", device: str = "cpu") -> None:
    """Print one line per way of smoothing."""
    catalogue, truth = open_run(folder, device).catalogue, read_truth(boxes)
    network, card = open_network(folder, device)
    clips = [clip for clip in catalogue.clips if clip.split == split]
    frames = {clip.name: [frame.index for frame in clip_frames(clip)] for clip in clips}
    tell("truth", 100.0, [[next(iter(truth.boxes(name, at)), NOWHERE) for at in frames[name]] for name in frames])
    for smooth in ("none", "online", "offline"):
        right: dict[str, list[bool]] = {tag: [] for tag in catalogue.tags}
        tracks = []
        for clip in clips:
            localizer = Localizer(network, card, smooth=smooth, tag=clip.tag)
            found = [one for _, one in localizer.stream(clip_frames(clip))]
            tracks.append([f.box or NOWHERE for f in found])
            for f in found:
                true = truth.boxes(clip.name, f.frame)
                if true:
                    hit = f.box is not None and iou(np.array(f.box), np.array(true), inclusive=True).max() >= 0.5
                    right[clip.tag].append(bool(hit))
        tell(smooth, 100 * float(np.mean([np.mean(hits) for hits in right.values() if hits])), tracks)


def tell(what: str, corloc: float, tracks: Sequence[Sequence[Sequence[float]]]) -> None:
    """Print a line about the boxes of all clips."""
    still = steadiness([np.array(boxes, float) for boxes in tracks])
    print(
        f"{what:8} CorLoc {corloc:.1f}, change {still.change:.3f}, jitter {still.jitter:.3f}, "
        f"shifts {still.shifts} of {still.pairs}",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("boxes", type=Path)
    parser.add_argument("split", nargs="?", default="val")
    parser.add_argument("device", nargs="?", default="cpu")
    arguments = parser.parse_args()
    main(arguments.run, arguments.boxes, arguments.split, arguments.device)

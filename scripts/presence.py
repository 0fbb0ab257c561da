"""Measure presence: python scripts/presence.py RUN BOXES [SPLIT].

For each mode of ``colocam localize --smooth`` on all videos of a split (default: test), without and with their tag:
average precision for empty frames (higher is better), calibration error (lower is better) and, where the tag is not
given, the share of the frames with the object that get its class. Then the effect of ``--presence``: boxes per empty
frame before → after, share of the frames with the object that lose their box, and CorLoc (mean over classes, percent;
a hidden box is a miss) before → after.
"""

import argparse
from itertools import product
from pathlib import Path

import numpy as np

from colocam import Localizer
from colocam.boxes.iou import iou
from colocam.data.truth import read_truth
from colocam.evaluation.metrics import average_precision, calibration_error
from colocam.inference.runtimes import open_network
from colocam.run import open_run


def main(folder: Path, boxes: Path, split: str = "test") -> None:
    """Print one line per way of smoothing."""
    run, truth = open_run(folder, "cpu"), read_truth(boxes)
    clips = [clip for clip in run.catalogue.clips if clip.split == split]
    network, card = open_network(folder, "cpu")
    for smooth, told in product(("none", "online", "offline"), (False, True)):
        presence, there, boxed, hit, tags, named = [], [], [], [], [], []
        for clip in clips:
            localizer = Localizer(network, card, smooth=smooth, tag=clip.tag if told else None)
            for found in localizer(clip.path):
                true = truth.boxes(clip.name, found.frame)
                presence.append(found.presence)
                there.append(bool(true))
                boxed.append(found.box is not None)
                right = true and found.box and iou(np.array(found.box), np.array(true), inclusive=True).max() >= 0.5
                hit.append(bool(right))
                tags.append(clip.tag)
                named.append(found.tag == clip.tag)
        probability, present, box, right = (np.array(part) for part in (presence, there, boxed, hit))
        of_tag = [(np.array(tags) == tag) & present for tag in run.catalogue.tags]
        print(
            f"{smooth}, tag {'given' if told else 'not given'}: average precision "
            f"{average_precision(-probability, ~present):.3f}, error {calibration_error(probability, present):.3f}"
            + ("" if told else f", class right {100 * np.array(named)[present].mean():.1f} %")
        )
        for bound in (0.1, 0.25, 0.5):
            shown = probability >= bound
            before, after = (100 * np.mean([one[tag].mean() for tag in of_tag]) for one in (right, right & shown))
            print(
                f"  --presence {bound}: boxes per empty frame {box[~present].mean():.2f} → "
                f"{(box & shown)[~present].mean():.2f} ({(~present).sum()} frames); hidden "
                f"{100 * (box & ~shown)[present].mean():.1f} % of the others, CorLoc {before:.1f} → {after:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("boxes", type=Path)
    parser.add_argument("split", nargs="?", default="test")
    arguments = parser.parse_args()
    main(arguments.run, arguments.boxes, arguments.split)

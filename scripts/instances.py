"""Measure ``--instances`` on videos with several objects: python scripts/instances.py RUN OUT [OBJECTS].

Makes 36 test videos of the demo world (seed 1) in OUT, each with two objects of the class; the run was trained on
videos with one object. Localises objects with and without tracks, and prints the share of the true boxes that are
found. The boxes stay in OUT as CSV files for ``colocam score``.
"""

import argparse
import csv
from pathlib import Path

from colocam import Localizer
from colocam.data.catalogue import read_catalogue
from colocam.evaluation.prediction_evaluation import evaluate_predictions
from colocam.demo.world import make_world
from colocam.report.console import print_predictions


def main(run: Path, out: Path, objects: int = 2) -> None:
    """Print the evaluation for each way of smoothing."""
    world = make_world(out, seed=1, videos_per_class=(0, 0, 6), objects=objects)
    clips = read_catalogue(world.manifest).clips
    for smooth, threshold in (("none", None), ("offline", None), ("offline", 0.5)):
        localizer = Localizer.load(run, "cpu", instances=True, smooth=smooth, threshold=threshold)
        table = out / f"boxes-{run.name}-{smooth}-{localizer.threshold:.2f}.csv"
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("clip", "frame", "x1", "y1", "x2", "y2", "class", "score"))
            for clip in clips:
                for found in localizer(clip.path):
                    box = found.box or ("",) * 4
                    writer.writerow((clip.name, found.frame, *box, found.tag, found.score))
        print(f"--instances --smooth {smooth} --threshold {localizer.threshold:.2f}")
        print_predictions(evaluate_predictions(table, world.truth, manifest=world.manifest))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("objects", type=int, nargs="?", default=2)
    arguments = parser.parse_args()
    main(arguments.run, arguments.out, arguments.objects)

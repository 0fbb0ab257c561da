"""Boxes of clicks on the page against true boxes: ``python -m lab.clicks DATA --split val``.

A click is made at the middle of the true box, or at a random point in it. Where the box overlaps the true one too
little, a second click adds the widest strip that is missing, or takes away the widest one that is too much; after
:data:`MOST` clicks a person would drag the box.
"""

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image as PillowImage

from colocam.boxes.iou import iou
from colocam.cli.ready_models import find_model
from colocam.inference.localizer import Localizer
from colocam.segment import load_segmenter
from colocam.serve.clicks import Click, box_in_map, box_of_segmenter, embed
from colocam.serve.video_data import small_levels
from colocam.types import Float64Array, Image, Levels

ENOUGH = 0.7
"""IoU from which a person would keep a box."""
MOST = 3
BoxOf = Callable[[Sequence[Click]], Float64Array]


def frames_of(
    root: Path, split: str, localizer: Localizer, count: int, seed: int
) -> list[tuple[Image, Levels, Float64Array]]:
    """A random frame of each of ``count`` random shots: image, map as the page has it, and largest box."""
    boxes: dict[Path, list[list[float]]] = defaultdict(list)
    tags: dict[Path, str] = {}
    with (root / "manifest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["split"] == split and row["x1"]:
                path = root / row["frame"]
                boxes[path].append([float(row[side]) for side in ("x1", "y1", "x2", "y2")])
                tags[path.parent] = row["class"]
    random, found = np.random.default_rng(seed), []
    shots = sorted(tags)
    for at in random.permutation(len(shots))[:count].tolist():
        files = sorted(shots[at].glob("*.jpg"))
        path = files[random.choice([place for place, one in enumerate(files) if one in boxes])]
        known = localizer.with_options(tag=tags[shots[at]])
        levels = next(
            small_levels(one.heatmap) for file, one in zip(files, known(shots[at]), strict=True) if file == path
        )
        image = np.asarray(PillowImage.open(path).convert("RGB"))
        box = max(boxes[path], key=lambda one: (one[2] - one[0]) * (one[3] - one[1]))
        found.append((image, levels, np.array(box)))
    return found


def next_click(box: Float64Array, truth: Float64Array) -> Click:
    """A click in the middle of the widest strip of the true box that is missing, or of the box that is too much."""
    strips = []
    for side, (low, high) in enumerate(((0, 2), (1, 3))):
        for end in (low, high):
            outer, inner = sorted([box[end], truth[end]])
            missing = (truth[end] < box[end]) == (end == low)
            middle = np.array([(truth[0] + truth[2]) / 2, (truth[1] + truth[3]) / 2])
            middle[side] = (outer + inner) / 2 if missing else truth[end]
            strips.append((inner - outer, Click(float(middle[0]), float(middle[1]), bool(missing))))
    return max(strips, key=lambda one: one[0])[1]


def clicks_needed(box_of: BoxOf, truth: Float64Array, first: Click) -> int:
    """Clicks until the box is good enough; 0: it never is."""
    clicks = [first]
    for number in range(1, MOST + 1):
        box = box_of(clicks)
        if iou(box, truth) >= ENOUGH:
            return number
        clicks.append(next_click(box, truth))
    return 0


def main() -> None:
    """Print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder with manifest.csv")
    parser.add_argument("--split", default="val")
    parser.add_argument("--model", default="youtube-objects-lite0")
    parser.add_argument("--looks", type=int, help="default: as the model says")
    parser.add_argument("--segmenter", type=Path)
    parser.add_argument("--frames", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    localizer = Localizer.load(find_model(arguments.model), looks=arguments.looks)
    segmenter = None if arguments.segmenter is None else load_segmenter(arguments.segmenter, "cpu")
    frames = frames_of(arguments.data, arguments.split, localizer, arguments.frames, arguments.seed)
    random = np.random.default_rng(arguments.seed)
    overlaps: dict[str, list[float]] = {"middle": [], "random": []}
    needed, seconds = [], []
    for image, levels, truth in frames:
        height, width = image.shape[:2]
        if segmenter is None:
            box_of: BoxOf = partial(box_in_map, levels, width=width, height=height)
        else:
            box_of = partial(box_of_segmenter, segmenter, embed(segmenter, image), image, levels)
        middle = Click(float(truth[0] + truth[2]) / 2, float(truth[1] + truth[3]) / 2)
        begun = time.process_time()
        overlaps["middle"].append(float(iou(box_of([middle]), truth)))
        seconds.append(time.process_time() - begun)
        x, y = random.uniform(truth[:2], truth[2:]).tolist()
        overlaps["random"].append(float(iou(box_of([Click(x, y)]), truth)))
        needed.append(clicks_needed(box_of, truth, middle))
    for place, values in overlaps.items():
        print(
            f"{place}: median IoU {np.median(values):.3f}, at least {ENOUGH}: {np.mean(np.array(values) >= ENOUGH):.0%}"
        )
    counts = {number: needed.count(number) for number in (*range(1, MOST + 1), 0)}
    print(
        f"{len(frames)} boxes; clicks needed (0: to be dragged): {counts}; "
        f"CPU time of a click {1000 * np.median(seconds):.0f} ms"
    )


if __name__ == "__main__":
    main()

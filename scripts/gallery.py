"""Make the README's image from an evaluated run: python scripts/gallery.py RUN OUT.jpg.

One row of frames per class: the typical case that the evaluation selects by a rule. No frame is selected by hand.
"""

import argparse
import json
from pathlib import Path

import cv2
import numpy as np

from colocam.evaluation.result import method_title, ordered_methods
from colocam.types import Box
from colocam.video.drawing import draw_localization

SIDE = 192
GAP = 6


def main(run: Path, out: Path) -> None:
    """Columns: frame with true box, then each method's heat-map with its box; two classes side by side."""
    cases = np.load(run / "cases.npz", allow_pickle=False)
    meta = json.loads(str(cases["meta"]))
    methods = ordered_methods([key.removeprefix("boxes__") for key in cases.files if key.startswith("boxes__")])
    rows = []
    for i, case in enumerate(meta):
        if case["group"] != "typical":
            continue
        image = cv2.resize(cases["images"][i], (SIDE, SIDE), interpolation=cv2.INTER_CUBIC)
        scale = SIDE / cases["images"].shape[1]
        truth = [Box(*(row * scale)) for row in cases["truth"][i] if not np.isnan(row).any()]
        tiles = [draw_localization(image, truth=truth, label=(case["tag"],))]
        for method in methods:
            row = cases[f"boxes__{method}"][i] * scale
            box = None if np.isnan(row).any() else Box(*row)
            heat = cases[f"heatmaps__{method}"][i].astype(np.float32) / 255
            tiles.append(draw_localization(image, heat, box, truth=truth, label=(method_title(method),)))
        rows.append(_join(tiles, axis=1))
    half = -(-len(rows) // 2)
    columns = [_join(rows[:half], axis=0), _join(rows[half:], axis=0)]
    height = max(column.shape[0] for column in columns)
    columns = [np.pad(c, ((0, height - c.shape[0]), (0, 0), (0, 0)), constant_values=255) for c in columns]
    picture = _join(columns, axis=1, gap=3 * GAP)
    cv2.imwrite(str(out), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 88])


def _join(pictures: list[np.ndarray], axis: int, gap: int = GAP) -> np.ndarray:
    shape = list(pictures[0].shape)
    shape[axis] = gap
    white = np.full(shape, 255, np.uint8)
    parts = [part for picture in pictures for part in (picture, white)][:-1]
    return np.concatenate(parts, axis=axis)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    main(arguments.run, arguments.out)

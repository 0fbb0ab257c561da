"""Draw one box per frame without any tag or training, for ``colocam score``: python scripts/rivals.py FRAMES -o BOXES.

FRAMES is a folder of ``colocam index`` or a table of frames with boxes. Frames that have a true box are processed; the
box itself is not used. One of two rivals:

--saliency NET.onnx    A salient-object network such as U²-Net. Its map, stretched to 0–1 as its authors do, is cut at
                       --threshold; the box is that of the largest contour.
--segmenter WEIGHTS    A promptable segmenter such as MobileSAM, prompted with a grid of points. Of all masks it takes
                       the one with the highest quality · stability · area^½ · 0.3^s, s being the number of sides of the
                       frame that it touches: a large one that is certain and is not the background.
"""

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch

from colocam.boxes import largest_boxes, scale_boxes
from colocam.data.frame_cache import clip_frames
from colocam.evaluation.dense import read_shots
from colocam.segment import load_segmenter
from colocam.segment.refine import Square, extents, squares, to_host
from colocam.segment.segmenter import PADDING, POINT, Array, Prompts, Segmenter
from colocam.types import Float64Array, Image, Split
from colocam.utils.files import atomic_path
from colocam.utils.onnx_session import open_session

MEAN, STD = np.array([123.675, 116.28, 103.53], np.float32), np.array([58.395, 57.12, 57.375], np.float32)
MARGIN = 1.0
"""A mask's stability: the IoU of its parts above this logit and above minus this logit, as SAM's authors define it."""
SIDE = 0.3
"""Factor of the score for each side of the frame that a mask touches."""
AREA_POWER = 0.5
BATCH = 16

Drawer = Callable[[Sequence[Image]], Float64Array]
"""Frames (H, W, 3) → boxes (B, 4) x1, y1, x2, y2 in their pixels; 0, 0, 0, 0 for none."""


class LabelledImage(NamedTuple):
    """A frame that has a true box."""

    clip: str
    frame: int
    image: Image


def labelled_images(source: Path, split: Split | None) -> Iterator[LabelledImage]:
    """The frames of a data set that have a true box."""
    clips, truth = read_shots(source, split)
    for clip in clips:
        for frame in clip_frames(clip):
            if truth.boxes(clip.name, frame.index):
                yield LabelledImage(clip.name, frame.index, frame.image)


def salient_objects(network: Path, threshold: float) -> Drawer:
    """Boxes of a salient-object network's maps (1, 1, s, s) of frames (1, 3, s, s)."""
    session = open_session(network, f"the salient-object network {network}")
    given = session.get_inputs()[0]
    side = given.shape[-1]

    def draw(images: Sequence[Image]) -> Float64Array:
        boxes = []
        for image in images:
            values = (cv2.resize(image, (side, side), interpolation=cv2.INTER_LINEAR) - MEAN) / STD
            found = session.run(None, {given.name: values.transpose(2, 0, 1)[None]})[0][0]
            stretched = (found - found.min()) / max(found.max() - found.min(), 1e-6)
            boxes.append(scale_boxes(largest_boxes(stretched, threshold)[0][0], (side, side), image.shape[1::-1]))
        return np.array(boxes, np.float64)

    return draw


def certain_masks(segmenter: Segmenter, grid: int) -> Drawer:
    """Boxes of the best mask among those for ``grid`` × ``grid`` points of each frame."""

    def draw(images: Sequence[Image]) -> Float64Array:
        square = squares(images, segmenter.side)
        embedded = segmenter.embed(square.images)
        scores, boxes = zip(
            *(_score(*segmenter.masks(embedded, row), square) for row in _rows_of_points(square, grid)), strict=True
        )
        best = np.concatenate(scores, 1).argmax(1)
        chosen: Float64Array = np.concatenate(boxes, 1)[np.arange(len(images)), best]
        return chosen

    return draw


def _rows_of_points(square: Square, grid: int) -> Iterator[Prompts]:
    """The points of a grid over each frame, one row of the grid after the other: fewer masks are in memory."""
    steps = (np.arange(grid) + 0.5) / grid
    labels = np.tile(np.array([POINT, PADDING]), (len(square.images), grid, 1))
    for y in steps:
        points = np.zeros((len(square.images), grid, 2, 2), np.float32)
        points[:, :, 0] = np.stack([steps, np.full(grid, y)], -1) * square.inside[:, None] - 0.5
        yield Prompts(points, labels)


def _score(logits: Array, quality: Array, square: Square) -> tuple[Float64Array, Float64Array]:
    """Scores (B, n) of masks, and their boxes (B, n, 4) in pixels of the frames."""
    flat = logits.reshape(len(logits), -1, *logits.shape[-2:])
    inside = square.inside * (flat.shape[-1] / square.images.shape[1])
    frame = _cells_of_frames(inside, flat)
    areas, low, high = (
        to_host(((flat > level) & frame).sum((-2, -1))).astype(np.float64) for level in (0, -MARGIN, MARGIN)
    )
    boxes = extents((flat > 0) & frame)
    touched = (boxes[..., :2] < 1).sum(-1) + (boxes[..., 2:] > inside[:, None] - 1).sum(-1)
    certain = to_host(quality).reshape(areas.shape) * high / np.maximum(low, 1)
    scores = certain * (areas / inside.prod(1, keepdims=True)) ** AREA_POWER * SIDE**touched
    return scores, boxes * np.tile(square.sizes / inside, 2)[:, None]


def _cells_of_frames(inside: Float64Array, like: Array) -> Array:
    """(B, 1, h, w) cells of the squares that belong to the frames, where ``like`` is."""
    centres = np.arange(like.shape[-1]) + 0.5
    frame = (centres < inside[:, :1])[:, None, None] & (centres < inside[:, 1:])[:, None, :, None]
    return frame if isinstance(like, np.ndarray) else torch.from_numpy(frame).to(like.device)


def write_boxes(source: Iterator[LabelledImage], draw: Drawer, out: Path) -> None:
    """Write clip, frame and corners of each frame, and print the time that a frame took."""
    count, seconds = 0, 0.0
    with atomic_path(out) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["clip", "frame", "x1", "y1", "x2", "y2"])
        while batch := list(islice(source, BATCH)):
            began = time.perf_counter()
            boxes = draw([one.image for one in batch])
            seconds += time.perf_counter() - began
            count += len(batch)
            for one, box in zip(batch, boxes.round(2).tolist(), strict=True):
                x1, y1, x2, y2 = box
                has_area = x1 < x2 and y1 < y2  # a contour may be a line of pixels
                table.writerow([one.clip, one.frame, *(box if has_area else [""] * 4)])
    print(f"{count} frames, {1e3 * seconds / max(count, 1):.0f} ms a frame")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frames", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--split", choices=("val", "test"), help="default: both")
    rival = parser.add_mutually_exclusive_group(required=True)
    rival.add_argument("--saliency", type=Path)
    rival.add_argument("--segmenter")
    parser.add_argument("--threshold", type=float, default=0.5, help="of the salient-object map (0.5)")
    parser.add_argument("--grid", type=int, default=8, help="points along a side of the frame (8)")
    parser.add_argument("--device", help="cpu or cuda, for the segmenter; default: the GPU, if there is one")
    asked = parser.parse_args()
    drawer = (
        salient_objects(asked.saliency, asked.threshold)
        if asked.saliency
        else certain_masks(load_segmenter(asked.segmenter, asked.device), asked.grid)
    )
    write_boxes(labelled_images(asked.frames, asked.split), drawer, asked.out)

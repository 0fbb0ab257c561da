"""A glance at a model in training: one test frame of each class with heat map and box.

Tests: tests/demo/test_run_demo.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import torch

from colocam.boxes.extract import scale_boxes
from colocam.boxes.iou import iou
from colocam.boxes.quantize import tags_only_threshold
from colocam.data.batches import Samples, labeled_samples, scaled_boxes, spread_samples
from colocam.data.truth import read_truth
from colocam.evaluation.metrics.hits import RIGHT
from colocam.evaluation.run_evaluation import original_images
from colocam.maps.mapper import Mapper, map_batches, model_mapper
from colocam.models.model_file import load_model
from colocam.run import Run, open_run
from colocam.temporal.path import boxes_of_shots
from colocam.types import Box, Image
from colocam.utils.files import atomic_path, explain_os_errors
from colocam.utils.progress import say
from colocam.video.drawing import draw_localization

COLUMNS = 3
OF_A_VIDEO = 8
"""Frames of a video without true boxes, whose shot chooses the box of the one that is shown; frames that count."""
LONGEST = 384
"""Longer side of a frame in the picture, in pixels: labels need room."""
GAP = 6
QUALITY = 90


@dataclass(frozen=True)
class Glances:
    """Draws a picture after each epoch; give it to ``train`` as ``after_epoch``.

    It shows a frame of each class, tag given: the middle one of those with a true box in its first test video, or
    without true boxes the middle one of its first validation video. Green and dashed: the true box. Red: the box of the
    map, with the threshold that tags alone give.

    Attributes:
        path: the picture, a JPEG file.
        folder: the run folder, whose training is under way.
        boxes: table of true boxes; None: there is none.
        begin: phase → its first epoch (from 1) that is drawn; other phases are not.
    """

    path: Path
    folder: Path
    boxes: Path | None
    begin: Mapping[str, int]

    def __call__(self, phase: str, epoch: int, mapper: Mapper) -> None:
        """Draw, and say so the first time."""
        number = epoch + 1
        if number < self.begin.get(phase, number + 1) or not self._opened[2]:
            return
        self._draw(mapper, f"{phase}, epoch {number}")
        if number == self.begin[phase]:
            after = "before the decoder is trained" if phase == "start" else f"after epoch {number} of {phase}"
            true = "" if self.boxes is None else "; true boxes green"
            say(f"picture: {self.path} shows boxes {after} (red{true}); updated after each epoch")

    @cached_property
    def _opened(self) -> "tuple[Run, Samples, list[_Shown]]":
        """What is read once: the run, frames with a true box of the first test video of each class, and those shown."""
        run = open_run(self.folder)
        truth = None if self.boxes is None else read_truth(self.boxes)
        first = {clip.clip.tag: clip for clip in reversed(run.clips("val" if truth is None else "test"))}
        tags = run.catalogue.tags
        chosen = [first[tag] for tag in tags if tag in first]
        if truth is None:
            samples = spread_samples(chosen, tags, OF_A_VIDEO)
        else:
            samples = labeled_samples(chosen, tags, truth, present=True)
        clips, shown = samples.indices.clips.numpy(), []
        for clip in np.unique(clips):
            rows = np.flatnonzero(clips == clip)
            row = rows[len(rows) // 2]
            cached, index = samples.where()[row]
            (image,) = original_images(cached.clip, [index])
            factor = LONGEST / max(image.shape[:2])
            large = np.asarray(cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC), np.uint8)
            boxes = [] if truth is None else truth.boxes(cached.clip.name, index)
            true = [Box(*(factor * side for side in box)) for box in boxes]
            shown.append(_Shown(int(row), cached.clip.tag, large, true))
        return run, samples, shown

    def _draw(self, mapper: Mapper, note: str) -> None:
        """Write the picture; ``note`` stands on each frame, after the tag."""
        run, samples, shown = self._opened
        maps = np.concatenate(list(map_batches(mapper, samples, run.config.frames.crop, run.device)))
        threshold = tags_only_threshold(maps) if mapper.threshold is None else mapper.threshold
        corners, has_box = boxes_of_shots(maps, threshold, mapper.chooser, samples.indices.clips.numpy())
        tiles = []
        for row, tag, image, true in shown:
            in_image = scale_boxes(corners[row], maps.shape[2:0:-1], image.shape[1::-1])
            box = Box(*in_image.tolist()) if has_box[row] else None
            heat = maps[row].astype(np.float32) / 255
            tiles.append(draw_localization(image, heat, box, truth=true, label=(tag, note)))
        _, data = cv2.imencode(".jpg", _grid(tiles)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        with explain_os_errors(self.path), atomic_path(self.path) as temporary:
            temporary.write_bytes(data.tobytes())


class _Shown(NamedTuple):
    """A frame that is drawn: its row among the samples, its tag, the enlarged image, and its true boxes there."""

    row: int
    tag: str
    image: Image
    true: list[Box]


def _grid(tiles: list[Image]) -> Image:
    """Tiles in rows of ``COLUMNS``, on white; each has the room of the largest."""
    height, width = (max(tile.shape[side] for tile in tiles) + GAP for side in (0, 1))
    rows = -(-len(tiles) // COLUMNS)
    canvas = np.full((rows * height - GAP, min(len(tiles), COLUMNS) * width - GAP, 3), 255, np.uint8)
    for index, tile in enumerate(tiles):
        y, x = index // COLUMNS * height, index % COLUMNS * width
        canvas[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return canvas


class Right(NamedTuple):
    """Shares of test frames in percent, means over classes."""

    frames: int
    boxes: float
    classes: float


@torch.inference_mode()
def right_in(folder: Path, boxes: Path) -> Right:
    """How often box (tag given) and class (of single frames) are right in a few frames of each test video of a run.

    Args:
        folder: of the run.
        boxes: table of true boxes.
    """
    run, truth = open_run(folder), read_truth(boxes)
    model = load_model(run.model_folder(run.config.methods[0]))
    net, card = model.net.to(run.device).eval(), model.card
    samples = labeled_samples(run.clips("test"), card.tags, truth, OF_A_VIDEO, present=True)
    maps = np.concatenate(list(map_batches(model_mapper(model), samples, card.size, run.device)))
    corners, found = boxes_of_shots(maps, card.threshold, card.chooser, samples.indices.clips.numpy())
    true = scaled_boxes(samples, truth, maps.shape[1])
    overlaps = [float(iou(box, of_frame).max()) for box, of_frame in zip(corners, true, strict=True)]
    logits = torch.cat([net(frames).class_logits.cpu() for frames, _ in samples.batches(card.size, run.device)])
    classes = samples.classes.numpy()
    right = np.stack([found & (np.array(overlaps) >= RIGHT), logits.argmax(1).numpy() == classes])
    means = np.mean([right[:, classes == tag].mean(1) for tag in np.unique(classes)], axis=0)
    return Right(len(samples), *(100 * means).tolist())

"""A glance at a model in training: one test frame of each class with heat map and box."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from colocam.boxes.extract import scale_boxes
from colocam.boxes.quantize import tags_only_threshold
from colocam.data.batches import labelled_samples
from colocam.data.truth import read_truth
from colocam.evaluation.run_evaluation import original_images
from colocam.maps.mapper import Mapper, map_batches
from colocam.run import open_run
from colocam.temporal.path import boxes_of_shots
from colocam.types import Box, Float64Array, Image
from colocam.utils.files import atomic_path, explain_os_errors
from colocam.utils.progress import say
from colocam.video.drawing import draw_localization

COLUMNS = 3
LONGEST = 384
"""Longer side of a frame in the picture, in pixels: labels need room."""
GAP = 6
QUALITY = 90


@dataclass(frozen=True, slots=True)
class Glances:
    """Draws a picture after each epoch, see :func:`draw_glance`; give it to ``train`` as ``after_epoch``.

    Attributes:
        path: the picture.
        folder: the run folder.
        boxes: table of true boxes.
        begin: phase → its first epoch (from 1) that is drawn; other phases are not.
    """

    path: Path
    folder: Path
    boxes: Path
    begin: Mapping[str, int]

    def __call__(self, phase: str, epoch: int, mapper: Mapper) -> None:
        """Draw, and say so the first time."""
        number = epoch + 1
        if number < self.begin.get(phase, number + 1):
            return
        draw_glance(self.path, self.folder, self.boxes, mapper, f"{phase}, epoch {number}")
        if number == self.begin[phase]:
            say(
                f"picture: {self.path} shows boxes after epoch {number} of {phase} (red; true boxes green); "
                "drawn again after each epoch"
            )


def draw_glance(path: Path, folder: Path, boxes: Path, mapper: Mapper, note: str) -> None:
    """Draw frames of the test videos of a run, tag given, as a JPEG file.

    The frame of a class is the middle one of those with a true box in its first test video. Green and dashed: the true
    box. Red: the box of the map, with the threshold that tags alone give.

    Args:
        path: the file.
        folder: run folder; its training may be under way.
        boxes: table of true boxes.
        mapper: computes the maps.
        note: is written on each frame, after the tag.
    """
    run, truth = open_run(folder), read_truth(boxes)
    tags = run.catalogue.tags
    first = {clip.clip.tag: clip for clip in reversed(run.clips("test"))}
    samples = labelled_samples([first[tag] for tag in tags if tag in first], tags, truth, present=True)
    if len(samples) == 0:
        return
    maps = np.concatenate(list(map_batches(mapper, samples, run.config.frames.crop, run.device)))
    threshold = tags_only_threshold(maps) if mapper.threshold is None else mapper.threshold
    clips = samples.indices.clips.numpy()
    corners, found = boxes_of_shots(maps, threshold, mapper.chooser, clips)
    tiles = []
    for clip in np.unique(clips):
        rows = np.flatnonzero(clips == clip)
        row = rows[len(rows) // 2]
        shown, index = samples.where()[row]
        (image,) = original_images(shown.clip, [index])
        factor = LONGEST / max(image.shape[:2])
        large = np.asarray(cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC), np.uint8)
        own = scale_boxes(corners[row], maps.shape[2:0:-1], large.shape[1::-1])
        true = [_scaled(np.array(box), factor) for box in truth.boxes(shown.clip.name, index)]
        box = Box(*own.tolist()) if found[row] else None
        heat = maps[row].astype(np.float32) / 255
        tiles.append(draw_localization(large, heat, box, truth=true, label=(shown.clip.tag, note)))
    _, data = cv2.imencode(".jpg", _grid(tiles)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    with explain_os_errors(path), atomic_path(path) as temporary:
        temporary.write_bytes(data.tobytes())


def _scaled(box: Float64Array, factor: float) -> Box:
    return Box(*(box * factor).tolist())


def _grid(tiles: list[Image]) -> Image:
    """Tiles in rows of ``COLUMNS``, on white; each has the room of the largest."""
    height, width = (max(tile.shape[side] for tile in tiles) + GAP for side in (0, 1))
    rows = -(-len(tiles) // COLUMNS)
    canvas = np.full((rows * height - GAP, min(len(tiles), COLUMNS) * width - GAP, 3), 255, np.uint8)
    for index, tile in enumerate(tiles):
        y, x = index // COLUMNS * height, index % COLUMNS * width
        canvas[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return canvas

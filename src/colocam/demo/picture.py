"""The demo's picture: one test frame of each class with heat map and box, drawn again after each epoch of stage 2."""

from pathlib import Path

import cv2
import numpy as np

from colocam.data.truth import read_truth
from colocam.demo.figures import CLASSES
from colocam.demo.world import World
from colocam.inference.localizer import Localizer
from colocam.inference.torch_network import TorchNetwork
from colocam.models.model_file import Model
from colocam.types import Box, Image
from colocam.utils.device import choose_device
from colocam.utils.files import atomic_path, explain_os_errors
from colocam.video.drawing import draw_localization, label_of
from colocam.video.fence import decode

COLUMNS = 3
SCALE = 2
"""Pixels of the picture per pixel of a frame, along each side: labels need room."""
GAP = 6
QUALITY = 90


def draw_picture(path: Path, model: Model, world: World) -> None:
    """Localise in the first test video of each class, tag given, and write a frame of each to ``path``, a JPEG file.

    The frame is the middle one of those with a true box, which is drawn green and dashed.
    """
    network = TorchNetwork(model.net, choose_device(None), size=model.card.size)
    truth, tiles = read_truth(world.truth).frames, []
    for tag in CLASSES:
        clip = f"{tag}/test-00"
        labelled = [frame for frame, boxes in truth[clip].items() if boxes]
        if not labelled:
            continue
        at, localizer = labelled[len(labelled) // 2], Localizer(network, model.card, tag=tag)
        frames = localizer.stream(decode(world.videos / f"{clip}.mp4"))
        image, found = {frame.index: (frame.image, one) for frame, one in frames}[at]
        large = np.asarray(cv2.resize(image, None, fx=SCALE, fy=SCALE, interpolation=cv2.INTER_CUBIC), np.uint8)
        true = [_scaled(box) for box in truth[clip][at]]
        box = None if found.box is None else _scaled(found.box)
        tiles.append(draw_localization(large, found.heatmap, box, truth=true, label=label_of(found)))
    _, data = cv2.imencode(".jpg", _grid(tiles)[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    with explain_os_errors(path), atomic_path(path) as temporary:
        temporary.write_bytes(data.tobytes())


def _scaled(box: Box) -> Box:
    return Box(*(SCALE * side for side in box))


def _grid(tiles: list[Image]) -> Image:
    """Tiles of one size in rows of ``COLUMNS``, on white."""
    height, width = (side + GAP for side in tiles[0].shape[:2])
    rows = -(-len(tiles) // COLUMNS)
    canvas = np.full((rows * height - GAP, COLUMNS * width - GAP, 3), 255, np.uint8)
    for index, tile in enumerate(tiles):
        y, x = index // COLUMNS * height, index % COLUMNS * width
        canvas[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
    return canvas

"""Masks as PNG: a picture per listed frame whose pixels are class numbers in VOC's colours, 0 where nothing is."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.export.frame_images import write_pictures
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.export.voc import colour
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``masks/``, ``labels.txt`` (a class per line, the first is number 1) and, with images, ``images/``."""
    if not any(any(video.mask) for video in labels.videos):
        raise ColocamError("no table has masks: run 'colocam localize' with --masks")
    if len(labels.classes) > 255:
        raise ColocamError(f"a mask holds at most 255 classes, not {len(labels.classes)}: export fewer tables at once")
    palette = [channel for number in range(256) for channel in colour(number)]
    (folder / "masks").mkdir()
    for video in labels.videos:
        for frame in video.objects_of:
            picture = Image.fromarray(_mask(labels, video, frame), "P")
            picture.putpalette(palette)
            picture.save(folder / "masks" / f"{video.picture(frame)}.png")
    write_text(folder / "labels.txt", "".join(f"{tag}\n" for tag in labels.classes))
    if options.images:
        (folder / "images").mkdir()
        write_pictures(labels.videos, lambda video, frame: folder / "images" / video.picture_file(frame))


def _mask(labels: LabelSet, video: LabelledVideo, frame: int) -> npt.NDArray[np.uint8]:
    height, width = video.source.height, video.source.width
    pixels = np.zeros((height, width), np.uint8)
    for row in video.objects_of[frame]:
        if video.mask[row]:
            pixels[rle.decode(video.mask[row], height, width)] = labels.number_of[video.tag[row]] + 1
    return pixels

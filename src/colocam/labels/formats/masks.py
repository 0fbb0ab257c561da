"""Masks as PNG: one image per listed frame whose pixels are class numbers in VOC's palette, 0 for background."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.labels.formats.frame_images import write_images
from colocam.labels.formats.voc import colour
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``masks/``, ``labels.txt`` (one class per line, the first is 1) and, with images, ``images/``."""
    labels.require_masks()
    if len(labels.classes) > 255:
        raise ColocamError(f"a mask image holds at most 255 classes, got {len(labels.classes)}: export fewer tables")
    palette = [channel for index in range(256) for channel in colour(index)]
    (folder / "masks").mkdir()
    for video in labels.videos:
        for frame in video.objects_of:
            image = Image.fromarray(_mask(labels, video, frame), "P")
            image.putpalette(palette)
            image.save(folder / "masks" / f"{video.image_stem(frame)}.png")
    write_text(folder / "labels.txt", "".join(f"{tag}\n" for tag in labels.classes))
    if options.images:
        (folder / "images").mkdir()
        write_images(labels.videos, lambda video, frame: folder / "images" / video.image_name(frame))


def _mask(labels: LabelSet, video: LabelledVideo, frame: int) -> npt.NDArray[np.uint8]:
    height, width = video.source.height, video.source.width
    pixels = np.zeros((height, width), np.uint8)
    for row in video.objects_of[frame]:
        if video.rows.mask[row]:
            pixels[rle.decode(video.rows.mask[row], height, width)] = labels.class_index[video.rows.tag[row]] + 1
    return pixels

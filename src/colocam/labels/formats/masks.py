"""Masks as PNG: one image per listed frame whose pixels are class numbers in VOC's palette, 0 for background."""

from pathlib import Path

import numpy as np
from PIL import Image

from colocam.errors import ColocamError
from colocam.labels.formats.writing import colour, write_images
from colocam.labels.labelled_videos import LabelSet, Options
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``masks/``, ``labels.txt`` (one class per line, the first is 1) and, with images, ``images/``."""
    labels.require_masks()
    if len(labels.classes) > 255:
        raise ColocamError(f"a mask image holds at most 255 classes, got {len(labels.classes)}: export fewer tables")
    palette = [channel for index in range(256) for channel in colour(index)]
    (folder / "masks").mkdir()
    for video in labels.videos:
        for frame, rows in video.objects_of.items():
            pixels = np.zeros((video.source.height, video.source.width), np.uint8)
            for row in rows:
                if (mask := video.mask(row)) is not None:
                    pixels[mask] = labels.class_index[video.rows.tag[row]] + 1
            image = Image.fromarray(pixels, "P")
            image.putpalette(palette)
            image.save(folder / "masks" / f"{video.image_stem(frame)}.png")
    write_text(folder / "labels.txt", "".join(f"{tag}\n" for tag in labels.classes))
    write_images(labels, options, lambda video, frame: folder / "images" / video.image_name(frame))

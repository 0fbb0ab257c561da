"""Pascal VOC: one XML file per image; one without an object says that the image shows none.

As the VOC standard defines it, corners are whole pixels, the first pixel of the image is 1, and both corners belong to
the box: a box over the whole of an image of 97×71 is 1, 1, 97, 71. VOC's own toolkit and supervision read
it so. CVAT and Datumaro read the corners as edges that count from 0: they show the upper left corner one pixel too far
to the right and down. For these two tools export to ``cvat`` or ``coco``. They write such edges, too, with a decimal
point: if any corner in a folder has one, or is 0, all are read so.

Masks are PNG images whose pixels are class numbers in VOC's palette, 0 for background, one for each listed frame.

Tests: tests/labels/test_yolo_and_voc.py, tests/labels/test_from_images.py.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from PIL import Image

from colocam.errors import ColocamError
from colocam.labels.formats.reading import (
    ImageLabel,
    LabeledImage,
    corners_of,
    files_of,
    parse_xml,
    read_label_text,
    size_of,
    videos_of_images,
)
from colocam.labels.formats.writing import color, write_images, xml_of
from colocam.labels.imported_videos import ImportedVideo
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options
from colocam.types import Box
from colocam.utils.files import write_text

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``Annotations/``, ``ImageSets/Main/``, ``labelmap.txt`` and, with images, ``JPEGImages/``."""
    annotations, sets = folder / "Annotations", folder / "ImageSets" / "Main"
    annotations.mkdir()
    sets.mkdir(parents=True)
    for split, videos in labels.splits(options.split).items():
        with (sets / f"{split}.txt").open("w", encoding="utf-8") as listed:
            for video in videos:
                for frame, rows in video.objects_of.items():
                    tree = ET.ElementTree(_annotation(video, frame, rows))
                    ET.indent(tree)
                    tree.write(annotations / f"{video.image_stem(frame)}.xml", encoding="utf-8")
                    listed.write(f"{video.image_stem(frame)}\n")
    write_text(folder / "labelmap.txt", _labelmap(labels))
    write_images(labels, options, lambda video, frame: folder / "JPEGImages" / video.image_name(frame))


def _annotation(video: LabeledVideo, frame: int, rows: list[int]) -> ET.Element:
    state = {"pose": "Unspecified", "truncated": 0, "difficult": 0, "occluded": 0}
    content: dict[str, Any] = {
        "folder": "JPEGImages",
        "filename": video.image_name(frame),
        "source": {"database": video.source.file},
        "size": {"width": video.source.width, "height": video.source.height, "depth": 3},
        "segmented": 0,
        "object": [{"name": video.rows.tag[row], **state, "bndbox": _whole_pixels(video, row)} for row in rows],
    }
    return xml_of("annotation", content)


def _whole_pixels(video: LabeledVideo, row: int) -> dict[str, int]:
    """First and last pixel of a box on both axes, from 1."""
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    (left, right), (top, bottom) = _span(x1, x2), _span(y1, y2)
    return dict(zip(CORNERS, (left, top, right, bottom), strict=True))


def _span(first: float, last: float) -> tuple[int, int]:
    """Pixels between the whole numbers nearest to two edges; if there is none, the pixel in the middle."""
    start, end = round(first) + 1, round(last)
    middle = int((first + last) / 2) + 1
    return (start, end) if start <= end else (middle, middle)


def _labelmap(labels: LabelSet) -> str:
    """Classes and their colors; without this file importers accept only the twenty classes of VOC."""
    if wrong := [tag for tag in labels.classes if ":" in tag]:
        raise ColocamError(f"VOC's labelmap.txt cannot hold the class {wrong[0]!r}: remove the colon in the table")
    lines = ["# label:color_rgb:parts:actions", "background:0,0,0::"]
    lines += [f"{tag}:{','.join(map(str, color(i)))}::" for i, tag in enumerate(labels.classes, start=1)]
    return "\n".join(lines) + "\n"


def write_masks(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``masks/``, ``labels.txt`` (one class per line, the first is 1) and, with images, ``images/``."""
    labels.require_masks()
    if len(labels.classes) > 255:
        raise ColocamError(f"a mask image holds at most 255 classes, got {len(labels.classes)}: export fewer tables")
    palette = [channel for index in range(256) for channel in color(index)]
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


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read an XML file, or all XML files of a folder and its folders."""
    images, whole = [], True
    for file in files_of(path, ".xml"):
        root = parse_xml(read_label_text(file), file)
        if root.tag != "annotation":
            raise ColocamError(f"{file}: not Pascal VOC (its root is <{root.tag}>): is it in a different format?")
        texts = [(element.text or "").strip() for name in CORNERS for element in root.iter(name)]
        whole &= not any("." in text or text == "0" for text in texts)
        labels = [_label(file, one) for one in root.iterfind("object")]
        size = size_of(file, root.findtext("size/width"), root.findtext("size/height"))
        images.append(LabeledImage(root.findtext("filename") or file.name, labels, size))
    if whole:  # pixels that count from 1 and belong to the box
        for at, image in enumerate(images):
            edges = [ImageLabel(tag, Box(box.x1 - 1, box.y1 - 1, box.x2, box.y2)) for tag, box, _ in image.labels]
            images[at] = replace(image, labels=edges)
    return videos_of_images(images, known, left_out)


def _label(file: Path, element: ET.Element) -> ImageLabel:
    tag = element.findtext("name", "").strip()
    if not tag:
        raise ColocamError(f"{file}: an object has no name: give its class")
    corners = [element.findtext(f"bndbox/{name}", "").strip() for name in CORNERS]
    return ImageLabel(tag, corners_of(file, corners))

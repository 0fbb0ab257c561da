"""Pascal VOC: a folder of XML files, one per image; one without an object says that the image shows none.

As the standard defines it, corners are whole pixels that count from 1 and belong to the box. CVAT and Datumaro write
edges that count from 0, with a decimal point: if any corner in the folder has one, or is 0, all are read so.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from colocam.corrections.image_frames import LabelledImage, videos_of_images
from colocam.corrections.imported import ImportedVideo, LeftOut
from colocam.corrections.label_files import corners_of, files_of, parse_xml, whole_number
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Box

CORNERS = ("xmin", "ymin", "xmax", "ymax")


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read an XML file, or all XML files of a folder and its folders."""
    images, whole = [], True
    for file in files_of(path, ".xml"):
        root = parse_xml(file)
        if root.tag != "annotation":
            raise ColocamError(f"{file}: not Pascal VOC (its root is <{root.tag}>): is it of another format?")
        texts = [_text(element) for name in CORNERS for element in root.iter(name)]
        whole &= not any("." in text or text == "0" for text in texts)
        width, height = (whole_number(file, name, root.findtext(f"size/{name}")) for name in ("width", "height"))
        labels = [_label(file, one) for one in root.iterfind("object")]
        size = (width, height) if width and height else None
        images.append(LabelledImage(root.findtext("filename") or file.name, labels, size))
    if whole:
        images = [replace(image, labels=[(tag, _from_one(box)) for tag, box in image.labels]) for image in images]
    return videos_of_images(images, known, left_out)


def _label(file: Path, one: ET.Element) -> tuple[str, Box]:
    tag = (one.findtext("name") or "").strip()
    if not tag:
        raise ColocamError(f"{file}: an object has no name: give its class")
    return tag, corners_of(file, [_text(one.find(f"bndbox/{name}")) for name in CORNERS])


def _from_one(box: Box) -> Box:
    """Edges that count from 0, of whole pixels that count from 1 and belong to the box."""
    return Box(box.x1 - 1, box.y1 - 1, box.x2, box.y2)


def _text(element: ET.Element | None) -> str:
    return "" if element is None else (element.text or "").strip()

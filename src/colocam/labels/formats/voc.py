"""Pascal VOC: one XML file per image.

As the VOC standard defines it, corners are whole pixels, the first pixel of the image is 1, and both corners belong to
the box: a box over the whole of an image of 97×71 is 1, 1, 97, 71. VOC's own toolkit and supervision read
it so. CVAT and Datumaro read the corners as edges that count from 0: they show the upper left corner one pixel too far
to the right and down. For these two tools export to ``cvat`` or ``coco``.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from colocam.errors import ColocamError
from colocam.labels.formats.frame_images import LabelledImage, videos_of_images, write_images
from colocam.labels.imported import ImportedVideo, LeftOut
from colocam.labels.label_files import corners_of, files_of, parse_xml, whole_number
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options
from colocam.types import Box
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``Annotations/``, ``ImageSets/Main/``, ``labelmap.txt`` and, with images, ``JPEGImages/``."""
    annotations, sets = folder / "Annotations", folder / "ImageSets" / "Main"
    annotations.mkdir()
    sets.mkdir(parents=True)
    for split, videos in labels.splits().items():
        with (sets / f"{split}.txt").open("w", encoding="utf-8") as listed:
            for video in videos:
                for frame in video.objects_of:
                    tree = ET.ElementTree(_annotation(video, frame))
                    ET.indent(tree)
                    tree.write(annotations / f"{video.image_stem(frame)}.xml", encoding="utf-8")
                    listed.write(f"{video.image_stem(frame)}\n")
    write_text(folder / "labelmap.txt", _labelmap(labels))
    if options.images:
        (folder / "JPEGImages").mkdir()
        write_images(labels.videos, lambda video, frame: folder / "JPEGImages" / video.image_name(frame))


def _annotation(video: LabelledVideo, frame: int) -> ET.Element:
    root = ET.Element("annotation")
    _add(root, "folder", "JPEGImages")
    _add(root, "filename", video.image_name(frame))
    _add(ET.SubElement(root, "source"), "database", video.source.file)
    size = ET.SubElement(root, "size")
    for name, pixels in (("width", video.source.width), ("height", video.source.height), ("depth", 3)):
        _add(size, name, pixels)
    _add(root, "segmented", 0)
    for row in video.objects_of[frame]:
        one = ET.SubElement(root, "object")
        _add(one, "name", video.rows.tag[row])
        for name, value in (("pose", "Unspecified"), ("truncated", 0), ("difficult", 0), ("occluded", 0)):
            _add(one, name, value)
        box = ET.SubElement(one, "bndbox")
        for name, corner in zip(("xmin", "ymin", "xmax", "ymax"), whole_pixels(video, row), strict=True):
            _add(box, name, corner)
    return root


def whole_pixels(video: LabelledVideo, row: int) -> tuple[int, int, int, int]:
    """First and last pixel of a box on both axes, from 1."""
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    (left, right), (top, bottom) = _span(x1, x2), _span(y1, y2)
    return left, top, right, bottom


def _span(first: float, last: float) -> tuple[int, int]:
    """Pixels between the whole numbers nearest to two edges; if there is none, the pixel in the middle."""
    start, end = round(first) + 1, round(last)
    middle = int((first + last) / 2) + 1
    return (start, end) if start <= end else (middle, middle)


def _add(parent: ET.Element, name: str, value: object) -> None:
    ET.SubElement(parent, name).text = str(value)


def _labelmap(labels: LabelSet) -> str:
    """Classes and their colours; without this file importers accept only the twenty classes of VOC."""
    if wrong := [tag for tag in labels.classes if ":" in tag]:
        raise ColocamError(f"VOC's labelmap.txt cannot hold the class {wrong[0]!r}: remove the colon in the table")
    lines = ["# label:color_rgb:parts:actions", "background:0,0,0::"]
    lines += [f"{tag}:{','.join(map(str, colour(i)))}::" for i, tag in enumerate(labels.classes, start=1)]
    return "\n".join(lines) + "\n"


def colour(index: int) -> tuple[int, int, int]:
    """Colour of a class in VOC's palette: the bits of its index spread over the high bits of red, green and blue."""
    channels = [0, 0, 0]
    for bit in range(8):
        for channel in range(3):
            channels[channel] |= (index >> (3 * bit + channel) & 1) << (7 - bit)
    return channels[0], channels[1], channels[2]


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

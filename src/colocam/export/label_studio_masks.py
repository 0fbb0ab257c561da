"""Label Studio with masks: one task per image with its masks as predictions of a brush.

Label Studio has no masks in videos, so the listed frames of a video become images. A brush's mask is the image's RGBA
pixels, packed as runs: 32 bits for the number of bytes, 5 and four times 4 bits for the sizes of words and counts, then
for each run a 1, the index of the count's size, the count − 1, and the byte.
"""

from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ArgumentError
from colocam.export.frame_images import write_images
from colocam.export.label_studio import image_region, label_elements, rectangle
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.utils.files import stream_json, write_text

LONGEST = 2**16
"""Most bytes of one run, whose count then takes 16 bits."""


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``tasks.json``, ``config.xml`` and, with images, ``images/``; a box without a mask stays a rectangle."""
    labels.require_masks()
    films = [video.name for video in labels.videos if not video.source.pictures]
    if films and not options.images:
        raise ArgumentError("images", f"must be written: Label Studio has no masks in videos, and {films[0]} is one")
    write_text(folder / "config.xml", _configuration(labels))
    frames = ((video, frame, rows) for video in labels.videos for frame, rows in video.objects_of.items())
    stream_json(folder / "tasks.json", (_task(*one, options) for one in frames))
    if options.images:
        (folder / "images").mkdir()
        write_images(labels.videos, lambda video, frame: folder / "images" / video.image_name(frame))


def _configuration(labels: LabelSet) -> str:
    view = ET.Element("View")
    for kind, name in (("BrushLabels", "mask"), ("RectangleLabels", "box")):
        ET.SubElement(view, kind, name=name, toName="image").extend(label_elements(labels))
    ET.SubElement(view, "Image", name="image", value="$image")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _task(video: LabelledVideo, frame: int, rows: list[int], options: Options) -> dict[str, Any]:
    own = f"{video.source.file}/{video.source.pictures[frame]}" if video.source.pictures else ""
    name = f"images/{video.image_name(frame)}" if options.images else own
    regions = [_brush(video, row) if video.rows.mask[row] else rectangle(video, row) for row in rows]
    prediction = {"model_version": "colocam", "result": regions}
    return {"data": {"image": options.url + quote(name)}, "predictions": [prediction]}


def _brush(video: LabelledVideo, row: int) -> dict[str, Any]:
    mask = rle.decode(video.rows.mask[row], video.source.height, video.source.width)
    value = {"format": "rle", "rle": packed(mask), "brushlabels": [video.rows.tag[row]]}
    return image_region(video, row, "mask", "brushlabels", value)


def packed(mask: npt.NDArray[np.bool_]) -> list[int]:
    """Bytes of a mask (H, W), see above; pixels of the mask are 255 in all four channels."""
    counts = 4 * rle.runs(mask.ravel())
    values = np.where(np.arange(len(counts)) % 2, 255, 0)
    pieces = -(-counts // LONGEST)  # a long run is several
    starts = np.repeat(np.cumsum(pieces) - pieces, pieces)
    left = np.repeat(counts, pieces) - (np.arange(len(starts)) - starts) * LONGEST
    lengths, values = np.minimum(left, LONGEST), np.repeat(values, pieces)
    header = _bits(np.array([4 * mask.size]), 32), _bits(np.array([7]), 5), _bits(np.array([2, 3, 7, 15]), 4)
    flags = np.full(len(lengths), 0b111)  # a run, whose count has the last of the four sizes
    body = np.concatenate([_bits(flags, 3), _bits(lengths - 1, 16), _bits(values, 8)], axis=1)
    bits = np.concatenate([part.ravel() for part in (*header, body)])
    found: list[int] = np.packbits(bits.astype(np.uint8)).tolist()
    return found


def _bits(numbers: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """(n, count) bits of numbers (n,), the highest first."""
    return (numbers[:, None] >> np.arange(count - 1, -1, -1)) & 1

"""YOLO: one text file per image, with a line for each object and numbers as shares of the image's size.

A line is ``class cx cy w h`` for a box, ``class x1 y1 x2 y2 …`` for the outline of a mask.

``data.yaml`` names lists of images; the labels of ``images/train/a.jpg`` are in ``labels/train/a.txt``.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from colocam.boxes import rle
from colocam.export.frame_images import write_images
from colocam.export.labels import LabelledVideo, LabelSet, Options
from colocam.export.polygons import polygon_of
from colocam.utils.files import write_text


def write(labels: LabelSet, folder: Path, options: Options) -> None:
    """Write ``data.yaml``, ``train.txt``, ``val.txt``, ``labels/`` and, with images, ``images/``.

    A single video serves for both training and validation.
    """
    _write(labels, folder, options, _box)


def write_segments(labels: LabelSet, folder: Path, options: Options) -> None:
    """The same with the outlines of masks; a box without a mask is its own outline."""
    labels.require_masks()
    _write(labels, folder, options, _segment)


def _write(
    labels: LabelSet, folder: Path, options: Options, shape: Callable[[LabelledVideo, int], list[float]]
) -> None:
    lists: dict[str, str] = {}
    split_of: dict[str, str] = {}
    for split, videos in labels.splits().items():
        if not videos:
            continue
        texts = folder / "labels" / split
        texts.mkdir(parents=True)
        with (folder / f"{split}.txt").open("w", encoding="utf-8") as listed:
            for video in videos:
                split_of[video.name] = split
                for frame in video.objects_of:
                    listed.write(f"./images/{split}/{video.image_name(frame)}\n")
                    text = _lines(labels, video, frame, shape)
                    (texts / f"{video.image_stem(frame)}.txt").write_text(text, encoding="utf-8")
        lists[split] = f"{split}.txt"
        if options.images:
            (folder / "images" / split).mkdir(parents=True)
    if options.images:
        images = folder / "images"
        write_images(labels.videos, lambda video, frame: images / split_of[video.name] / video.image_name(frame))
    data = {"train": lists["train"], "val": lists.get("val", lists["train"]), "names": dict(enumerate(labels.classes))}
    write_text(folder / "data.yaml", yaml.safe_dump(data, allow_unicode=True, sort_keys=False))


def _lines(
    labels: LabelSet, video: LabelledVideo, frame: int, shape: Callable[[LabelledVideo, int], list[float]]
) -> str:
    lines = []
    for row in video.objects_of[frame]:
        words = [str(labels.class_index[video.rows.tag[row]]), *(f"{share:.8f}" for share in shape(video, row))]
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def _box(video: LabelledVideo, row: int) -> list[float]:
    width, height = video.source.width, video.source.height
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    return [(x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height]


def _segment(video: LabelledVideo, row: int) -> list[float]:
    width, height = video.source.width, video.source.height
    if video.rows.mask[row]:
        points = polygon_of(rle.decode(video.rows.mask[row], height, width))
    else:
        x1, y1, x2, y2 = video.rows.box[row].tolist()
        points = np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]])
    shares: list[float] = (points / (width, height)).ravel().tolist()
    return shares

"""YOLO: one text file per image, with a line for each object and numbers as shares of the image's size.

A line is ``class cx cy w h`` for a box, ``class x1 y1 x2 y2 …`` for the outline of a mask.

``data.yaml`` names lists of images; the labels of ``images/train/a.jpg`` are in ``labels/train/a.txt``.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import yaml

from colocam.boxes import rle
from colocam.config.loading import parse_value
from colocam.errors import ColocamError
from colocam.labels.formats.frame_images import LabelledImage, videos_of_images, write_images
from colocam.labels.formats.shapes import polygon_of
from colocam.labels.imported import ImportedVideo, LeftOut
from colocam.labels.label_files import corners_of, files_of, finite_number, read_label_text, whole_number
from colocam.labels.labelled_videos import LabelledVideo, LabelSet, Options
from colocam.types import Box
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


LISTS = frozenset({"train.txt", "val.txt", "valid.txt", "test.txt", "classes.txt", "labels.txt"})
"""Text files that hold no labels."""


def read(path: Path, known: Sequence[LabelledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read the label files of a folder and its folders."""
    if not path.is_dir():
        raise ColocamError(f"{path}: YOLO labels are a folder with data.yaml or classes.txt: give the folder")
    names = _names(path)
    images = []
    for file in files_of(path, ".txt"):
        if file.name.lower() not in LISTS:
            labels = [_label(file, line.split(), names) for line in read_label_text(file).splitlines() if line.split()]
            images.append(LabelledImage(file.name, labels))
    return videos_of_images(images, known, left_out, relative=True)


def _names(folder: Path) -> dict[int, str]:
    """Names of the classes by index."""
    for name in ("data.yaml", "dataset.yaml", "data.yml"):
        for file in sorted(folder.rglob(name)):
            content = parse_value(read_label_text(file), str(file))
            names = content.get("names") if isinstance(content, dict) else None
            if isinstance(names, list):
                return {index: str(name) for index, name in enumerate(names)}
            if isinstance(names, dict):
                return {whole_number(file, "names", index) or 0: str(name) for index, name in names.items()}
    for name in ("classes.txt", "obj.names"):
        for file in sorted(folder.rglob(name)):
            return dict(enumerate(line.strip() for line in read_label_text(file).splitlines() if line.strip()))
    raise ColocamError(f"{folder}: no data.yaml, classes.txt or obj.names, so the classes have no names: add one")


def _label(file: Path, words: list[str], names: dict[int, str]) -> tuple[str, Box]:
    index = whole_number(file, "the class", words[0])
    if index is None or index not in names:
        raise ColocamError(f"{file}: class {words[0][:40]!r} has no name: add it to data.yaml or classes.txt")
    numbers = [finite_number(file, "a share of the image's size", word) for word in words[1:]]
    if len(numbers) in {4, 5}:
        x, y, width, height = numbers[:4]
        return names[index], corners_of(file, (x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    if len(numbers) < 6 or len(numbers) % 2:
        raise ColocamError(f"{file}: a line has a class and 4 numbers, or an outline, got {len(numbers)} numbers")
    return names[index], corners_of(
        file, (min(numbers[::2]), min(numbers[1::2]), max(numbers[::2]), max(numbers[1::2]))
    )

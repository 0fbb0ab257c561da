"""YOLO: one text file per image, with a line for each object; an empty one says that the image shows no object.

A line is ``class cx cy w h`` for a box, with a confidence after it or not, or ``class x1 y1 x2 y2 …`` for an outline;
numbers are shares of the image's size.

``data.yaml`` names the classes and lists of images; the labels of ``images/train/a.jpg`` are in ``labels/train/a.txt``.
Other tools name the classes in ``classes.txt`` or ``obj.names``.

Tests: tests/labels/test_yolo_and_voc.py, tests/labels/test_from_images.py.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import yaml

from colocam.config.loading import parse_value
from colocam.errors import ColocamError
from colocam.labels.formats.reading import (
    ImageLabel,
    LabeledImage,
    corners_of,
    files_of,
    finite_number,
    read_label_text,
    videos_of_images,
    whole_number,
)
from colocam.labels.formats.writing import polygon_of, write_images
from colocam.labels.imported_videos import ImportedVideo
from colocam.labels.labeled_videos import LabeledVideo, LabelSet, LeftOut, Options, describe_splits
from colocam.utils.files import write_text

LISTS = frozenset({"train.txt", "val.txt", "valid.txt", "test.txt", "classes.txt", "labels.txt"})
"""Text files that hold no labels."""


def write(labels: LabelSet, folder: Path, options: Options, *, outlines: bool = False) -> None:
    """Write ``data.yaml``, ``train.txt``, ``val.txt``, ``test.txt``, ``labels/`` and, with images, ``images/``.

    No video is in two of the lists, see :meth:`LabelSet.splits`; that of a single video leaves ``val.txt`` empty. With
    ``outlines``, objects are the outlines of their masks; a box without a mask is its own outline.
    """
    if outlines:
        labels.require_masks()
    shape = _outline if outlines else _box
    splits = labels.splits(options.split)
    for split, videos in splits.items():
        if videos or split != "test":
            _write_split(labels, videos, folder, split, shape)

        def image(video: LabeledVideo, frame: int, images: Path = folder / "images" / split) -> Path:
            return images / video.image_name(frame)

        write_images(LabelSet(videos), options, image)
    data: dict[str, object] = {"train": "train.txt", "val": "val.txt"}
    if splits["test"]:
        data["test"] = "test.txt"
    data["names"] = dict(enumerate(labels.classes))
    text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
    write_text(folder / "data.yaml", text if len(labels.videos) > 1 else f"# {describe_splits(splits)}\n{text}")


def _write_split(
    labels: LabelSet,
    videos: Sequence[LabeledVideo],
    folder: Path,
    split: str,
    shape: Callable[[LabeledVideo, int], list[float]],
) -> None:
    """Write the list of images of a split, and a file of labels for each."""
    texts = folder / "labels" / split
    texts.mkdir(parents=True)
    with (folder / f"{split}.txt").open("w", encoding="utf-8") as listed:
        for video in videos:
            for frame, rows in video.objects_of.items():
                listed.write(f"./images/{split}/{video.image_name(frame)}\n")
                with (texts / f"{video.image_stem(frame)}.txt").open("w", encoding="utf-8") as file:
                    for row in rows:
                        shares = " ".join(f"{share:.8f}" for share in shape(video, row))
                        file.write(f"{labels.class_index[video.rows.tag[row]]} {shares}\n")


def _box(video: LabeledVideo, row: int) -> list[float]:
    x1, y1, x2, y2 = (video.rows.box[row] / (video.size * 2)).tolist()
    return [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1]


def _outline(video: LabeledVideo, row: int) -> list[float]:
    mask = video.mask(row)
    x1, y1, x2, y2 = video.rows.box[row].tolist()
    points = np.array([[x1, y1], [x2, y1], [x2, y2], [x1, y2]]) if mask is None else polygon_of(mask)
    shares: list[float] = (points / video.size).ravel().tolist()
    return shares


def read(path: Path, known: Sequence[LabeledVideo], left_out: LeftOut) -> list[ImportedVideo]:
    """Read the label files of a folder and its folders."""
    if not path.is_dir():
        raise ColocamError(f"{path}: YOLO labels are a folder with data.yaml or classes.txt: give the folder")
    names = _names(path)
    images = []
    for file in files_of(path, ".txt"):
        if file.name.lower() not in LISTS:
            labels = [_label(file, line.split(), names) for line in read_label_text(file).splitlines() if line.split()]
            images.append(LabeledImage(file.name, labels))
    return videos_of_images(images, known, left_out, relative=True)


def _names(folder: Path) -> dict[int, str]:
    """Names of the classes by index."""
    for file in (file for name in ("data.yaml", "dataset.yaml", "data.yml") for file in sorted(folder.rglob(name))):
        content = parse_value(read_label_text(file), str(file))
        names = content.get("names") if isinstance(content, dict) else None
        if isinstance(names, list):
            return {index: str(name) for index, name in enumerate(names)}
        if isinstance(names, dict):
            return {whole_number(file, "names", index) or 0: str(name) for index, name in names.items()}
    for file in (file for name in ("classes.txt", "obj.names") for file in sorted(folder.rglob(name))):
        return dict(enumerate(line.strip() for line in read_label_text(file).splitlines() if line.strip()))
    raise ColocamError(f"{folder}: no data.yaml, classes.txt or obj.names, so the classes have no names: add one")


def _label(file: Path, words: list[str], names: dict[int, str]) -> ImageLabel:
    index = whole_number(file, "the class", words[0])
    if index is None or index not in names:
        raise ColocamError(f"{file}: class {words[0][:40]!r} has no name: add it to data.yaml or classes.txt")
    numbers = [finite_number(file, "a share of the image's size", word) for word in words[1:]]
    if len(numbers) in {4, 5}:
        x, y, width, height = numbers[:4]
        corners = x - width / 2, y - height / 2, x + width / 2, y + height / 2
        return ImageLabel(names[index], corners_of(file, corners))
    if len(numbers) < 6 or len(numbers) % 2:
        raise ColocamError(f"{file}: a line has a class and 4 numbers, or an outline, got {len(numbers)} numbers")
    xs = numbers[::2]
    ys = numbers[1::2]
    return ImageLabel(names[index], corners_of(file, (min(xs), min(ys), max(xs), max(ys))))

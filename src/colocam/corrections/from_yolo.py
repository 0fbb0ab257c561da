"""YOLO: a folder of text files, one per image; an empty one says that the image shows no object.

A line is ``class cx cy w h``, with a confidence after it or not, or the outline ``class x1 y1 x2 y2 …``; numbers are
shares of the image's size. Classes are named by ``data.yaml``, ``classes.txt`` or ``obj.names``.
"""

from collections.abc import Sequence
from pathlib import Path

from colocam.config.loading import parse_value
from colocam.corrections.image_frames import LabelledImage, videos_of_images
from colocam.corrections.imported import ImportedVideo, LeftOut
from colocam.corrections.label_files import corners_of, files_of, finite_number, read_label_text, whole_number
from colocam.errors import ColocamError
from colocam.export.labels import LabelledVideo
from colocam.types import Box

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

"""Split lists of the literature ("wsol-done-right"): one folder per split, comma-separated files without a header.

``image_ids.txt`` (path), ``class_labels.txt`` (path, number of the class), ``image_sizes.txt`` (path, width, height),
``localization.txt`` (path, x0, y0, x1, y1; one line per box). Train lists shots, which are folders; val and test list
frames. Paths are relative to the root of the frames: ``<class>/video-0001/shot-000000/00001139.jpg``, or those of v1.0.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from colocam.data.catalogue import SPLIT_NAMES
from colocam.data.youtube_objects.shots import CLASSES, Notes, Shot
from colocam.errors import ColocamError
from colocam.types import SPLITS, Split
from colocam.video.images import images_of, natural_key

LISTED_PATH = re.compile(
    r"(?P<tag>[^/]+)/(?:data/)?(?P<video>(?:video-)?(?P<number>\d+))(?:/(?:shots/)?(?P<shot>[^/]+))?"
)


def find_lists(root: Path, version: str) -> Path | None:
    """The folder of lists below ``root``, None if there is none; of several the one whose path names the version."""
    shallow = [root, *_folders(root), *(deeper for folder in _folders(root) for deeper in _folders(folder))]
    found = [folder for folder in shallow if {"train", "test"} <= _split_folders(folder).keys()]
    if len(found) > 1:
        found = [folder for folder in found if version in str(folder.relative_to(root))] or found
    if len(found) > 1:
        raise ColocamError(
            f"{root} holds several folders of split lists ({found[0]}, {found[1]}): choose one with `lists`"
        )
    return found[0] if found else None


def val_videos(lists: Path) -> set[tuple[str, int]]:
    """Class and number of the videos in the validation list: ``lists`` is its folder, or has it as ``val``."""
    folder = lists if (lists / "image_ids.txt").is_file() else _split_folders(lists).get("val")
    if folder is None:
        raise ColocamError(f"{lists}: no validation list; expected {lists / 'val' / 'image_ids.txt'}")
    names = (_names(path, folder / "image_ids.txt") for path, _ in _lines(folder / "image_ids.txt", 0))
    return {(name["tag"], int(name["number"])) for name in names}


def read_lists(root: Path, lists: Path, notes: Notes) -> list[Shot]:
    """All listed shots whose frames lie below ``root``; of val and test the listed frames alone."""
    folders = _split_folders(lists)
    if missing := [split for split in SPLITS if split not in folders]:
        raise ColocamError(f"{lists}: no list of {missing[0]}; expected {lists / missing[0] / 'image_ids.txt'}")
    shots = [shot for split in SPLITS for shot in _read_split(root, folders[split], split, notes)]
    if not shots:
        raise ColocamError(f"{lists}: not one of the listed paths lies below {root}: check the root of the frames")
    return shots


def _read_split(root: Path, folder: Path, split: Split, notes: Notes) -> Iterator[Shot]:
    corners: dict[Path, list[list[float]]] = defaultdict(list)
    for path, box in _lines(folder / "localization.txt", 4):
        corners[root / path].append(box)
    listed_sizes = _lines(folder / "image_sizes.txt", 2) if (folder / "image_sizes.txt").is_file() else ()
    sizes = {root / path: (width, height) for path, (width, height) in listed_sizes}
    labels = folder / "class_labels.txt"
    tags = {path: _tag(number, labels) for path, (number,) in _lines(labels, 1)}
    for shot, images in _images(root, folder, split, notes).items():
        name = _names(shot, folder / "image_ids.txt")
        listed = {tags[path] for path in (shot, *(f"{shot}/{p.name}" for p in images)) if path in tags}
        if listed != {name["tag"]}:
            found = f"as {', '.join(sorted(listed))}" if listed else "nowhere"
            raise ColocamError(f"{labels}: {shot} is labelled {found}, not as {name['tag']}")
        video = f"{name['tag']}/{name['video']}"
        boxes = {path: np.array(corners[path]) for path in images if path in corners}
        yield Shot(f"{video}/{name['shot']}", name["tag"], video, split, images, boxes, sizes)


def _images(root: Path, folder: Path, split: Split, notes: Notes) -> dict[str, tuple[Path, ...]]:
    """Listed images in natural order, by shot."""
    images: dict[str, set[Path]] = defaultdict(set)
    for path, _ in _lines(folder / "image_ids.txt", 0):
        if (root / path).is_dir():
            images[path].update(images_of(root / path))
            if not images[path]:
                notes.add("empty shot folders left out", root / path)
        elif (root / path).is_file():
            images[str(PurePosixPath(path).parent)].add(root / path)
        else:
            notes.add(f"listed paths of {split} left out, which do not exist", root / path)
    return {shot: tuple(sorted(them, key=lambda p: natural_key(p.name))) for shot, them in images.items() if them}


def _names(path: str, listed_in: Path) -> dict[str, str]:
    found = LISTED_PATH.match(path)
    if found is None or found["tag"] not in CLASSES:
        raise ColocamError(f"{listed_in}: {path!r} is no path of YouTube-Objects, such as cat/video-0001/shot-000000")
    return found.groupdict(default="")


def _lines(path: Path, numbers: int) -> Iterator[tuple[str, list[float]]]:
    """Path and numbers of each line; only the path may contain a comma."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ColocamError(f"cannot read the split list {path} ({error})") from error
    for index, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, *cells = (cell.strip() for cell in line.rsplit(",", numbers))
        if len(cells) != numbers:
            raise ColocamError(f"{path}, line {index}: {numbers + 1} cells are needed, not {line!r}")
        try:
            yield name.strip("/"), [float(cell) for cell in cells]
        except ValueError as error:
            raise ColocamError(f"{path}, line {index}: {','.join(cells)!r} are not all numbers") from error


def _tag(number: float, path: Path) -> str:
    if number not in range(len(CLASSES)):
        raise ColocamError(f"{path}: the class '{number:g}' is no number from 0 to {len(CLASSES) - 1}")
    return CLASSES[int(number)]


def _split_folders(lists: Path) -> dict[Split, Path]:
    named = (folder for folder in _folders(lists) if folder.name in SPLIT_NAMES)
    return {SPLIT_NAMES[folder.name]: folder for folder in named if (folder / "image_ids.txt").is_file()}


def _folders(folder: Path) -> list[Path]:
    """Folders beside those of the frames; the class train is also the name of a split."""
    if not folder.is_dir():
        return []
    named = (entry for entry in sorted(folder.iterdir()) if entry.name not in CLASSES or entry.name == "train")
    return [entry for entry in named if entry.is_dir()]

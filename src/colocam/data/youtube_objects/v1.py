"""Version 1.0 as distributed: ``<class>/data/0001/shots/001/frame0001.jpg`` with its boxes beside it.

The boxes of ``frame0001.jpg`` are in ``frame0001.jpg_sticks.mat``, variable ``coor``: a cell of x0, y0, x1, y1, from 0.
``<class>/sets/train.txt`` and ``test.txt`` list the numbers of the videos.
"""

import re
from pathlib import Path

from colocam.data.youtube_objects.matlab import corners_of, read_variable
from colocam.data.youtube_objects.shots import CLASSES, Notes, Shot
from colocam.errors import ColocamError
from colocam.types import Split
from colocam.video.images import images_of, natural_key


def is_v1(root: Path) -> bool:
    """Whether ``root`` has this layout."""
    return any((root / tag / "data").is_dir() and (root / tag / "sets").is_dir() for tag in CLASSES)


def read_v1(root: Path, notes: Notes) -> list[Shot]:
    """All shots with a frame, of the classes that are there."""
    shots: list[Shot] = []
    for tag in (tag for tag in CLASSES if (root / tag).is_dir()):
        splits = _official_splits(root / tag)
        videos = {int(folder.name): folder for folder in _numbered(root / tag / "data")}
        for number in sorted(splits.keys() - videos):
            notes.add("videos of the official split without a folder", f"{tag}/{number:04d}")
        for number, folder in videos.items():
            if number not in splits:
                notes.add("videos left out, which are in neither train.txt nor test.txt", folder)
                continue
            shots += _shots_of_video(tag, folder, splits[number], notes)
    return shots


def _shots_of_video(tag: str, folder: Path, split: Split, notes: Notes) -> list[Shot]:
    video = f"{tag}/{folder.name}"
    shots = []
    for entry in _numbered(folder / "shots"):
        if not (frames := images_of(entry)):
            notes.add("empty shot folders left out", entry)
            continue
        labels = {}
        for label in sorted(entry.glob("*_sticks.mat")):
            frame = label.with_name(label.name.removesuffix("_sticks.mat"))
            if frame not in frames:
                notes.add("labels left out, whose frame is missing", label)
                continue
            labels[frame] = corners_of(read_variable(label, "coor"), f"{label}, variable coor")
        shots.append(Shot(f"{video}/{entry.name}", tag, video, split, frames, labels))
    return shots


def _official_splits(folder: Path) -> dict[int, Split]:
    splits: dict[int, Split] = {}
    names: tuple[Split, Split] = ("train", "test")
    for split in names:
        path = folder / "sets" / f"{split}.txt"
        if not path.is_file():
            raise ColocamError(f"cannot read {path}: the official split is expected there, one video number per line")
        for word in path.read_text(encoding="utf-8", errors="replace").split():
            digits = re.search(r"(\d+)\D*$", word)
            if digits is None:
                raise ColocamError(f"{path}: {word!r} is no video number")
            if splits.setdefault(int(digits[1]), split) != split:
                raise ColocamError(f"{path}: the video {digits[1]} is in train.txt and in test.txt")
    return splits


def _numbered(folder: Path) -> list[Path]:
    """Folders whose names are numbers, in order."""
    if not folder.is_dir():
        raise ColocamError(f"there is no folder {folder}: unpack the archive of version 1.0 as it is")
    found = (entry for entry in folder.iterdir() if entry.name.isdecimal() and entry.is_dir())
    return sorted(found, key=lambda entry: natural_key(entry.name))

"""The archives of YouTube-Objects as distributed.

Version 1.0: ``<class>/data/0001/shots/001/frame0001.jpg`` with its boxes beside it. The boxes of ``frame0001.jpg`` are
in ``frame0001.jpg_sticks.mat``, variable ``coor``: a cell of x0, y0, x1, y1, from 0. ``<class>/sets/train.txt`` and
``test.txt`` list the numbers of the videos.

Version 2.2: ``<class>/00001139.jpg``, one running frame number per class. ``Ranges/ranges_<class>.mat`` (variable
``ranges``) has start, end (included) and video of each shot, as three rows or three columns.
``GroundTruth/<class>/bb_gtTest_<class>.mat`` and ``bb_gtTraining_<class>.mat`` (variables ``bb_gtTest``,
``bb_gtTraining``) are struct arrays: ``im``, a name such as ``car00001139``, and ``boxes``, rows of x0, y0, x1, y1,
from 1. The videos that have a frame in ``bb_gtTest`` are the test videos. Unpacking may give ``Ranges/Ranges`` and
``GroundTruth/GroundTruth``, which are accepted, too.
"""

import re
from bisect import bisect_left, bisect_right
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.youtube_objects.mat_file import corners_of, labelled_frames, read_variable
from colocam.data.youtube_objects.shots import CLASSES, Corners, Notes, Shot
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


def is_v2(root: Path) -> bool:
    """Whether ``root`` has this layout."""
    return (root / "Ranges").is_dir() or (root / "GroundTruth").is_dir()


def read_v2(root: Path, notes: Notes) -> list[Shot]:
    """All shots with a frame, of the classes that are there."""
    shots: list[Shot] = []
    for tag in (tag for tag in CLASSES if (root / tag).is_dir()):
        shots += _shots_of_class(root, tag, notes)
    return shots


def _shots_of_class(root: Path, tag: str, notes: Notes) -> list[Shot]:
    images = {int(path.stem): path for path in images_of(root / tag) if path.stem.isdecimal()}
    numbers = sorted(images)
    training, test = (_labels(root, tag, variable, images, notes) for variable in ("bb_gtTraining", "bb_gtTest"))
    ranges = _ranges(_folder(root, "Ranges") / f"ranges_{tag}.mat").tolist()
    inside = [numbers[bisect_left(numbers, start) : bisect_right(numbers, end)] for start, end, _ in ranges]
    test_videos = {video for (_, _, video), frames in zip(ranges, inside, strict=True) if test.keys() & set(frames)}
    shots: list[Shot] = []
    for index, ((start, end, number), frames) in enumerate(zip(ranges, inside, strict=True)):
        video = f"{tag}/video-{number:04d}"
        name = f"{video}/shot-{index:06d}"
        if not frames:
            notes.add("shots left out, none of whose frames is there", name)
            continue
        if len(frames) < end - start + 1:
            notes.add("shots with missing frames", f"{name}, {len(frames)} of {end - start + 1} are there")
        split: Split = "test" if number in test_videos else "train"
        if split == "test" and training.keys() & set(frames):
            notes.add("shots of test videos with training labels, which are left out", name)
        labels = test if split == "test" else training
        boxes = {images[n]: labels[n] for n in frames if n in labels}
        shots.append(Shot(name, tag, video, split, tuple(images[n] for n in frames), boxes))
    for number in sorted((training.keys() | test.keys()).difference(*inside)):
        notes.add("labels left out, whose frame is in no shot", images[number])
    return shots


def _folder(root: Path, name: str) -> Path:
    """``root/name``, or ``root/name/name`` where an archive was unpacked into a folder of its own name."""
    nested = root / name / name
    return nested if nested.is_dir() else root / name


def _ranges(path: Path) -> npt.NDArray[np.int64]:
    """(shots, 3) start, end, video; the file may have shots as columns (as distributed) or as rows."""
    values = np.asarray(read_variable(path, "ranges"))
    where = f"{path}, variable ranges"
    if values.dtype.kind not in "iuf" or values.ndim != 2 or 3 not in values.shape:
        raise ColocamError(f"{where}: expected start, end and video of shots, not {values.dtype} of {values.shape}")
    ranges = values.astype(np.int64)
    candidates = [rows for rows in (ranges.T, ranges) if rows.shape[1] == 3]
    ranges = next((rows for rows in candidates if _in_order(rows)), candidates[0])  # with three shots both fit
    if (ranges[:, 0] > ranges[:, 1]).any():
        raise ColocamError(f"{where}: a shot ends before it starts")
    return ranges


def _in_order(ranges: npt.NDArray[np.int64]) -> bool:
    return bool((ranges[:, 0] <= ranges[:, 1]).all() and (ranges[1:, 0] > ranges[:-1, 1]).all())


def _labels(root: Path, tag: str, variable: str, images: dict[int, Path], notes: Notes) -> dict[int, Corners]:
    path = _folder(root, "GroundTruth") / tag / f"{variable}_{tag}.mat"
    labels: dict[int, Corners] = {}
    for number, corners in labelled_frames(read_variable(path, variable), f"{path}, variable {variable}"):
        if number not in images:
            notes.add("labels left out, whose frame is missing", f"{tag}/{number:08d}")
        else:
            labels[number] = np.concatenate([labels.get(number, np.zeros((0, 4))), corners])
    return labels

"""The layouts of YouTube-Objects, each read into shots with their labels.

Version 1.0 as distributed: ``<class>/data/0001/shots/001/frame0001.jpg`` with its boxes beside it. The boxes of
``frame0001.jpg`` are in ``frame0001.jpg_sticks.mat``, variable ``coor``: a cell of x0, y0, x1, y1, from 0.
``<class>/sets/train.txt`` and ``test.txt`` list the numbers of the videos.

Version 2.2 as distributed: ``<class>/00001139.jpg``, one running frame number per class.
``Ranges/ranges_<class>.mat`` (variable ``ranges``) has start, end (included) and video of each shot, as three rows or
three columns.
``GroundTruth/<class>/bb_gtTest_<class>.mat`` and ``bb_gtTraining_<class>.mat`` (variables ``bb_gtTest``,
``bb_gtTraining``) are struct arrays: ``im``, a name such as ``car00001139``, and ``boxes``, rows of x0, y0, x1, y1,
from 1. The videos that have a frame in ``bb_gtTest`` are the test videos. Unpacking may give ``Ranges/Ranges`` and
``GroundTruth/GroundTruth``, which are accepted, too.

Frames in folders per shot with split lists of the literature ("wsol-done-right"): one folder per split, comma-separated
files without a header. ``image_ids.txt`` (path), ``class_labels.txt`` (path, number of the class), ``image_sizes.txt``
(path, width, height), ``localization.txt`` (path, x0, y0, x1, y1; one line per box). Train lists shots, which are
folders; val and test list frames. Paths are relative to the root of the frames:
``<class>/video-0001/shot-000000/00001139.jpg``, or those of v1.0.

Tests: tests/data/youtube_objects/test_archive.py, tests/data/youtube_objects/test_boxes_and_split.py.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from colocam.data.catalogue import SPLIT_NAMES
from colocam.data.youtube_objects.mat_file import Corners, corners_of, labeled_frames, read_variable
from colocam.errors import ColocamError
from colocam.types import SPLITS, Split
from colocam.video.images import images_of, natural_key

CLASSES = ("aeroplane", "bird", "boat", "car", "cat", "cow", "dog", "horse", "motorbike", "train")
"""The tags; the index of a class is its number in the lists of the literature."""
LISTED_PATH = re.compile(
    r"(?P<tag>[^/]+)/(?:data/)?(?P<video>(?:video-)?(?P<number>\d+))(?:/(?:shots/)?(?P<shot>[^/]+))?"
)


@dataclass(frozen=True, slots=True)
class Shot:
    """Consecutive frames of one video.

    Attributes:
        name: e.g. ``aeroplane/0001/001`` (v1.0), ``aeroplane/video-0001/shot-000000`` (v2.2).
        tag: the class.
        video: name of the video, the shot's without its last part.
        split: of the archive; validation videos still belong to train, where no list names them.
        frames: the image files in order.
        labels: boxes of the labeled ones, in the archive's coordinates.
        drawn_on: width and height of the frames that the boxes refer to, where a list states them.
    """

    name: str
    tag: str
    video: str
    split: Split
    frames: tuple[Path, ...] = field(repr=False)
    labels: Mapping[Path, Corners] = field(repr=False)
    drawn_on: Mapping[Path, tuple[float, float]] = field(repr=False, default_factory=dict)


class Notes:
    """Irregularities of an archive: one line for each kind, with a count and the first example."""

    def __init__(self) -> None:
        self._examples: dict[str, list[object]] = defaultdict(list)

    def add(self, kind: str, example: object) -> None:
        """Note an ``example`` of ``kind`` (a plural, such as "empty shot folders left out")."""
        self._examples[kind].append(example)

    def lines(self) -> list[str]:
        """All kinds in the order in which they were found."""
        return [f"{len(found)} {kind} (first: {found[0]})" for kind, found in self._examples.items()]


def is_v1(root: Path) -> bool:
    """Whether ``root`` has this layout."""
    return any((root / tag / "data").is_dir() and (root / tag / "sets").is_dir() for tag in CLASSES)


def read_v1(root: Path, tag: str, notes: Notes) -> list[Shot]:
    """All shots of a class that have a frame."""
    shots: list[Shot] = []
    splits = _official_splits(root / tag)
    videos = {int(folder.name): folder for folder in _numbered(root / tag / "data")}
    for number in sorted(splits.keys() - videos):
        notes.add("videos of the official split without a folder", f"{tag}/{number:04d}")
    for number, folder in videos.items():
        if number in splits:
            shots += _shots_of_video(tag, folder, splits[number], notes)
        else:
            notes.add("videos left out, which are in neither train.txt nor test.txt", folder)
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
                raise ColocamError(f"{path}: {word!r} is not a video number")
            if splits.setdefault(int(digits[1]), split) != split:
                raise ColocamError(f"{path}: the video {digits[1]} is in both train.txt and test.txt")
    return splits


def _numbered(folder: Path) -> list[Path]:
    """Folders whose names are numbers, in order."""
    if not folder.is_dir():
        raise ColocamError(f"there is no folder {folder}: unpack the archive of version 1.0 as it is")
    numbered = (entry for entry in folder.iterdir() if entry.name.isdecimal() and entry.is_dir())
    return sorted(numbered, key=lambda entry: natural_key(entry.name))


def is_v2(root: Path) -> bool:
    """Whether ``root`` has this layout."""
    return (root / "Ranges").is_dir() or (root / "GroundTruth").is_dir()


def read_v2(root: Path, tag: str, notes: Notes) -> list[Shot]:
    """All shots of a class that have a frame."""
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
    for number, corners in labeled_frames(read_variable(path, variable), f"{path}, variable {variable}"):
        if number not in images:
            notes.add("labels left out, whose frame is missing", f"{tag}/{number:08d}")
        else:
            labels[number] = np.concatenate([labels.get(number, np.zeros((0, 4))), corners])
    return labels


def find_lists(root: Path, version: str) -> Path | None:
    """The folder of lists below ``root``, None if there is none; of several the one whose path names the version."""
    shallow = [root, *_folders(root), *(deeper for folder in _folders(root) for deeper in _folders(folder))]
    roots = [folder for folder in shallow if {"train", "test"} <= _split_folders(folder).keys()]
    if len(roots) > 1:
        roots = [folder for folder in roots if version in str(folder.relative_to(root))] or roots
    if len(roots) > 1:
        raise ColocamError(
            f"{root} holds several folders of split lists ({roots[0]}, {roots[1]}): choose one with `lists`"
        )
    return roots[0] if roots else None


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
        raise ColocamError(f"{lists}: none of the listed paths is below {root}: check the root of the frames")
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
            where = f"as {', '.join(sorted(listed))}" if listed else "nowhere"
            raise ColocamError(f"{labels}: {shot} is labeled {where}, not as {name['tag']}")
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
    match = LISTED_PATH.match(path)
    if match is None or match["tag"] not in CLASSES:
        raise ColocamError(f"{listed_in}: {path!r} is not a path of YouTube-Objects such as cat/video-0001/shot-000000")
    return match.groupdict(default="")


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
        raise ColocamError(f"{path}: the class '{number:g}' is not a number from 0 to {len(CLASSES) - 1}")
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

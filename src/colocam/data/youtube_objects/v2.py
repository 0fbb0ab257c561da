"""Version 2.2 as distributed: ``<class>/00001139.jpg``, one running frame number per class.

``Ranges/ranges_<class>.mat`` (variable ``ranges``) has start, end (included) and video of each shot, as three rows or
three columns. ``GroundTruth/<class>/bb_gtTest_<class>.mat`` and ``bb_gtTraining_<class>.mat`` (variables ``bb_gtTest``,
``bb_gtTraining``) are struct arrays: ``im``, a name such as ``car00001139``, and ``boxes``, rows of x0, y0, x1, y1,
from 1. The videos that have a frame in ``bb_gtTest`` are the test videos. Unpacking may give ``Ranges/Ranges`` and
``GroundTruth/GroundTruth``, which are accepted, too.
"""

from bisect import bisect_left, bisect_right
from pathlib import Path

import numpy as np
import numpy.typing as npt

from colocam.data.youtube_objects.matlab import Corners, labelled_frames, read_variable
from colocam.data.youtube_objects.shots import CLASSES, Notes, Shot
from colocam.errors import ColocamError
from colocam.types import Split
from colocam.video.images import images_of


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
    values = read_variable(path, "ranges")
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

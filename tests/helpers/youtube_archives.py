"""Miniature archives of YouTube-Objects in both layouts, with real .mat files and pictures of 32×24."""

from pathlib import Path

import cv2
import numpy as np
from scipy.io import savemat

WIDTH, HEIGHT = 32, 24
BOX = (4.0, 5.0, 20.0, 18.0)


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    level = np.full((HEIGHT, WIDTH, 3), sum(path.name.encode()) % 256, np.uint8)
    path.write_bytes(cv2.imencode(".jpg", level)[1].tobytes())
    return path


def cell(items):
    """A MATLAB cell with one column."""
    array = np.empty((len(items), 1), object)
    for place, item in enumerate(items):
        array[place, 0] = np.atleast_2d(np.asarray(item)) if not isinstance(item, str) else item
    return array


def sticks(frame: Path, *boxes) -> None:
    savemat(frame.with_name(frame.name + "_sticks.mat"), {"coor": cell(boxes)})


def struct(entries: dict[str, list]) -> np.ndarray:
    """A MATLAB struct array 1×N with the fields im and boxes."""
    array = np.empty((1, len(entries)), dtype=[("im", object), ("boxes", object)])
    for place, (name, boxes) in enumerate(entries.items()):
        array[0, place] = (name, np.array(boxes, np.float64).reshape(-1, 4))
    return array


def v1(root: Path, tags=("cat", "horse"), train=7) -> Path:
    """Videos 1, 2 and 4 … of a class train, 3 and 4 test; each has a shot 001 of three frames, the 2nd with a box."""
    for tag in tags:
        numbers = [1, 2, *range(5, 3 + train)]
        (root / tag / "sets").mkdir(parents=True)
        (root / tag / "sets" / "train.txt").write_text("".join(f"{n:04d}\n" for n in numbers))
        (root / tag / "sets" / "test.txt").write_text("0003\r\n0004\r\n")
        for number in (*numbers, 3, 4):
            shots = root / tag / "data" / f"{number:04d}" / "shots"
            frames = [picture(shots / "001" / f"frame{n:04d}.jpg") for n in (1, 2, 10)]
            sticks(frames[1], BOX)
            (shots / "002").mkdir()  # empty, as some of the archive
        picture(root / tag / "data" / "0001" / "shots" / "003" / "frame0001.jpg")  # a shot without labels
    if "horse" in tags:
        swapped = picture(root / "horse" / "data" / "0004" / "shots" / "055" / "frame0020.jpg")
        sticks(swapped, (20.5, 5, 4.5, 18))
    if "cat" in tags:
        odd = picture(root / "cat" / "data" / "0003" / "shots" / "010" / "frame0007.jpg")
        sticks(odd, (-2.5, -1, 10, 12), (3, 4, 40, 30))
    return root


# shot: start, end, video
RANGES = [(1, 3, 1), (4, 6, 1), (10, 12, 2), (13, 15, 3), (16, 18, 4), (19, 21, 5), (22, 24, 6), (30, 31, 7)]
TEST = {16: [BOX, (1, 1, 32, 24)], 18: [(0, 3, 33, 30)], 20: [BOX]}
TRAINING = {2: [BOX], 11: [BOX], 14: [BOX], 23: [BOX], 24: [BOX]}


def v2(root: Path, tags=("cat", "train"), *, columns=True) -> Path:
    """Seven videos a class: 4 and 5 test; 1, 2, 3, 6 with training boxes, 7 without; frame 5 is missing."""
    for tag in tags:
        for start, end, _ in RANGES:
            for number in range(start, end + 1):
                if number != 5:
                    picture(root / tag / f"{number:08d}.jpg")
        (root / "Ranges").mkdir(exist_ok=True)
        ranges = np.array(RANGES, np.int32)
        savemat(root / "Ranges" / f"ranges_{tag}.mat", {"ranges": ranges.T if columns else ranges})
        truth = root / "GroundTruth" / tag
        truth.mkdir(parents=True)
        for variable, boxes, ending in (("bb_gtTest", TEST, ""), ("bb_gtTraining", TRAINING, ".jpg")):
            named = {f"{tag}{number:08d}{ending}": them for number, them in boxes.items()}
            savemat(truth / f"{variable}_{tag}.mat", {variable: struct(named)})
    return root


def lists(folder: Path, ids, labels=(), sizes=(), boxes=()) -> None:
    folder.mkdir(parents=True)
    for name, lines in (("image_ids", ids), ("class_labels", labels), ("image_sizes", sizes), ("localization", boxes)):
        (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))


def converted(root: Path, folder: Path) -> Path:
    """Two classes with a training, a validation and a test video each, and their lists."""
    entries = {split: ([], [], [], []) for split in ("train", "val", "test")}
    for tag, label in (("cat", 4), ("train", 9)):
        for video, split in ((1, "train"), (2, "val"), (3, "test")):
            shot = f"{tag}/video-{video:04d}/shot-{video:06d}"
            frames = [f"{shot}/{number:08d}.jpg" for number in (1139, 1140, 1200)]
            for frame in frames:
                picture(root / frame)
            ids, labels, sizes, boxes = entries[split]
            listed = [shot] if split == "train" else frames[:2]
            ids += listed
            labels += [f"{path},{label}" for path in listed]
            if split != "train":
                sizes += [f"{path},{WIDTH},{HEIGHT}" for path in listed]
                boxes += [f"{path},5,6,21,19" for path in listed]
        entries["test"][3].append(f"{tag}/video-0003/shot-000003/00001140.jpg,1.0,1.0,33,24")
    for split, lines in entries.items():
        lists(folder / split, *lines)
    return root

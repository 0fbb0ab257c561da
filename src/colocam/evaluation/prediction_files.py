"""Predictions and true boxes as files: tables of boxes, and folders of maps ``<clip>/<frame>.npy`` or ``.png``."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import cv2
import numpy as np
import numpy.typing as npt

from colocam.data.catalogue import SPLIT_NAMES, read_catalogue
from colocam.data.truth import box_of_corners, read_truth
from colocam.errors import ColocamError, first_line
from colocam.types import Box, Clip, Float64Array, Split
from colocam.utils.files import DAMAGED_ARRAY, stored
from colocam.utils.tables import Row, read_rows
from colocam.video.fence import probe
from colocam.video.images import image_size, silence_opencv

silence_opencv()

Map = npt.NDArray[np.uint8] | npt.NDArray[np.floating]
"""(H, W): uint8 levels, or floats in 0–1."""

MOST_PIXELS = 1 << 26
"""Pixels of a map at most, 8192²."""
PNG = b"\x89PNG\r\n\x1a\n"
CORNERS = ("x1", "y1", "x2", "y2")
Size = tuple[int, int]
"""Width and height in pixels."""


class PredictedBox(NamedTuple):
    """A predicted box of a frame, None for no box, and the predicted tag, "" where the table has none."""

    box: Box | None
    tag: str


def read_boxes(table: Path) -> dict[tuple[str, int], list[PredictedBox]]:
    """Read a CSV or parquet table: clip, frame, x1, y1, x2, y2, optionally tag (or class) and score.

    Boxes of a frame are sorted by score, highest first; equal scores keep their order. Empty corners mean no box.
    """
    boxes_of: dict[tuple[str, int], list[tuple[float, PredictedBox]]] = {}
    for row in read_rows(table, required=("clip", "frame", *CORNERS)):
        where = row.where
        frame = row.number("frame")
        if frame is None or frame < 0 or frame != int(frame) or not row["clip"]:
            raise ColocamError(f"{where}: clip must be named and frame must be an index from 0, got {row['frame']!r}")
        key, score = (row["clip"], int(frame)), row.number("score")
        corners = [row.number(name) for name in CORNERS]
        box = None if all(corner is None for corner in corners) else box_of_corners(corners, where)
        if key in boxes_of and score is None:
            raise ColocamError(f"{where}: the frame has several boxes, so each needs a score")
        predicted = PredictedBox(box, row.get("tag") or row.get("class", ""))
        boxes_of.setdefault(key, []).append((-np.inf if score is None else score, predicted))
    return {
        key: [predicted for _, predicted in sorted(boxes, key=lambda one: -one[0])] for key, boxes in boxes_of.items()
    }


def map_files(folder: Path) -> dict[tuple[str, int], Path]:
    """Files ``<clip>/<frame>.npy`` or ``.png`` by clip name and frame index; the name of a clip may contain slashes."""
    paths: dict[tuple[str, int], Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in {".npy", ".png"}:
            continue
        if not path.stem.isdecimal():
            raise ColocamError(f"{path}: the file name must be the index of the frame, such as 12{path.suffix}")
        key = stored(path).parent.relative_to(folder).as_posix(), int(path.stem)
        if key in paths:
            raise ColocamError(f"{path}: {paths[key]} is for the same frame: delete one of them")
        paths[key] = path
    if not paths:
        raise ColocamError(f"{folder} has no file <clip>/<frame>.npy or .png")
    return paths


def read_map(path: Path) -> Map:
    """(H, W) uint8 levels or floats in 0–1 of an ``.npy`` or an 8-bit gray ``.png``."""
    values: Any = None
    try:
        if path.suffix.lower() == ".png":
            data = path.read_bytes()
            if data.startswith(PNG):  # followed by the header, which begins with the width and the height
                _check_pixels(path, (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])))
                values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
        else:
            # Mapped first: a header may ask for more memory than there is, but never for more than the file has.
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            if isinstance(mapped, np.ndarray) and mapped.ndim == 2:
                _check_pixels(path, (mapped.shape[1], mapped.shape[0]))
            values = np.array(mapped) if isinstance(mapped, np.ndarray) else mapped
    except (*DAMAGED_ARRAY, MemoryError, cv2.error) as error:
        kind = "image" if path.suffix.lower() == ".png" else ".npy array"
        raise ColocamError(f"{path}: not a complete {kind} ({first_line(error)})") from error
    if not isinstance(values, np.ndarray):
        raise ColocamError(f"{path}: not a complete image")
    if values.ndim != 2 or 0 in values.shape or (values.dtype != np.uint8 and values.dtype.kind != "f"):
        raise ColocamError(
            f"{path}: a map must be (height, width), uint8 or floats, got {values.dtype} of shape {values.shape}"
        )
    if values.dtype.kind == "f" and not ((values >= 0) & (values <= 1)).all():
        raise ColocamError(f"{path}: a map of floats must be in 0–1: normalize it first")
    return cast("Map", values)


def _check_pixels(path: Path, size: tuple[int, int]) -> None:
    width, height = size
    if width * height > MOST_PIXELS:
        raise ColocamError(f"{path}: a map of {width}×{height} is too large: at most {MOST_PIXELS} pixels")


def read_mask(path: Path) -> npt.NDArray[np.int64]:
    """(H, W): 0 background, 1 foreground (1 or 255 in the file), 2 ignored (anything else)."""
    values = read_map(path)
    return np.where(values == 0, 0, np.where((values == 1) | (values == 255), 1, 2))


class LabeledFrame(NamedTuple):
    """A frame with the object.

    Attributes:
        clip: where it is from.
        frame: its index in the clip.
        boxes: (k, 4), k ≥ 1, in pixels of the frame.
        stated: its width and height in the table of true boxes; None: those of its image or video.
    """

    clip: Clip
    frame: int
    boxes: Float64Array
    stated: Size | None

    @property
    def key(self) -> tuple[str, int]:
        """Name of the clip and index, by which predictions are found."""
        return self.clip.name, self.frame

    @property
    def size(self) -> Size:
        """Width and height."""
        size = self.stated or _size_of(self.clip, self.frame)
        if size is None:
            raise ColocamError(
                f"the size of frame {self.frame} of {self.clip.name!r} is not known: add the columns width and height "
                "to the table of true boxes, or give a manifest of the videos"
            )
        return size

    def scale(self, width: int, height: int) -> Float64Array:
        """(4,) factors from pixels of the frame to those of an image of (width, height)."""
        size = self.size
        return np.array([width / size[0], height / size[1]] * 2)

    def truncated(self, scale: Float64Array) -> Float64Array:
        """True boxes (k, 4) scaled and truncated to integers, as published; in float32, as those of a run are."""
        return np.trunc((self.boxes * scale).astype(np.float32)).astype(np.float64)


class LabeledClips(NamedTuple):
    """The clips of a table of true boxes, by name, their frames with at least one box, and the classes, sorted."""

    clips: Mapping[str, Clip]
    labeled: Sequence[LabeledFrame]
    tags: tuple[str, ...]

    def frames(self, split: Split) -> list[LabeledFrame]:
        """Frames of a split, in the order of the table."""
        return [frame for frame in self.labeled if frame.clip.split == split]


def read_labeled(boxes: Path, manifest: Path | None, split: Split) -> LabeledClips:
    """Read true boxes (see :func:`read_truth`) and the properties of their clips.

    Args:
        boxes: the table. Its optional columns tag (or class), video, split, width and height make a manifest
            unnecessary; without split all of its clips belong to ``split``.
        manifest: a source as :func:`read_catalogue` reads it.
        split: the evaluated split.
    """
    truth, rows = read_truth(boxes), read_rows(boxes)
    clips = (
        {clip.name: clip for clip in read_catalogue(manifest).clips}
        if manifest is not None
        else _clips_of_rows(boxes, rows, split)
    )
    sizes = {(row["clip"], int(float(row["frame"]))): size for row in rows if (size := _stated_size(row)) is not None}
    labeled = [
        LabeledFrame(clips[clip], frame, np.array(true, np.float64), sizes.get((clip, frame)))
        for clip, frames in truth.frames.items()
        if clip in clips
        for frame, true in frames.items()
        if true
    ]
    return LabeledClips(clips, labeled, tuple(sorted({clip.tag for clip in clips.values()})))


def _stated_size(row: Row) -> Size | None:
    """Size of the frame in the cells width and height; None where they are empty or 0."""
    width, height = (row.number(name) for name in ("width", "height"))
    if not width or not height:
        return None
    if min(width, height) < 1:
        raise ColocamError(f"{row.where}: width and height must be 1 pixel or more, got {width:g} and {height:g}")
    return int(width), int(height)


def _clips_of_rows(table: Path, rows: list[Row], split: Split) -> dict[str, Clip]:
    column = next((name for name in ("tag", "class") if name in rows[0]), None)
    if column is None:
        raise ColocamError(f"{table} has no column tag: add it, or give a manifest with the tags of the clips")
    clips: dict[str, Clip] = {}
    for row in rows:
        named = SPLIT_NAMES.get(row.get("split") or split)
        if not row[column] or named is None:
            raise ColocamError(f"{row.where}: {column} must not be empty, and split must be train, val or test")
        clip = Clip(row["clip"], row[column], named, table.parent, row.get("video") or row["clip"])
        if clips.setdefault(clip.name, clip) != clip:
            raise ColocamError(
                f"{row.where}: the clip {clip.name!r} has a different tag, video or split in an earlier row"
            )
    return clips


def _size_of(clip: Clip, frame: int) -> Size | None:
    if clip.frames:
        return image_size(clip.frames[frame]) if frame < len(clip.frames) else None
    return _video_size(clip.path) if clip.path.is_file() else None


@cache
def _video_size(path: Path) -> Size:
    info = probe(path)
    return info.width, info.height

"""Evaluate predicted boxes or maps of any program, read from files, by the rules of a run's evaluation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes import boxes_at_levels
from colocam.boxes.iou import iou
from colocam.boxes.quantize import checked_levels
from colocam.boxes.tags_only import relative_levels, threshold_of_levels
from colocam.data.catalogue import read_catalogue
from colocam.data.folders import SPLIT_NAMES
from colocam.data.truth import Truth, box_of_corners, read_truth
from colocam.errors import ArgumentError, ColocamError, first_line
from colocam.evaluation.metrics import (
    Frames,
    Instances,
    accuracy,
    best_overlaps,
    corloc,
    instance_scores,
    max_box_acc,
    pixel_histograms,
    pxap,
)
from colocam.evaluation.metrics.hits import PUBLISHED_THRESHOLDS, V2_OVERLAPS, hits_of_overlaps
from colocam.evaluation.metrics.instance_scores import ROUNDING, SEVERAL
from colocam.evaluation.result import EvaluatedData, PredictionEvaluation
from colocam.types import Box, Clip, Float64Array, Split
from colocam.utils.files import DAMAGED_ARRAY, stored
from colocam.utils.opencv_log import silence_opencv
from colocam.utils.progress import progress
from colocam.utils.tables import Row, number, read_rows
from colocam.video.fence import probe
from colocam.video.images import image_size

silence_opencv()

Map = npt.NDArray[np.uint8] | npt.NDArray[np.floating]
"""(H, W): uint8 levels, or floats in 0–1."""

MOST_PIXELS = 1 << 26
"""Pixels of a map at most, 8192²."""
PNG = b"\x89PNG\r\n\x1a\n"
CORNERS = ("x1", "y1", "x2", "y2")
Size = tuple[int, int]
"""Width and height in pixels."""
Frame = tuple[str, int]
"""Name of the clip and index of the frame."""
Files = Mapping[Frame, Path]


@dataclass(frozen=True, slots=True)
class PredictedBox:
    """A predicted box of a frame, None for no box, and the predicted tag, "" where the table has none."""

    box: Box | None
    tag: str


def read_boxes(table: Path) -> dict[tuple[str, int], list[PredictedBox]]:
    """Read a CSV or parquet table: clip, frame, x1, y1, x2, y2, optionally tag (or class) and score.

    Boxes of a frame are sorted by score, highest first; equal scores keep their order. Empty corners mean no box.
    """
    found: dict[tuple[str, int], list[tuple[float, PredictedBox]]] = {}
    for row in read_rows(table, required=("clip", "frame", *CORNERS)):
        where = row.where
        frame = number(row, "frame", where)
        if frame is None or frame < 0 or frame != int(frame) or not row["clip"]:
            raise ColocamError(f"{where}: clip must be named and frame must be an index from 0, got {row['frame']!r}")
        key, score = (row["clip"], int(frame)), number(row, "score", where)
        corners = [number(row, name, where) for name in CORNERS]
        box = None if all(corner is None for corner in corners) else box_of_corners(corners, where)
        if key in found and score is None:
            raise ColocamError(f"{where}: the frame has several boxes, so each needs a score")
        predicted = PredictedBox(box, row.get("tag") or row.get("class", ""))
        found.setdefault(key, []).append((-np.inf if score is None else score, predicted))
    return {key: [predicted for _, predicted in sorted(boxes, key=lambda one: -one[0])] for key, boxes in found.items()}


def map_files(folder: Path) -> dict[tuple[str, int], Path]:
    """Files ``<clip>/<frame>.npy`` or ``.png`` by clip name and frame index; the name of a clip may contain slashes."""
    found: dict[tuple[str, int], Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in {".npy", ".png"}:
            continue
        if not path.stem.isdecimal():
            raise ColocamError(f"{path}: the file name must be the index of the frame, such as 12{path.suffix}")
        key = stored(path).parent.relative_to(folder).as_posix(), int(path.stem)
        if key in found:
            raise ColocamError(f"{path}: {found[key]} is of the same frame: delete one of them")
        found[key] = path
    if not found:
        raise ColocamError(f"{folder} has no file <clip>/<frame>.npy or .png")
    return found


def read_map(path: Path) -> Map:
    """(H, W) uint8 levels or floats in 0–1 of an ``.npy`` or an 8-bit grey ``.png``."""
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
        raise ColocamError(f"{path}: a map of floats must be in 0–1: normalise it first")
    return cast("Map", values)


def _check_pixels(path: Path, size: tuple[int, int]) -> None:
    width, height = size
    if width * height > MOST_PIXELS:
        raise ColocamError(f"{path}: a map of {width}×{height} is too large: at most {MOST_PIXELS} pixels")


def read_mask(path: Path) -> npt.NDArray[np.int64]:
    """(H, W): 0 background, 1 foreground (1 or 255 in the file), 2 ignored (anything else)."""
    values = read_map(path)
    return np.where(values == 0, 0, np.where((values == 1) | (values == 255), 1, 2))


@dataclass(frozen=True, slots=True)
class LabelledFrame:
    """A frame with the object.

    Attributes:
        clip: name of the clip.
        frame: index of the frame in it.
        boxes: (k, 4) float64, k ≥ 1, in pixels of the frame.
    """

    clip: str
    frame: int
    boxes: npt.NDArray[np.float64]


@dataclass(frozen=True)
class LabelledClips:
    """The clips of a table of true boxes.

    Attributes:
        truth: the boxes.
        clips: tag, video, split and files of each clip.
        tags: the classes, sorted.
        source: the table, for errors.
    """

    truth: Truth
    clips: Mapping[str, Clip]
    tags: tuple[str, ...]
    source: Path
    _sizes: dict[tuple[str, int], Size]

    def frames(self, split: Split) -> list[LabelledFrame]:
        """Frames of a split with at least one box, in the order of the table."""
        return [
            LabelledFrame(clip, frame, np.array(boxes, np.float64))
            for clip, frames in self.truth.frames.items()
            if clip in self.clips and self.clips[clip].split == split
            for frame, boxes in frames.items()
            if boxes
        ]

    def size(self, clip: str, frame: int) -> Size:
        """Size of a frame: from the columns of the table, else from the images or the video of the clip."""
        if (clip, frame) not in self._sizes:
            found = _size_of(self.clips[clip], frame)
            if found is None:
                raise ColocamError(
                    f"{self.source}: the size of frame {frame} of {clip!r} is not known: add the columns width and "
                    "height, or give a manifest of the videos"
                )
            self._sizes[clip, frame] = found
        return self._sizes[clip, frame]


def read_labelled(boxes: Path, manifest: Path | None, split: Split) -> LabelledClips:
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
    known = {(row["clip"], int(float(row["frame"]))): size for row in rows if (size := _stated_size(row)) is not None}
    return LabelledClips(truth, clips, tuple(sorted({clip.tag for clip in clips.values()})), boxes, known)


def _stated_size(row: Row) -> Size | None:
    """Size of the frame in the cells width and height; None where they are empty or 0."""
    width, height = (number(row, name, row.where) for name in ("width", "height"))
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
            raise ColocamError(f"{row.where}: the clip {clip.name!r} has another tag, video or split in an earlier row")
    return clips


def _size_of(clip: Clip, frame: int) -> Size | None:
    if clip.frames:
        return image_size(clip.frames[frame]) if frame < len(clip.frames) else None
    return _video_size(clip.path) if clip.path.is_file() else None


@cache
def _video_size(path: Path) -> Size:
    info = probe(path)
    return info.width, info.height


Predicted = Mapping[Frame, Sequence[PredictedBox]]


def evaluate_predictions(
    predictions: str | Path,
    boxes: str | Path,
    *,
    manifest: str | Path | None = None,
    split: Split = "test",
    size: int | None = None,
    masks: str | Path | None = None,
) -> PredictionEvaluation:
    """Evaluate boxes (a table) or maps (a folder) of any method on the frames of ``split`` that have true boxes.

    A frame without a prediction counts as wrong.

    Args:
        predictions: table of boxes (``read_boxes``) or folder of maps (``map_files``).
        boxes: table of true boxes.
        manifest: gives tag, video, split and size of the clips; not needed where the table of true boxes has columns
            for them (``read_labelled``).
        split: the evaluated split.
        size: boxes are compared in a frame of (size, size), true ones truncated to integers, as published (224);
            None: in pixels of the frame, as they are. Maps are always compared in their own pixels, as published.
        masks: folder of true masks ``<clip>/<frame>.png`` for PxAP of maps.
    """
    predictions, source = Path(predictions), Path(boxes)
    labelled = read_labelled(source, None if manifest is None else Path(manifest), split)
    frames = labelled.frames(split)
    if not frames:
        raise ColocamError(
            f"{source} has no box for a '{split}' frame: check the clip names, the split and the manifest"
        )
    wanted = {(frame.clip, frame.frame) for frame in frames}
    data = EvaluatedData(
        split=split,
        frames=len(frames),
        videos=len({labelled.clips[frame.clip].video for frame in frames}),
        clips=len({frame.clip for frame in frames}),
        boxes=sum(len(frame.boxes) for frame in frames),
        classes=len(labelled.tags),
    )
    if predictions.is_dir():
        if size is not None:
            raise ArgumentError("size", "is for predicted boxes: maps are compared in their own pixels")
        files = map_files(predictions)
        data = replace(data, missing=_missing(wanted, set(files), predictions, split))
        return _maps(labelled, frames, files, data, None if masks is None else map_files(Path(masks)))
    if masks is not None:
        raise ArgumentError("masks", "are for predicted maps: give a folder of maps as predictions")
    table = read_boxes(predictions)
    data = replace(data, missing=_missing(wanted, set(table), predictions, split))
    return _boxes(labelled, frames, table, data, size)


def _missing(wanted: set[Frame], predicted: set[Frame], source: Path, split: Split) -> int:
    """Number of evaluated frames without a prediction; refuse predictions of other frames alone."""
    if not wanted & predicted:
        raise ColocamError(f"{source} has no prediction for a '{split}' frame with a true box: check the clip names")
    return len(wanted - predicted)


def _boxes(
    labelled: LabelledClips,
    frames: Sequence[LabelledFrame],
    table: Predicted,
    data: EvaluatedData,
    size: int | None,
) -> PredictionEvaluation:
    predicted, true = [], []
    for frame in frames:
        found = [one.box for one in table.get((frame.clip, frame.frame), ()) if one.box is not None]
        scale = np.ones(4) if size is None else _scale(labelled, frame, size, size)
        predicted.append(np.array(found, np.float64).reshape(-1, 4) * scale)
        true.append(frame.boxes if size is None else _truncated(frame, scale))
    first = [_first(table, frame) for frame in frames]
    overlaps = np.array(
        [
            iou(boxes[:1], there, inclusive=True).max() if one is not None and one.box is not None else 0.0
            for one, boxes, there in zip(first, predicted, true, strict=True)
        ]
    )
    hits = overlaps[None, :, None] >= np.array(V2_OVERLAPS)[:, None, None] - ROUNDING
    about = _about(labelled, frames)
    top1 = None
    if any(found[0].tag for found in table.values()):
        tags = ["" if one is None else one.tag for one in first]
        top1 = np.array([tag == labelled.clips[frame.clip].tag for tag, frame in zip(tags, frames, strict=True)])
    # One box per frame leaves no threshold to choose: all protocols are equal.
    scores = corloc(hits[V2_OVERLAPS.index(0.5)], about, [0.0], tags_only=0.0, top1=top1)["tags-only"]
    return PredictionEvaluation(
        data=data,
        max_box_acc=max_box_acc(hits),
        boxes=replace(scores, threshold=None),
        classification=None if top1 is None else accuracy(top1, about),
        instances=_instances(predicted, true),
    )


def _instances(predicted: Sequence[Float64Array], true: Sequence[Float64Array]) -> Instances | None:
    """Scores of all predicted boxes on the frames with several true ones; None without such frames."""
    several = [i for i, boxes in enumerate(true) if len(boxes) >= SEVERAL]
    if not several:
        return None
    boxes, there = [predicted[i] for i in several], [true[i] for i in several]
    ways = {"all boxes": instance_scores(boxes, there), "one box": instance_scores([one[:1] for one in boxes], there)}
    return Instances(len(there), sum(map(len, there)), {"boxes": ways})


def _maps(
    labelled: LabelledClips,
    frames: Sequence[LabelledFrame],
    files: Files,
    data: EvaluatedData,
    masks: Files | None,
) -> PredictionEvaluation:
    held_out = [frame for frame in labelled.frames("val") if (frame.clip, frame.frame) in files]
    # Without maps of validation videos, those of the evaluated videos choose the threshold; that needs no box either.
    unlabelled = _files_of(labelled, files, "val") or _files_of(labelled, files, data.split)
    tags_only = _tags_only_threshold(unlabelled)
    grid = np.append(PUBLISHED_THRESHOLDS, tags_only)
    validation = None
    if held_out:
        overlaps, maxima, _ = _overlaps(labelled, held_out, files, None)
        validation = hits_of_overlaps(overlaps, maxima, grid), _about(labelled, held_out)
    overlaps, maxima, pixels = _overlaps(labelled, frames, files, masks)
    hits = hits_of_overlaps(overlaps, maxima, grid, V2_OVERLAPS)
    return PredictionEvaluation(
        data=replace(data, validation_frames=len(held_out), threshold_maps=len(unlabelled)),
        max_box_acc=max_box_acc(hits),
        maps=corloc(
            hits[V2_OVERLAPS.index(0.5)], _about(labelled, frames), grid, tags_only=tags_only, validation=validation
        ),
        pxap=None if masks is None else pxap(pixels),
    )


def _overlaps(
    labelled: LabelledClips, frames: Sequence[LabelledFrame], files: Files, masks: Files | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """(N, 256) IoU of each map's box at each level, (N,) highest levels, and pixels by score where masks exist.

    One map at a time is in memory. A missing map has an IoU of 0, and its pixels have the score 0.
    """
    overlaps, maxima = np.zeros((len(frames), 256)), np.zeros(len(frames), np.uint8)
    pixels: npt.NDArray[np.int64] | None = None
    with progress("maps", len(frames), unit="frames") as advance:
        for i, frame in enumerate(frames):
            key = frame.clip, frame.frame
            values = read_map(files[key]) if key in files else None
            if values is not None:
                levels = checked_levels(values[None])
                height, width = values.shape
                true = _truncated(frame, _scale(labelled, frame, width, height))
                overlaps[i] = best_overlaps(boxes_at_levels(levels), [true])[0]
                maxima[i] = levels.max()
            if masks is not None and key in masks:
                counts = _pixels(values, read_mask(masks[key]))
                pixels = counts if pixels is None else pixels + counts
            advance()
    if masks is not None and pixels is None:
        raise ArgumentError("masks", "has no mask of an evaluated frame: check the clip names")
    return overlaps, maxima, np.zeros((2, 1), np.int64) if pixels is None else pixels


def _pixels(values: Map | None, mask: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    if values is None:
        return pixel_histograms(np.zeros(mask.shape)[None], mask[None])
    scores = values.astype(np.float32) / (255 if values.dtype == np.uint8 else 1)
    height, width = mask.shape
    resized = np.asarray(cv2.resize(scores, (width, height), interpolation=cv2.INTER_LINEAR), np.float64)
    return pixel_histograms(np.clip(resized, 0, 1)[None], mask[None])


def _tags_only_threshold(paths: Sequence[Path]) -> float:
    counts = np.zeros(256, np.int64)
    for path in paths:
        counts += relative_levels(checked_levels(read_map(path)[None])[0])
    return threshold_of_levels(counts)


def _scale(labelled: LabelledClips, frame: LabelledFrame, width: int, height: int) -> Float64Array:
    """(4,) factors from pixels of the frame to those of an image of (width, height)."""
    whole = labelled.size(frame.clip, frame.frame)
    return np.array([width / whole[0], height / whole[1]] * 2)


def _truncated(frame: LabelledFrame, scale: Float64Array) -> Float64Array:
    """True boxes (k, 4) scaled and truncated to integers, as published; scaled in float32, as those of a run are."""
    return np.trunc((frame.boxes * scale).astype(np.float32)).astype(np.float64)


def _about(labelled: LabelledClips, frames: Sequence[LabelledFrame]) -> Frames:
    clips = [labelled.clips[frame.clip] for frame in frames]
    tags = np.array([labelled.tags.index(clip.tag) for clip in clips], np.int64)
    return Frames(labelled.tags, tags, np.array([clip.video for clip in clips]))


def _files_of(labelled: LabelledClips, files: Files, split: str) -> list[Path]:
    clips = {clip.name for clip in labelled.clips.values() if clip.split == split}
    return [path for (clip, _), path in files.items() if clip in clips]


def _first(table: Predicted, frame: LabelledFrame) -> PredictedBox | None:
    found = table.get((frame.clip, frame.frame))
    return None if found is None else found[0]

"""Examples, as in the paper's figures: a frame with its true box, beside it the map and box of each method."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError, first_line
from colocam.evaluation.metrics.hits import RIGHT
from colocam.evaluation.result import method_title, ordered_methods
from colocam.types import Box, Image
from colocam.utils.files import parse_json
from colocam.video.drawing import draw_localization

EDGE = 240
"""Longer side of an image in the gallery, in pixels."""
BUDGET = 4_000_000
"""Most bytes that all images take in the page."""

_GROUPS = {
    "best": ("Best cases", "Frames where the boxes fit best."),
    "typical": ("Typical cases", "Frames around the median overlap."),
    "worst": ("Worst cases", "Frames where the boxes fit worst: look at these first."),
    "empty": ("Empty frames", "The video has the tag, but the object is not in these frames, so any box is false."),
    "review": ("Frames to check first", "The most doubtful frames of the held-out videos, most doubtful first."),
    "several": ("Most boxes wrong", "The frame with the most missed and false boxes, of the worst shots."),
    "presence": (
        "Presence most wrong",
        "Empty frames with high presence, and frames with the object but low presence.",
    ),
    "dense": ("Worst shots", "The worst frame of each of the shots with the lowest mean IoU without the tag."),
}


@dataclass(frozen=True, slots=True)
class CaseImage:
    """One image: title, address (data:…), description, the verdict below it, and the IoU with the true box."""

    title: str
    address: str
    alt: str
    verdict: str = ""
    right: bool | None = None
    overlap: float | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One frame with one image per method."""

    tag: str
    clip: str
    frame: int
    predicted: str
    probability: float | None
    images: tuple[CaseImage, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Cases of one kind."""

    name: str
    title: str
    note: str
    cases: tuple[Case, ...]


def gallery(path: Path, remedy: str = "evaluate the run again") -> list[Group]:
    """Draw the cases of an .npz file, smaller and more compressed where they exceed ``BUDGET``; [] without a file."""
    if not path.exists():
        return []
    try:
        arrays, meta = _read(path)
        methods = ordered_methods([name.removeprefix("boxes__") for name in arrays if name.startswith("boxes__")])
        for edge, quality in ((EDGE, 88), (EDGE, 75), (EDGE * 3 // 4, 70), (EDGE // 2, 60), (EDGE // 4, 50)):
            rows = ({name: array[i] for name, array in arrays.items()} for i in range(len(meta)))
            cases = [_case(*pair, methods, edge, quality) for pair in zip(rows, meta, strict=True)]
            if sum(len(image.address) for case in cases for image in case.images) <= BUDGET:
                break
        groups: dict[str, list[Case]] = {name: [] for name in _GROUPS}
        for case, entry in zip(cases, meta, strict=True):
            groups.setdefault(entry["group"], []).append(case)
    except Exception as error:  # archives and arrays fail in many ways
        raise ColocamError(f"{path} cannot be read ({first_line(error)}): {remedy}") from error
    return [Group(name, *_GROUPS.get(name, (name, "")), tuple(cases)) for name, cases in groups.items() if cases]


def _read(path: Path) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, Any]]]:
    """Arrays of an .npz file, all of one length, and the entry of its ``meta`` for each row."""
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    meta = parse_json(str(arrays.pop("meta")))
    if any(len(array) != len(meta) for array in arrays.values()):
        raise ValueError("its arrays have different lengths")
    if "boxes" in arrays:  # of a review: one method, and no true box
        arrays |= {f"{name}__Map and box": arrays.pop(name) for name in ("heatmaps", "boxes")}
        meta = [{**entry, "group": "review"} for entry in meta]
    return arrays, meta


def _case(
    row: dict[str, npt.NDArray[Any]], meta: dict[str, Any], methods: Sequence[str], edge: int, quality: int
) -> Case:
    """Draw one frame; ``row`` holds its row of each array."""
    height, width = row["images"].shape[:2]
    scale = edge / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    # Resized before drawing, so that lines stay sharp.
    resized = cv2.resize(row["images"], size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    image = np.asarray(resized, np.uint8)
    truth = [box for corners in row.get("truth", ()) if (box := _box(corners, scale))]
    tag, where = str(meta["tag"]), f"frame {meta['frame']} of {meta['clip']}"
    seen = ", with the true box in green" if truth else ", without the object"
    seen = seen if "truth" in row else ""
    images = [CaseImage("Frame", address(draw_localization(image, truth=truth), quality), f"{tag}: {where}{seen}")]
    for method in methods:
        # one box, or all boxes of several objects
        boxes = [_box(corners, scale) for corners in row[f"boxes__{method}"].reshape(-1, 4)]
        box, *others = boxes
        heatmap = row[f"heatmaps__{method}"].astype(np.float32) / 255
        if "doubt" in meta:
            verdict = f"doubt {float(meta['doubt']):.2f}: {meta['reason']}"
            right = None
            overlap = None
        elif "verdict" in meta:
            verdict = str(meta["verdict"])
            right = bool(meta.get("right"))
            overlap = None
        else:
            overlap = float(row[f"iou__{method}"]) if truth else None
            verdict, right = _verdict(box, overlap)
        further = [one for one in others if one]
        drawn = address(draw_localization(image, heatmap, box, truth=truth, others=further), quality)
        title = method_title(method)
        images.append(CaseImage(title, drawn, f"{title} on {where}: {verdict}", verdict, right, overlap))
    probability = meta.get("probability")
    return Case(
        tag=tag,
        clip=str(meta["clip"]),
        frame=int(meta["frame"]),
        predicted=str(meta["predicted"]),
        probability=None if probability is None else float(probability),
        images=tuple(images),
    )


def _verdict(box: Box | None, iou: float | None) -> tuple[str, bool]:
    """The text below an image, and whether the method was right; no IoU: the object is not there."""
    if iou is None:
        return ("no box, correct", True) if box is None else ("false box", False)
    return ("no box", False) if box is None else (f"IoU {iou:.2f}", iou >= RIGHT)


def _box(corners: npt.NDArray[np.float32], scale: float) -> Box | None:
    """Four coordinates as a box of the resized image; None where they are NaN."""
    return None if np.isnan(corners).any() else Box(*(float(value) * scale for value in corners))


def address(image: Image, quality: int) -> str:
    """``image`` as a JPEG inside a data: address."""
    # Color at full resolution: subsampled color turns thin red and green lines gray.
    full_color = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    _, data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality, *full_color])
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")

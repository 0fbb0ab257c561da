"""Examples, as in the paper's figures: a frame with its true box, beside it the map and box of each method."""

import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from colocam.errors import ColocamError, first_line
from colocam.evaluation.result import method_title, ordered_methods
from colocam.types import Box, Image
from colocam.utils.files import parse_json
from colocam.video.drawing import draw_localization

EDGE = 240
"""Longer side of an image in the gallery, in pixels."""
BUDGET = 4_000_000
"""Most bytes that all images take in the page."""
HIT = 0.5
"""IoU from which a box counts as right."""

_GROUPS = {
    "best": ("Best cases", "Frames where the boxes fit best."),
    "typical": ("Typical cases", "Frames around the median overlap."),
    "worst": ("Worst cases", "Frames where the boxes fit worst: read these first."),
    "empty": ("Empty frames", "The video carries the tag, but the object is not in these frames: any box is false."),
    "dense": ("Worst shots", "The worst frame of each of the shots with the lowest mean IoU without the tag."),
}
QUALITY = 80


@dataclass(frozen=True, slots=True)
class CaseImage:
    """One image: title, address (data:…), description, and the verdict below it."""

    title: str
    address: str
    alt: str
    verdict: str = ""
    right: bool | None = None


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


def gallery(path: Path) -> list[Group]:
    """Draw the cases stored in ``path`` (cases.npz), smaller and more compressed where they would exceed ``BUDGET``."""
    with explain_damage(path):
        return _gallery(*read_images(path))


def _gallery(arrays: dict[str, npt.NDArray[Any]], meta: list[dict[str, Any]]) -> list[Group]:
    methods = ordered_methods([name.removeprefix("heatmaps__") for name in arrays if name.startswith("heatmaps__")])
    order = [*_GROUPS, *sorted({str(entry["group"]) for entry in meta} - _GROUPS.keys())]
    for edge, quality in ((EDGE, 88), (EDGE, 75), (EDGE * 3 // 4, 70), (EDGE // 2, 60), (EDGE // 4, 50)):
        groups = []
        for name in order:
            members = [i for i, entry in enumerate(meta) if entry["group"] == name]
            if members:
                title, note = _GROUPS.get(name, (name, ""))
                cases = tuple(
                    _case({key: array[i] for key, array in arrays.items()}, meta[i], methods, edge, quality)
                    for i in members
                )
                groups.append(Group(name, title, note, cases))
        if _bytes(groups) <= BUDGET:
            break
    return groups


def _bytes(groups: Sequence[Group]) -> int:
    return sum(len(image.address) for group in groups for case in group.cases for image in case.images)


@contextmanager
def explain_damage(path: Path, remedy: str = "evaluate the run again") -> Iterator[None]:
    """Turn what a damaged file causes into an error that names it; archives and arrays fail in many ways."""
    try:
        yield
    except ColocamError:
        raise
    except Exception as error:
        raise ColocamError(f"{path} cannot be read ({first_line(error)}): {remedy}") from error


def read_images(path: Path) -> tuple[dict[str, npt.NDArray[Any]], list[dict[str, Any]]]:
    """Arrays of an .npz file, all of one length, and the entry of its ``meta`` for each row."""
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    meta = parse_json(str(arrays.pop("meta")))
    if any(len(array) != len(meta) for array in arrays.values()):
        raise ValueError("its arrays have different lengths")
    return arrays, meta


def _case(
    arrays: dict[str, npt.NDArray[Any]], meta: dict[str, Any], methods: Sequence[str], edge: int, quality: int
) -> Case:
    """Draw one frame; ``arrays`` holds its row of each array."""
    image, scale = enlarge(arrays["images"], edge)
    truth = [box for row in arrays["truth"] if (box := box_of_row(row, scale))]
    tag = str(meta["tag"])
    where = f"frame {meta['frame']} of {meta['clip']}"
    seen = "with the true box in green" if truth else "without the object"
    images = [
        CaseImage("Frame", address(draw_localization(image, truth=truth), quality), f"{tag}: {where}, {seen}", tag)
    ]
    for method in methods:
        box = box_of_row(arrays[f"boxes__{method}"], scale)
        heatmap = arrays[f"heatmaps__{method}"].astype(np.float32) / 255
        verdict, right = _verdict(box, float(arrays[f"iou__{method}"]), empty=not truth)
        drawn = address(draw_localization(image, heatmap, box, truth=truth), quality)
        title = method_title(method)
        images.append(CaseImage(title, drawn, f"{title} on {where}: {verdict}", verdict, right))
    probability = meta.get("probability")
    return Case(
        tag=tag,
        clip=str(meta["clip"]),
        frame=int(meta["frame"]),
        predicted=str(meta["predicted"]),
        probability=None if probability is None else float(probability),
        images=tuple(images),
    )


def _verdict(box: Box | None, iou: float, *, empty: bool) -> tuple[str, bool]:
    """The text below an image, and whether the method was right."""
    if empty:
        return ("no box, correct", True) if box is None else ("false box", False)
    if box is None:
        return "no box", False
    return f"IoU {iou:.2f}", iou >= HIT


def enlarge(image: Image, edge: int) -> tuple[Image, float]:
    """Resize so that the longer side is ``edge``; before drawing, so that lines stay sharp."""
    height, width = image.shape[:2]
    scale = edge / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC)
    return np.asarray(resized, np.uint8), scale


def box_of_row(row: npt.NDArray[np.float32], scale: float) -> Box | None:
    """Four coordinates as a box of the resized image; None where they are NaN."""
    return None if np.isnan(row).any() else Box(*(float(value) * scale for value in row))


def address(image: Image, quality: int) -> str:
    """``image`` as a JPEG inside a data: address."""
    # Colour at full resolution: subsampled colour turns thin red and green lines grey.
    full_colour = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]
    _, data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality, *full_colour])
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")


def doubtful(path: Path) -> list[Case]:
    """Draw the frames stored in ``path``, in their order."""
    with explain_damage(path, "run 'colocam review' again"):
        return _doubtful(*read_images(path))


def _doubtful(arrays: dict[str, npt.NDArray[Any]], meta: list[dict[str, Any]]) -> list[Case]:
    cases = []
    for i, told in enumerate(meta):
        image, scale = enlarge(arrays["images"][i], EDGE)
        box = box_of_row(arrays["boxes"][i], scale)
        heat = arrays["heatmaps"][i].astype(np.float32) / 255
        where = f"frame {told['frame']} of {told['clip']}"
        drawn = address(draw_localization(image, heat, box), QUALITY)
        doubt = f"doubt {float(told['doubt']):.2f}: {told['reason']}"
        images = (
            CaseImage("Frame", address(image, QUALITY), where),
            CaseImage("Map and box", drawn, f"{where}: {doubt}", doubt, right=False),
        )
        probability, predicted = float(told["probability"]), str(told["predicted"])
        cases.append(Case(str(told["tag"]), str(told["clip"]), int(told["frame"]), predicted, probability, images))
    return cases

"""True boxes and presence, apart from the catalogue: only validation and evaluation read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colocam.errors import ColocamError
from colocam.types import Box
from colocam.utils.tables import Row, read_rows

CORNERS = "x1", "y1", "x2", "y2"


@dataclass(frozen=True, slots=True)
class Truth:
    """Boxes of the labelled frames.

    Attributes:
        frames: clip name → frame index in the video → boxes in original pixels; none where the object is absent.
        ids: clip name → frame index → name of the object in each box; only of clips that name an object in each box.
    """

    frames: dict[str, dict[int, list[Box]]] = field(repr=False)
    ids: dict[str, dict[int, list[str]]] = field(default_factory=dict, repr=False)

    def boxes(self, clip: str, frame: int) -> list[Box]:
        """All boxes of a frame; empty where the object is absent or the frame has no label."""
        return self.frames.get(clip, {}).get(frame, [])

    def labelled(self, clip: str) -> list[int]:
        """Sorted indices of the labelled frames."""
        return sorted(self.frames.get(clip, {}))


def read_truth(path: Path) -> Truth:
    """Read a CSV or parquet table with the columns clip, frame, present (0 or 1), x1, y1, x2, y2, and optionally id.

    One row per box; a frame without the object has one row with ``present`` 0 and no box. The object of a box is the
    same in all frames of a clip that give it the same ``id``.
    """
    frames: dict[str, dict[int, list[Box]]] = {}
    names: dict[str, dict[int, list[str]]] = {}
    for row in read_rows(path, required=("clip", "frame", "present", *CORNERS)):
        where = row.where
        frame = row.number("frame")
        if frame is None or frame < 0 or frame != int(frame) or not row["clip"]:
            raise ColocamError(f"{where}: a row needs a clip and a frame index from 0, got {row['frame']!r}")
        boxes = frames.setdefault(row["clip"], {}).setdefault(int(frame), [])
        present, corners = row.number("present"), [row.number(name) for name in CORNERS]
        if check_presence(present, corners, row):
            boxes.append(box_of_corners(corners, where))
            names.setdefault(row["clip"], {}).setdefault(int(frame), []).append(row.get("id", ""))
    return Truth(frames, known_ids(names))


def check_presence(present: float | None, corners: Sequence[float | None], row: Row) -> bool:
    """Whether a row with the cell ``present`` has a box; anything but 0 and 1, or 0 beside a box, is refused."""
    if present not in {0, 1}:
        raise ColocamError(f"{row.where}: present must be 0 or 1, got {row['present']!r}")
    if not present and any(corner is not None for corner in corners):
        raise ColocamError(f"{row.where}: present is 0 but there is a box: set present to 1 or clear the box")
    return bool(present)


def known_ids(names: Mapping[str, dict[int, list[str]]]) -> dict[str, dict[int, list[str]]]:
    """The clips in which every box has an id: with an unnamed box, nobody could say which tracks are right."""
    return {clip: frames for clip, frames in names.items() if all(all(ids) for ids in frames.values())}


def box_of_corners(corners: Sequence[float | None], where: str) -> Box:
    """Make a box from four cells; ``where`` names file and row in the error."""
    x1, y1, x2, y2 = corners
    if x1 is None or y1 is None or x2 is None or y2 is None or x2 <= x1 or y2 <= y1:
        raise ColocamError(f"{where}: a box needs x1 < x2 and y1 < y2, got {list(corners)}")
    return Box(x1, y1, x2, y2)

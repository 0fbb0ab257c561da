"""True boxes and presence, apart from the catalogue: only validation and evaluation read them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colocam.errors import ColocamError
from colocam.types import Box
from colocam.utils.tables import read_rows

CORNERS = "x1", "y1", "x2", "y2"


@dataclass(frozen=True, slots=True)
class Truth:
    """Boxes of the labelled frames.

    Attributes:
        frames: clip name → frame index in the video → boxes in original pixels; none where the object is absent.
    """

    frames: dict[str, dict[int, list[Box]]] = field(repr=False)

    def boxes(self, clip: str, frame: int) -> list[Box]:
        """All boxes of a frame; empty where the object is absent or the frame has no label."""
        return self.frames.get(clip, {}).get(frame, [])

    def labelled(self, clip: str) -> list[int]:
        """Sorted indices of the labelled frames."""
        return sorted(self.frames.get(clip, {}))


def read_truth(path: Path) -> Truth:
    """Read a CSV or parquet table with the columns clip, frame, present (0 or 1), x1, y1, x2, y2.

    One row per box; a frame without the object has one row with ``present`` 0 and no box.
    """
    frames: dict[str, dict[int, list[Box]]] = {}
    for row in read_rows(path, required=("clip", "frame", "present", *CORNERS)):
        where = row.where
        frame = row.number("frame")
        if frame is None or frame < 0 or frame != int(frame) or not row["clip"]:
            raise ColocamError(f"{where}: a row needs a clip and a frame index from 0, got {row['frame']!r}")
        boxes = frames.setdefault(row["clip"], {}).setdefault(int(frame), [])
        present = row.number("present")
        if present not in {0, 1}:
            raise ColocamError(f"{where}: present must be 0 or 1, got {row['present']!r}")
        corners = [row.number(name) for name in CORNERS]
        if present:
            boxes.append(box_of_corners(corners, where))
        elif any(corner is not None for corner in corners):
            raise ColocamError(f"{where}: present is 0 but there is a box: set present to 1 or clear the box")
    return Truth(frames)


def box_of_corners(corners: Sequence[float | None], where: str) -> Box:
    """Make a box from four cells; ``where`` names file and row in the error."""
    x1, y1, x2, y2 = corners
    if x1 is None or y1 is None or x2 is None or y2 is None or x2 <= x1 or y2 <= y1:
        raise ColocamError(f"{where}: a box needs x1 < x2 and y1 < y2, got {list(corners)}")
    return Box(x1, y1, x2, y2)

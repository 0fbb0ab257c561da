"""Ground-truth boxes and presence, kept apart from the catalogue: only the evaluation reads them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from colocam.errors import ColocamError
from colocam.types import Box
from colocam.utils.tables import number, read_rows


@dataclass(frozen=True, slots=True)
class Truth:
    """Boxes of the labelled frames.

    Attributes:
        frames: clip name → frame index in the video → boxes in original pixels; no box: the object is absent.
    """

    frames: dict[str, dict[int, list[Box]]] = field(repr=False)

    def boxes(self, clip: str, frame: int) -> list[Box]:
        """All boxes of a frame; empty where the object is absent or the frame has no label."""
        return self.frames.get(clip, {}).get(frame, [])

    def labelled(self, clip: str) -> list[int]:
        """Sorted indices of the frames that someone has looked at."""
        return sorted(self.frames.get(clip, {}))

    def present(self, clip: str, frame: int) -> bool:
        """Whether the object is in the frame; asking about a frame without a label is an error."""
        labelled = self.frames.get(clip, {})
        if frame not in labelled:
            raise ColocamError(f"frame {frame} of {clip!r} has no label: ask only for labelled frames")
        return bool(labelled[frame])


def read_truth(path: Path) -> Truth:
    """Read a CSV or parquet table with the columns clip, frame, present (0 or 1), x1, y1, x2, y2.

    One row per box; a frame without the object has one row with ``present`` 0 and no box.
    """
    frames: dict[str, dict[int, list[Box]]] = {}
    for line, row in enumerate(read_rows(path, required=("clip", "frame", "present", "x1", "y1", "x2", "y2")), start=2):
        where = f"{path}, row {line}"
        frame = number(row, "frame", where)
        if frame is None or frame < 0 or frame != int(frame) or not row["clip"]:
            raise ColocamError(f"{where}: a row needs a clip and a frame number from 0, not {row['frame']!r}")
        boxes = frames.setdefault(row["clip"], {}).setdefault(int(frame), [])
        present = number(row, "present", where)
        if present not in {0, 1}:
            raise ColocamError(f"{where}: present is {row['present']!r}, it must be 0 or 1")
        corners = [number(row, name, where) for name in ("x1", "y1", "x2", "y2")]
        if present:
            boxes.append(box_of_corners(corners, where))
        elif any(corner is not None for corner in corners):
            raise ColocamError(f"{where}: the object is absent (present is 0) yet has a box: empty x1, y1, x2 and y2")
    return Truth(frames)


def box_of_corners(corners: Sequence[float | None], where: str) -> Box:
    """Make a box of four cells; ``where`` names file and line in the error."""
    x1, y1, x2, y2 = corners
    if x1 is None or y1 is None or x2 is None or y2 is None or x2 <= x1 or y2 <= y1:
        raise ColocamError(f"{where}: a box needs x1 < x2 and y1 < y2, not {list(corners)}")
    return Box(x1, y1, x2, y2)

"""What the model finds in a film: its localisation table and its heat maps, computed once and kept."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from colocam.boxes import rle
from colocam.errors import ColocamError
from colocam.inference.localizer import Localizer
from colocam.labels import rank
from colocam.labels.review import Rows, doubts, frames_of, signs
from colocam.labels.table import LocalizationTable, TableRows, read_table
from colocam.serve.film_index import open_film
from colocam.types import Float32Array, Float64Array, Levels
from colocam.utils.files import atomic_path
from colocam.video.description import SourceVideo
from colocam.video.frame_ring import FrameLayout

MAP_SIDE = 64
"""Side of the heat maps that the page shows; it enlarges them smoothly."""
DOUBTFUL = 0.5
"""Doubt from which a frame counts as doubtful in the library."""
ABSENT = 0.5
"""Presence below which the model counts as finding no object in a frame."""
QUEUE_SHARE = 0.2
"""Share of the frames in the queue of a film."""


class FilmResults(NamedTuple):
    """What the model found in the N frames of a film.

    Attributes:
        rows: the localisation table, one row per frame.
        doubt: (N,) 0–1.
        queue: frames to check, most doubtful first: index of the frame, and the reason in words.
        maps: (N, 64, 64) heat maps, 255 for 1; read from the disk as needed.
    """

    rows: TableRows
    doubt: Float64Array
    queue: list[tuple[int, str]]
    maps: Levels

    @property
    def absent(self) -> npt.NDArray[np.bool_]:
        """(N,) whether the model finds no object in a frame: by its presence, or by its box where that is not known."""
        presence = self.rows.presence
        return np.where(np.isnan(presence), np.isnan(self.rows.box[:, 0]), presence < ABSENT)


def localize_film(
    localizer: Localizer,
    path: Path,
    table: Path,
    maps: Path,
    report: Callable[[int], None] = lambda _: None,
    stopping: Event | None = None,
) -> None:
    """Localise in a film; write its table and heat maps.

    Args:
        localizer: the model.
        path: a film or a folder of images.
        table: the CSV file to write.
        maps: the file of heat maps to write.
        report: called with the number of frames that passed the network.
        stopping: once set, this ends with an error and waits for no pass.
    """
    done = reported = 0

    def passed(frames: int) -> None:
        nonlocal reported
        reported += frames
        report(reported)

    layout = FrameLayout(localizer.card.size, images=False)
    with (
        open_film(path, layout) as reader,
        atomic_path(maps) as temporary,
        temporary.open("wb") as file,
        LocalizationTable(table, ("track", "presence", "margin", "mask")) as listed,
        # The stream is closed before the reader, because its threads read from the reader.
        closing(localizer.stream(reader.frames(), images=False, passed=passed, stopping=stopping)) as stream,
    ):
        for _, found in stream:
            listed.write(found)
            file.write(small_levels(found.heatmap).tobytes())
            done += 1
        if not done:
            raise ColocamError(f"{path.name} has no frame that can be decoded")


def load_results(table: Path, maps: Path, source: SourceVideo) -> FilmResults:
    """Read what :func:`localize_film` wrote."""
    rows = read_table(table, source, required=("class", "score"))
    count = len(rows.frame)
    if maps.stat().st_size != count * MAP_SIDE**2:
        raise ColocamError(f"{maps} does not belong to {table.name}: delete both, then they are computed again")
    heat = np.memmap(maps, np.uint8, "r", shape=(count, MAP_SIDE, MAP_SIDE))
    listed = Rows.of([rows])
    if len(frames_of(listed)[1]) != count:
        raise ColocamError(f"{table} has more than one row for a frame: delete it, then it is computed again")
    ranked = rank(listed, QUEUE_SHARE)
    return FilmResults(rows, doubts(signs(listed)), [(one.frame, one.reason) for one in ranked], heat)


def outlines(results: FilmResults, source: SourceVideo, rows: slice) -> list[list[list[int]]]:
    """Outlines of the object in some rows: closed polygons x1, y1, x2, y2, … in pixels of the film, also of holes."""
    found: list[list[list[int]]] = []
    for text in results.rows.mask[rows]:
        mask = rle.decode(text, source.height, source.width) if text else np.zeros((1, 1), bool)
        contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
        within = max(source.width, source.height) / 2000  # a page shows no finer detail
        found.append([cv2.approxPolyDP(one, within, closed=True).astype(int).ravel().tolist() for one in contours])
    return found


def small_levels(heatmap: Float32Array, how: int = cv2.INTER_AREA) -> npt.NDArray[np.uint8]:
    """A map in 0–1 as the page gets it: (64, 64), 255 for 1."""
    small = cv2.resize(heatmap, (MAP_SIDE, MAP_SIDE), interpolation=how)
    levels: npt.NDArray[np.uint8] = np.round(255 * np.clip(np.nan_to_num(small), 0, 1)).astype(np.uint8)
    return levels

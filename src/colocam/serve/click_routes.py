"""Routes of clicks on objects.

Tests: tests/serve/test_clicks.py.
"""

import threading
from collections import OrderedDict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi import Path as InPath
from pydantic import BaseModel, Field

from colocam.segment.segmenter import Segmenter
from colocam.serve.clicks import Click, box_in_map, box_of_segmenter, embed
from colocam.serve.guard import RefusalError
from colocam.serve.library import Library
from colocam.serve.video_data import Video
from colocam.serve.video_routes import Chosen, OneVideo, Results, Served
from colocam.types import Image

MOST = 32
"""Clicks on one object in one frame."""
KEPT = 8
"""Frames whose embedding is kept: a second click on a frame does not compute it again."""

routes = APIRouter(prefix="/api")


class Point(BaseModel):
    """A click in pixels of the video; Alt makes one beside the object."""

    x: Annotated[float, Field(ge=0, le=1 << 16, allow_inf_nan=False)]
    y: Annotated[float, Field(ge=0, le=1 << 16, allow_inf_nan=False)]
    inside: bool = True


class Embedded:
    """Frames that a segmenter has looked at; one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int, str], tuple[object, Image]] = OrderedDict()

    def get(self, library: Library, video: Video, frame: int, segmenter: Segmenter) -> tuple[object, Image]:
        """What the segmenter sees in a frame, and the frame (H, W, 3)."""
        key = (video.id, frame, segmenter.name)
        with self._lock:
            if key not in self._kept:
                image = library.stills.image(video.id, video.path, frame)
                if image is None:
                    raise RefusalError(404, f"{video.name} has no frame {frame} that can be decoded")
                self._kept[key] = embed(segmenter, image), image
            self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]


@routes.post("/videos/{video}/clicks/{frame}")
def click(
    video: OneVideo,
    library: Served,
    chosen: Chosen,
    results: Results,
    request: Request,
    frame: Annotated[int, InPath(ge=0, le=1 << 32)],
    clicks: Annotated[list[Point], Body(embed=True, max_length=MOST)],
) -> dict[str, Any]:
    """The box of the object that was clicked on, and what found it; without clicks, only prepare the frame."""
    frames = results.index.frames
    position = int(frames.searchsorted(frame))
    if position == len(frames) or frames[position] != frame:
        raise RefusalError(404, f"{video.name} has no frame {frame}")
    segmenter = library.models.localizer(chosen).segmenter if library.segmenter else None
    if segmenter is not None:
        embedded, image = request.app.state.embedded.get(library, video, frame, segmenter)
    if not clicks:
        return {"box": None, "by": ""}
    points = [Click(point.x, point.y, point.inside) for point in clicks]
    if not any(point.inside for point in points):
        raise RefusalError(
            422, "no click is on the object: click on it first, then with Alt on what does not belong to it"
        )
    source, levels = results.index.source, results.maps[position]
    if segmenter is not None:
        box, by = box_of_segmenter(segmenter, embedded, image, levels, points), segmenter.name
    else:
        box, by = box_in_map(levels, points, source.width, source.height), "heat map"
    return {"box": [round(side, 2) for side in box.tolist()], "by": by}

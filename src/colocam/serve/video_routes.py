"""Routes of videos: the library, frames and the proxy, layers over them, uploads; never with a path of this machine.

Tests: tests/serve/test_routes.py, tests/serve/test_fairness.py.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from math import isnan
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import numpy as np
from fastapi import APIRouter, Body, Depends, Query, Request, Response
from fastapi import Path as InPath
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse, JSONResponse

from colocam.serve.guard import RefusalError
from colocam.serve.lessons import ServedModel
from colocam.serve.library import Library
from colocam.serve.store import Settings
from colocam.serve.video_data import DOUBTFUL, MAP_SIDE, Video, VideoIndex, VideoResults, outlines
from colocam.types import Float64Array

ENDINGS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm", ".wmv"})
"""Endings that uploaded files keep, for exports; their names are never used."""
FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Ids are digests of content, so a frame never changes."""
MAPS_AT_ONCE = 256
MOST_UPLOADED = 8 << 30
BODY_SECONDS = 60.0
"""Longest pause in the body of a file."""

routes = APIRouter(prefix="/api")


async def _library(request: Request) -> Library:
    library: Library = request.app.state.library
    return library


Served = Annotated[Library, Depends(_library)]
ResultsKey = Annotated[str | None, Query(pattern="^[0-9a-f]{16}(-[0-9a-f]{12})?$")]
ModelKey = Annotated[str | None, Query(pattern="^[0-9a-f]{16}$")]


def _video(library: Served, video: Annotated[str, InPath(pattern="^[0-9a-f]{24}$")]) -> Video:
    return library.video(video)


def model_of(library: Served, model: ModelKey = None) -> ServedModel:
    """The model of a key, by default that in use."""
    return library.active if model is None else library.models.get(model)


OneVideo = Annotated[Video, Depends(_video)]
Chosen = Annotated[ServedModel, Depends(model_of)]


def _results(video: OneVideo, library: Served, model: Chosen) -> VideoResults:
    if (results := library.results_of(video, model)) is None:
        raise RefusalError(404, "the model has not finished this video yet: wait a moment")
    return results


def _kept(video: OneVideo, library: Served, model: Chosen, results: ResultsKey = None) -> bool:
    """Whether browsers may keep an answer: results of a key never change, those in use may be others later."""
    return results == library.results_key(video, model)


Results = Annotated[VideoResults, Depends(_results)]
Kept = Annotated[bool, Depends(_kept)]
Tags = Annotated[
    dict[Annotated[str, Field(pattern="^[0-9a-f]{24}$")], Annotated[str, Field(max_length=200)]],
    Field(min_length=1, max_length=100_000),
]
"""Classes by ids of videos; "": the classifier finds the class."""
Start = Annotated[int, Query(ge=0, le=1 << 32)]
Count = Annotated[int, Query(ge=1, le=MAPS_AT_ONCE)]


def video_summary(library: Library, video: Video) -> dict[str, Any]:
    """What the library shows of a video."""
    summary: dict[str, Any] = {"id": video.id, "name": video.name, "tag": video.tag, "state": video.state}
    summary |= {"done": round(video.done, 3), "problem": video.problem, "fault": video.fault}
    summary |= {"class": library.wanted(video).tag or "", "offered": video.offered(library.tags)}
    if video.index is not None:
        source = video.index.source
        seconds = float(video.index.pts[-1] - video.index.pts[0]) + 1 / float(source.fps)
        summary |= {"frames": len(video.index.frames), "seconds": round(seconds, 3)}
        summary |= {"width": source.width, "height": source.height}
    if video.results is not None and (counted := library.tallies.of(video)) is not None:
        total, in_doubt = sum(counted.frames), counted.class_in_doubt and not summary["class"]
        summary |= {
            "found": counted.shown_class,
            "to_check": counted.to_check,
            "box": corners(counted.box),
            "class_in_doubt": in_doubt,
            # Where the class is wrong, it is wrong in each frame.
            "doubtful": round(1 - counted.frames.checked / total if in_doubt else counted.doubtful, 4),
            "checked": round(counted.frames.checked / total, 4),
            "interpolated": round(counted.frames.interpolated / total, 4),
            "counts": counted.frames._asdict(),
        }
    return summary


def _frames(index: VideoIndex) -> dict[str, Any]:
    return {
        "fps": float(index.source.fps),
        "frame": index.frames.tolist(),
        "pts": index.pts.tolist(),
        "proxy": index.proxy.tolist(),
        "cuts": np.flatnonzero(index.cuts).tolist(),
        "map_side": MAP_SIDE,
        "doubtful_from": DOUBTFUL,
    }


def _columns(results: VideoResults) -> dict[str, Any]:
    rows, position = results.rows, {int(frame): at for at, frame in enumerate(results.rows.frame)}
    return {
        "tag": rows.tag,
        # Where the shot decides the class, how sure the shot is of it.
        "probability": _numbers(np.where(np.isnan(rows.shot_probability), rows.probability, rows.shot_probability)),
        "box": [corners(box) for box in rows.box.tolist()],
        "track": rows.track.tolist(),
        "score": _numbers(rows.score),
        "presence": _numbers(rows.presence),
        "doubt": _numbers(results.doubt),
        "absent": np.flatnonzero(results.absent).tolist(),
        "queue": [[position[frame], reason] for frame, reason in results.queue],
        "others": _others(results),
    }


def _others(results: VideoResults) -> list[dict[str, Any]]:
    """Further objects of the model: class, position of the first frame, and a box or None in each frame from there."""
    rows, positions = results.others, results.other_positions
    listed = []
    for track in np.unique(rows.track).tolist():
        of_track = np.flatnonzero(rows.track == track)
        start = int(positions[of_track[0]])
        boxes: list[list[float] | None] = [None] * (int(positions[of_track[-1]]) - start + 1)
        for row in of_track.tolist():
            boxes[int(positions[row]) - start] = corners(rows.box[row].tolist())
        listed.append({"tag": rows.tag[of_track[0]], "at": start, "boxes": boxes})
    return listed


def _numbers(values: Float64Array) -> list[float | None]:
    return [None if isnan(value) else round(value, 4) for value in values.tolist()]


def corners(box: list[float]) -> list[float] | None:
    """A box as the page gets it; None: there is none."""
    return None if isnan(box[0]) else [round(value, 3) for value in box]


@routes.get("/videos")
def list_videos(library: Served) -> dict[str, Any]:
    """All videos, the classes that the model knows, the settings, and how many videos are still to be added."""
    videos = [video_summary(library, video) for video in library.videos()]
    settings = library.workspace.settings.model_dump()
    known = {"tags": library.tags, "settings": settings, "segmenter": library.segmenter != ""}
    known["cannot_learn"] = library.lessons.refusal
    return {"videos": videos, **known, "adding": library.adding}


@routes.post("/settings")
def set_options(settings: Settings, library: Served) -> dict[str, Any]:
    """Change the settings of all videos, which are localized again; corrections stay."""
    library.set_options(settings)
    return library.workspace.settings.model_dump()


@routes.post("/tags")
def set_tags(tags: Annotated[Tags, Body(embed=True)], library: Served) -> dict[str, Any]:
    """Say which class videos show, by their ids; they are localized again, corrections stay."""
    library.set_tags(tags)
    return {"videos": [video_summary(library, library.video(video)) for video in tags]}


@routes.post("/classes", status_code=201)
def add_class(name: Annotated[str, Body(embed=True, min_length=1, max_length=200)], library: Served) -> dict[str, Any]:
    """Add a class that objects can have, beside those of the model."""
    return {"name": library.add_class(name), "classes": library.classes}


@routes.post("/videos", status_code=201)
async def upload(request: Request, library: Served) -> dict[str, Any]:
    """Add a video: its bytes are the body, its name is the header ``X-Video-Name``, percent-encoded."""
    name = Path(unquote(request.headers.get("x-video-name", "video"))[:300]).name
    ending = Path(name).suffix.lower()
    target = library.workspace.uploads / (secrets.token_hex(16) + (ending if ending in ENDINGS else ""))
    try:
        await receive(request, target, MOST_UPLOADED)
        video = await run_in_threadpool(library.add, target, Path(name).stem)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    if video.path != target.absolute():
        target.unlink()
    return video_summary(library, video)


async def receive(request: Request, target: Path, most: int) -> None:
    """Write the body of a request, of at most ``most`` bytes, to a new file.

    Few bodies are received at once, as each holds a connection and a file for as long as its client likes.
    """
    size, uploads = 0, request.app.state.uploads
    if uploads.locked():
        raise RefusalError(503, "many files are being uploaded: try again when some are done")
    async with uploads:
        with target.open("xb") as file:
            parts = aiter(request.stream())
            while (part := await _next_part(parts)) is not None:
                size += len(part)
                if max(size, int(request.headers.get("content-length", "0"))) > most:
                    limit = f"{most / 1e9:.1f} GB"
                    raise RefusalError(413, f"the file is larger than {limit}: name it in the command instead")
                await run_in_threadpool(file.write, part)
    if not size:
        raise RefusalError(422, "the file is empty: choose another one")


async def _next_part(parts: AsyncIterator[bytes]) -> bytes | None:
    """The next bytes of a body; None: it ended."""
    try:
        return await asyncio.wait_for(anext(parts, None), BODY_SECONDS)
    except TimeoutError as error:
        raise RefusalError(408, f"no data arrived for {BODY_SECONDS:g} s: send the file again") from error
    except ClientDisconnect as error:
        raise RefusalError(400, "the upload was interrupted: send the file again") from error


@routes.delete("/videos/{video}")
def remove(video: OneVideo, library: Served) -> dict[str, Any]:
    """Remove a video from the library; its file and its corrections are kept."""
    library.remove(video)
    return {"removed": video.id}


@routes.post("/videos/{video}/retry", status_code=202)
def retry(video: OneVideo, library: Served) -> dict[str, Any]:
    """Prepare a video again that failed."""
    library.retry(video)
    return video_summary(library, video)


@routes.get("/videos/{video}")
def show(video: OneVideo, library: Served, model: Chosen) -> JSONResponse:
    """A video, its frames and what a model, by default that in use, found in them, as columns."""
    library.viewed = video.id  # its results are wanted first
    library.look_at(video, model)
    detail = {**video_summary(library, video), "classes": library.classes, "tags": library.tags, "model": model.key}
    detail["results_key"] = library.results_key(video, model)
    if video.index is not None:
        detail |= _frames(video.index)
    if (results := library.results_of(video, model)) is not None:
        detail["results"] = _columns(results)
    return JSONResponse(detail)  # FastAPI would look at each number first


@routes.get("/videos/{video}/stills/{frame}", response_class=Response)
async def still(
    request: Request, video: OneVideo, library: Served, frame: Annotated[int, InPath(ge=0, le=1 << 32)]
) -> Response:
    """The frame of an index, as JPEG, read by the reader that the model uses."""
    async with request.app.state.decoding:  # those that wait hold no thread, which others need
        data = await run_in_threadpool(library.stills.get, video.id, video.path, frame)
    if data is None:
        raise RefusalError(404, f"{video.name} has no frame {frame} that can be decoded")
    return Response(data, media_type="image/jpeg", headers=FOR_EVER)


@routes.get("/videos/{video}/thumbnail", response_class=Response)
def thumbnail(video: OneVideo, library: Served) -> Response:
    """A small image of the video."""
    path = library.workspace.video(video.id, "jpg")
    if not path.is_file():
        raise RefusalError(404, "the video is not read yet")
    return FileResponse(path, media_type="image/jpeg")


@routes.get("/videos/{video}/proxy", response_class=Response)
def proxy(video: OneVideo, library: Served) -> Response:
    """The proxy that the browser plays, or ranges of its bytes."""
    path = library.workspace.video(video.id, "mp4")
    if video.index is None or not path.is_file():
        raise RefusalError(404, "the video is not ready for playing yet")
    return FileResponse(path, media_type="video/mp4", headers=FOR_EVER)


@routes.get("/videos/{video}/maps", response_class=Response)
def maps(results: Results, kept: Kept, start: Start, count: Count = 64) -> Response:
    """Heat maps of ``count`` rows from ``start``: 64 × 64 bytes each."""
    return _levels(results.maps[start : start + count].tobytes(), kept=kept)


@routes.get("/videos/{video}/cams", response_class=Response)
async def cams(
    request: Request,
    video: OneVideo,
    library: Served,
    chosen: Chosen,
    results: Results,
    kept: Kept,
    start: Start,
    count: Annotated[int, Query(ge=1, le=32)] = 16,
) -> Response:
    """LayerCAM of ``count`` rows from ``start``, for the class that was found: 64 × 64 bytes each."""
    frames, tags = results.rows.frame[start : start + count].tolist(), results.rows.tag[start : start + count]
    if not frames:
        raise RefusalError(404, f"{video.name} has no row {start}")
    async with request.app.state.decoding:
        data = await run_in_threadpool(library.cams.get, video.path, chosen.path, frames, tags)
    return _levels(data, kept=kept)


def _levels(data: bytes, *, kept: bool) -> Response:
    return Response(data, media_type="application/octet-stream", headers=FOR_EVER if kept else None)


@routes.get("/videos/{video}/outlines")
def shapes(results: Results, start: Start, count: Count = 64) -> dict[str, Any]:
    """Outlines of the object in ``count`` rows from ``start``: closed polygons x1, y1, x2, y2, … in pixels."""
    return {"outlines": outlines(results, slice(start, start + count))}

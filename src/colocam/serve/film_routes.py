"""Routes of films: the library, a film's frames, exact frames, proxy and heat maps, uploads."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, StreamingResponse

from colocam.errors import ColocamError
from colocam.serve.byte_ranges import ByteRange, RangeError, one_range
from colocam.serve.film_results import DOUBTFUL, MAP_SIDE
from colocam.serve.library import Film, Library
from colocam.serve.marks import marks_of
from colocam.serve.refusals import NotReadyError, Refusal
from colocam.types import Float64Array

FilmId = Annotated[str, InPath(pattern="^[0-9a-f]{24}$")]
MAPS_AT_ONCE = 256
FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Ids are digests of content, so a frame never changes."""
READ_AT_ONCE = 1 << 18


def film_routes(library: Library, most_bytes: int) -> APIRouter:
    """All routes of films; ``most_bytes`` is the limit of an upload."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films")
    def list_films() -> dict[str, Any]:
        """All films, and the classes that the model knows."""
        return {"films": [_summary(library, film) for film in library.films()], "tags": library.tags}

    @routes.post("/films", status_code=201)
    async def upload(request: Request) -> dict[str, Any]:
        """Add a film: its bytes are the body, its name is the header ``X-Film-Name``, percent-encoded."""
        name = Path(unquote(request.headers.get("x-film-name", "film"))[:300]).name
        target = library.workspace.uploads / secrets.token_hex(16)
        try:
            size = await receive(request, target, most_bytes)
            if not size:
                raise Refusal(422, "the file is empty: choose another one")
            film = await run_in_threadpool(library.add, target, name)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        if film.path != target.absolute():
            target.unlink()
        return _summary(library, film)

    @routes.delete("/films/{film}")
    def remove(film: FilmId) -> dict[str, Any]:
        """Remove a film from the library; its file and its corrections are kept."""
        library.remove(library.film(film))
        return {"removed": film}

    @routes.get("/films/{film}")
    def show(film: FilmId) -> dict[str, Any]:
        """A film, its frames and what the model found in them, as columns."""
        return _detail(library, library.film(film))

    @routes.get("/films/{film}/stills/{frame}", response_class=Response)
    def still(film: FilmId, frame: Annotated[int, InPath(ge=0, le=1 << 32)]) -> Response:
        """The frame of an index, as JPEG, read by the reader that the model uses."""
        found = library.film(film)
        try:
            data = library.stills.get(found.id, found.path, frame)
        except ColocamError as error:
            raise Refusal(422, str(error).replace(str(found.path), found.name)) from error
        if data is None:
            raise Refusal(404, f"{found.name} has no frame {frame} that can be decoded")
        return Response(data, media_type="image/jpeg", headers=FOR_EVER)

    @routes.get("/films/{film}/thumbnail", response_class=Response)
    def thumbnail(film: FilmId) -> Response:
        """A small image of the film."""
        path = library.workspace.film(library.film(film).id, "jpg")
        if not path.is_file():
            raise NotReadyError("the film is not read yet")
        return FileResponse(path, media_type="image/jpeg")

    @routes.get("/films/{film}/proxy", response_class=Response)
    def proxy(film: FilmId, request: Request) -> Response:
        """The proxy that the browser plays, or one range of its bytes."""
        found = library.film(film)
        path = library.workspace.film(found.id, "mp4")
        if found.index is None or not path.is_file():
            raise NotReadyError("the film is not ready for playing yet")
        return _part(path, request.headers.get("range"))

    @routes.get("/films/{film}/maps", response_class=Response)
    def maps(
        film: FilmId,
        start: Annotated[int, Query(ge=0, le=1 << 32)],
        count: Annotated[int, Query(ge=1, le=MAPS_AT_ONCE)] = 64,
    ) -> Response:
        """Heat maps of ``count`` rows from ``start``: 64 × 64 bytes each."""
        results = library.film(film).results
        if results is None:
            raise NotReadyError("the model is not done with this film yet")
        data = results.maps[start : start + count].tobytes()
        return Response(data, media_type="application/octet-stream", headers=FOR_EVER)

    return routes


async def receive(request: Request, target: Path, most: int) -> int:
    """Write the body of a request to a new file; its size."""
    limit = Refusal(413, f"the file is larger than {most / 1e9:.1f} GB: name it in the command instead")
    if int(request.headers.get("content-length", "0")) > most:
        raise limit
    size = 0
    with target.open("xb") as file:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise limit
            await run_in_threadpool(file.write, part)
    return size


def _summary(library: Library, film: Film) -> dict[str, Any]:
    """What the library shows of a film; never its path."""
    summary: dict[str, Any] = {"id": film.id, "name": film.name, "tag": film.tag, "state": film.state}
    summary |= {"done": round(film.done, 3), "problem": film.problem}
    if film.index is not None:
        source = film.index.source
        seconds = float(film.index.pts[-1] - film.index.pts[0]) + 1 / float(source.fps)
        summary |= {"frames": len(film.index.frames), "seconds": round(seconds, 3)}
        summary |= {"width": source.width, "height": source.height}
    if film.results is not None and film.index is not None:
        rows = film.results.rows
        found = max(set(rows.tag), key=rows.tag.count)
        _, history = library.store.history(film.id)
        marks = marks_of(history.actions, film.index.frames, film.index.cuts)
        checked = marks.state > 0
        summary |= {
            "found": found,
            "doubtful": round(float(((film.results.doubt >= DOUBTFUL) & ~checked).mean()), 4),
            "checked": round(float(checked.mean()), 4),
        }
    return summary


def _detail(library: Library, film: Film) -> dict[str, Any]:
    if film.index is None:
        return {**_summary(library, film), "classes": library.tags}
    index = film.index
    detail = {
        **_summary(library, film),
        "fps": float(index.source.fps),
        "classes": library.tags,
        "frame": index.frames.tolist(),
        "pts": index.pts.tolist(),
        "proxy": index.proxy.tolist(),
        "cuts": np.flatnonzero(index.cuts).tolist(),
        "map_side": MAP_SIDE,
    }
    if film.results is not None:
        rows, position = film.results.rows, {int(frame): at for at, frame in enumerate(index.frames)}
        detail["results"] = {
            "tag": rows.tag,
            "probability": _numbers(rows.probability),
            "box": [None if box[0] != box[0] else [round(v, 3) for v in box] for box in rows.box.tolist()],
            "score": _numbers(rows.score),
            "presence": _numbers(rows.presence),
            "doubt": _numbers(film.results.doubt),
            "queue": [[position[frame], reason] for frame, reason in film.results.queue],
        }
    return detail


def _numbers(values: Float64Array) -> list[float | None]:
    return [None if value != value else round(value, 4) for value in values.tolist()]


def _part(path: Path, header: str | None) -> Response:
    """A file, or one range of it."""
    size = path.stat().st_size
    try:
        asked = one_range(header, size)
    except RangeError:
        return Response(status_code=416, headers={"content-range": f"bytes */{size}"})
    part = asked or ByteRange(0, size - 1)
    headers = {"accept-ranges": "bytes", "content-length": str(part.last - part.first + 1), **FOR_EVER}
    if asked is not None:
        headers["content-range"] = f"bytes {part.first}-{part.last}/{size}"
    return StreamingResponse(_bytes(path, part), 206 if asked else 200, headers, "video/mp4")


def _bytes(path: Path, part: ByteRange) -> Iterator[bytes]:
    left = part.last - part.first + 1
    with path.open("rb") as file:
        file.seek(part.first)
        while left > 0 and (data := file.read(min(left, READ_AT_ONCE))):
            left -= len(data)
            yield data

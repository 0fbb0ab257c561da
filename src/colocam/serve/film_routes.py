"""Routes of films: the library, frames and the proxy, layers over them, uploads; never with a path of this machine."""

import secrets
from math import isnan
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, JSONResponse

from colocam.serve.film_data import DOUBTFUL, MAP_SIDE, FilmResults, outlines
from colocam.serve.guard import NotReadyError, RefusalError
from colocam.serve.lessons import ServedModel
from colocam.serve.library import Film, Library
from colocam.serve.marks import CHECKED, INTERPOLATED
from colocam.types import Float64Array

FilmId = Annotated[str, InPath(pattern="^[0-9a-f]{24}$")]
ENDINGS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm", ".wmv"})
"""Endings that uploaded files keep, for exports; their names are never used."""
ModelKey = Annotated[str | None, Query(pattern="^[0-9a-f]{16}$")]
FOR_EVER = {"cache-control": "private, max-age=31536000, immutable"}
"""Ids are digests of content, so a frame never changes."""
MAPS_AT_ONCE = 256
Start = Annotated[int, Query(ge=0, le=1 << 32)]
Count = Annotated[int, Query(ge=1, le=MAPS_AT_ONCE)]
CamCount = Annotated[int, Query(ge=1, le=32)]


def film_summary(library: Library, film: Film) -> dict[str, Any]:
    """What the library shows of a film."""
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
        state = library.marks(film, film.results).state
        checked = np.isin(state, CHECKED)
        summary |= {
            "found": found,
            "doubtful": round(float(((film.results.doubt >= DOUBTFUL) & ~checked).mean()), 4),
            "checked": round(float(checked.mean()), 4),
            "interpolated": round(float(np.isin(state, INTERPOLATED).mean()), 4),
        }
    return summary


def film_detail(library: Library, film: Film, model: ServedModel) -> dict[str, Any]:
    """A film, its frames and what a model found in them, as columns."""
    if film.index is None:
        return {**film_summary(library, film), "classes": library.tags}
    index = film.index
    detail = {
        **film_summary(library, film),
        "fps": float(index.source.fps),
        "classes": library.tags,
        "frame": index.frames.tolist(),
        "pts": index.pts.tolist(),
        "proxy": index.proxy.tolist(),
        "cuts": np.flatnonzero(index.cuts).tolist(),
        "map_side": MAP_SIDE,
        "doubtful_from": DOUBTFUL,
        "model": model.key,
    }
    if (found := film.found.get(model.key)) is not None:
        rows, position = found.rows, {int(frame): at for at, frame in enumerate(index.frames)}
        detail["results"] = {
            "tag": rows.tag,
            "probability": _numbers(rows.probability),
            "box": [None if isnan(box[0]) else [round(v, 3) for v in box] for box in rows.box.tolist()],
            "score": _numbers(rows.score),
            "presence": _numbers(rows.presence),
            "doubt": _numbers(found.doubt),
            "absent": np.flatnonzero(found.absent).tolist(),
            "queue": [[position[frame], reason] for frame, reason in found.queue],
        }
    return detail


def _numbers(values: Float64Array) -> list[float | None]:
    return [None if isnan(value) else round(value, 4) for value in values.tolist()]


def film_routes(library: Library, most_bytes: int) -> APIRouter:
    """All routes of the library; ``most_bytes`` is the limit of an upload."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films")
    def list_films() -> dict[str, Any]:
        """All films, the classes that the model knows, and how many films of the command are still to be added."""
        films = [film_summary(library, film) for film in library.films()]
        return {"films": films, "tags": library.tags, "adding": library.adding}

    @routes.post("/films", status_code=201)
    async def upload(request: Request) -> dict[str, Any]:
        """Add a film: its bytes are the body, its name is the header ``X-Film-Name``, percent-encoded."""
        name = Path(unquote(request.headers.get("x-film-name", "film"))[:300]).name
        ending = Path(name).suffix.lower()
        target = library.workspace.uploads / (secrets.token_hex(16) + (ending if ending in ENDINGS else ""))
        try:
            await receive(request, target, most_bytes)
            film = await run_in_threadpool(library.add, target, Path(name).stem)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        if film.path != target.absolute():
            target.unlink()
        return film_summary(library, film)

    @routes.delete("/films/{film}")
    def remove(film: FilmId) -> dict[str, Any]:
        """Remove a film from the library; its file and its corrections are kept."""
        library.remove(library.film(film))
        return {"removed": film}

    @routes.get("/films/{film}")
    def show(film: FilmId, model: ModelKey = None) -> JSONResponse:
        """A film, its frames and what a model, by default that in use, found in them, as columns."""
        found = library.film(film)
        library.view(found)
        chosen = model_of(library, model)
        library.look_at(found, chosen)
        return JSONResponse(film_detail(library, found, chosen))  # FastAPI would look at each number first

    return routes


def model_of(library: Library, key: str | None) -> ServedModel:
    """The model of a key, by default that in use."""
    return library.active if key is None else library.models.get(key)


async def receive(request: Request, target: Path, most: int) -> None:
    """Write the body of a request, of at most ``most`` bytes, to a new file."""
    limit = RefusalError(413, f"the file is larger than {most / 1e9:.1f} GB: name it in the command instead")
    if int(request.headers.get("content-length", "0")) > most:
        raise limit
    size = 0
    with target.open("xb") as file:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise limit
            await run_in_threadpool(file.write, part)
    if not size:
        raise RefusalError(422, "the file is empty: choose another one")


def media_routes(library: Library) -> APIRouter:
    """All routes of images and films."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films/{film}/stills/{frame}", response_class=Response)
    def still(film: FilmId, frame: Annotated[int, InPath(ge=0, le=1 << 32)]) -> Response:
        """The frame of an index, as JPEG, read by the reader that the model uses."""
        found = library.film(film)
        data = library.stills.get(found.id, found.path, frame)
        if data is None:
            raise RefusalError(404, f"{found.name} has no frame {frame} that can be decoded")
        return Response(data, media_type="image/jpeg", headers=FOR_EVER)

    @routes.get("/films/{film}/thumbnail", response_class=Response)
    def thumbnail(film: FilmId) -> Response:
        """A small image of the film."""
        path = library.workspace.film(library.film(film).id, "jpg")
        if not path.is_file():
            raise NotReadyError("the film is not read yet")
        return FileResponse(path, media_type="image/jpeg")

    @routes.get("/films/{film}/proxy", response_class=Response)
    def proxy(film: FilmId) -> Response:
        """The proxy that the browser plays, or ranges of its bytes."""
        found = library.film(film)
        path = library.workspace.film(found.id, "mp4")
        if found.index is None or not path.is_file():
            raise NotReadyError("the film is not ready for playing yet")
        return FileResponse(path, media_type="video/mp4", headers=FOR_EVER)

    return routes


def layer_routes(library: Library) -> APIRouter:
    """All routes of layers."""
    routes = APIRouter(prefix="/api")

    @routes.get("/films/{film}/maps", response_class=Response)
    def maps(film: FilmId, start: Start, count: Count = 64, model: ModelKey = None) -> Response:
        """Heat maps of ``count`` rows from ``start``: 64 × 64 bytes each."""
        results = _results(library, film, model)
        data = results.maps[start : start + count].tobytes()
        return Response(data, media_type="application/octet-stream", headers=_kept(model))

    @routes.get("/films/{film}/cams", response_class=Response)
    def cams(film: FilmId, start: Start, count: CamCount = 16, model: ModelKey = None) -> Response:
        """LayerCAM of ``count`` rows from ``start``, for the class that was found: 64 × 64 bytes each."""
        rows, found = _results(library, film, model).rows, library.film(film)
        if start >= len(rows.frame):
            raise RefusalError(404, f"{found.name} has no row {start}")
        part = slice(start, start + count)
        chosen = model_of(library, model)
        frames, tags = tuple(rows.frame[part].tolist()), tuple(rows.tag[part])
        data = library.cams.get(found.id, found.path, chosen.path, frames, tags)
        return Response(data, media_type="application/octet-stream", headers=_kept(model))

    @routes.get("/films/{film}/outlines")
    def shapes(film: FilmId, start: Start, count: Count = 64, model: ModelKey = None) -> dict[str, Any]:
        """Outlines of the object in ``count`` rows from ``start``: closed polygons x1, y1, x2, y2, … in pixels."""
        results, index = _results(library, film, model), library.film(film).index
        assert index is not None
        return {"outlines": outlines(results, index.source, slice(start, start + count))}

    return routes


def _results(library: Library, film: str, model: str | None) -> FilmResults:
    results = library.film(film).found.get(model_of(library, model).key)
    if results is None:
        raise NotReadyError("the model is not done with this film yet")
    return results


def _kept(model: str | None) -> dict[str, str]:
    """What a named model found never changes; the model in use may be another one later."""
    return {"cache-control": "no-store"} if model is None else FOR_EVER
